#include "gpu.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <ashlar/graph.hpp>
#include <fstream>
#include <functional>

#include "statistics.hpp"

namespace ashlar::bench {

namespace {

constexpr int kSamples = 21;

// The driver is in the process already; the few functions that no header of ours offers.
struct DriverFunctions {
  int (*version)(int*) = nullptr;
  int (*copy)(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream) = nullptr;
  int (*retain_context)(void** context, int device) = nullptr;
  int (*set_context)(void* context) = nullptr;

  DriverFunctions() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library) return;
    find(library, "cuDriverGetVersion", version);
    find(library, "cuMemcpyDtoDAsync_v2", copy);
    find(library, "cuDevicePrimaryCtxRetain", retain_context);
    find(library, "cuCtxSetCurrent", set_context);
  }

 private:
  template <class Function>
  static void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
  }
};

std::string driver_text(const DriverFunctions& driver) {
  std::string text = "driver";
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..."
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (std::count(word.begin(), word.end(), '.') == 2 &&
        word.find_first_not_of("0123456789.") == std::string::npos) {
      text += " " + word;
      break;
    }
  if (int version = 0; driver.version && driver.version(&version) == 0)
    text += fmt::format("{}CUDA {}.{}", text == "driver" ? " for " : ", ", version / 1000,
                        version % 1000 / 10);
  return text;
}

// y = x, bytes of it.
Plan copy_plan(const Device& device, std::int64_t bytes) {
  Graph graph("copy");
  const Value x = graph.input("x", {bytes / 4}, f32);
  const Value operands[] = {x};
  graph.output("y", graph.pointwise(PointwiseMode::identity, operands));
  return compile(graph, device);
}

}  // namespace

struct Gpu::Copy {
  Copy(const Device& device, std::int64_t bytes)
      : plan(copy_plan(device, bytes)), from(device, bytes), to(device, bytes) {
    from.fill(std::byte{0});
  }
  void run() const {
    void* const pointers[] = {from.data(), to.data()};
    plan.run(pointers);
  }
  Plan plan;
  ashlar::Memory from, to;
};

Gpu::Gpu(const Device& device, const GpuBytes& bytes) : device_(device), bytes_(bytes) {
  flush_ = std::make_unique<Copy>(device, bytes.flush);
  const DriverFunctions driver;
  driver_ = driver_text(driver);
  // Libraries of others take the context that is current: the one our plans run in.
  void* context = nullptr;
  if (driver.retain_context && driver.set_context &&
      driver.retain_context(&context, device.props().ordinal) == 0)
    driver.set_context(context);
}

Gpu::~Gpu() = default;

void Gpu::flush() const { flush_->run(); }

double Gpu::copy_speed() {
  if (copy_speed_ > 0) return copy_speed_;
  const Copy copy(device_, bytes_.copy);
  const DriverFunctions driver;
  const auto copy_by_driver = [&] {
    return driver.copy(reinterpret_cast<std::uint64_t>(copy.to.data()),
                       reinterpret_cast<std::uint64_t>(copy.from.data()),
                       static_cast<std::size_t>(bytes_.copy), nullptr);
  };
  std::vector<std::function<void()>> ways = {[&] { copy.run(); }};
  if (driver.copy && copy_by_driver() == 0) ways.emplace_back(copy_by_driver);
  Timer timer(device_);
  for (const auto& way : ways) {
    std::vector<double> times;
    way();
    for (int i = 0; i < kSamples; ++i) {
      timer.start();
      way();
      timer.stop();
      times.push_back(timer.seconds());
    }
    copy_speed_ = std::max(copy_speed_, 2.0 * static_cast<double>(bytes_.copy) / median(times));
  }
  return copy_speed_;
}

double Gpu::peak(const Graph& graph) const {
  for (const Node& node : graph.nodes()) {
    const bool products = std::holds_alternative<Matmul>(node.op) ||
                          std::holds_alternative<AttentionForward>(node.op) ||
                          std::holds_alternative<AttentionBackward>(node.op);
    const bool convolution = std::holds_alternative<ConvForward>(node.op) ||
                             std::holds_alternative<ConvBackwardData>(node.op) ||
                             std::holds_alternative<ConvBackwardFilter>(node.op);
    if (!products && !convolution) continue;
    // One channel per filter leaves nothing for tensor cores to multiply.
    bool depthwise = false;
    for (const TensorId id : {node.inputs[1], node.outputs[0]}) {
      const Dims& dims = graph.tensor(id).dims;
      depthwise = depthwise || (convolution && dims.rank() > 2 && dims[1] == 1);
    }
    if (!depthwise && bit_width(graph.tensor(node.inputs[0]).dtype) <= 16)
      return device_.props().flops_f16;
  }
  return device_.props().flops_f32;
}

}  // namespace ashlar::bench

#include "gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/error.hpp>
#include <ashlar/plan.hpp>
#include <cstddef>
#include <fstream>

#include "driver_function.hpp"
#include "statistics.hpp"

namespace ashlar::bench {

namespace {

constexpr int kCopySamples = 21;
constexpr std::int64_t kSector = 32;      // bytes of an L2 sector
constexpr std::int64_t kAlignment = 256;  // bytes; slots are aligned like allocations of the driver

// y = x, `bytes` bytes.
Plan copy_plan(const Device& device, std::int64_t bytes) {
  Graph graph("copy");
  const Value x = graph.input("x", {bytes / 4}, f32);
  const Value operands[] = {x};
  graph.output("y", graph.pointwise(PointwiseMode::identity, operands));
  return compile(graph, device);
}

// Reads one element of every L2 sector: all of x passes through the L2 cache, 1/8 is written.
Plan sweep_plan(const Device& device, std::int64_t bytes) {
  Graph graph("sweep");
  const Value x = graph.input("x", {bytes / 4}, f32);
  graph.output("y", graph.slice(x, {0}, {bytes / 4}, {kSector / 4}));
  return compile(graph, device);
}

}  // namespace

struct Gpu::DriverFunctions {
  int (*version)(int*) = nullptr;
  int (*copy)(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream) = nullptr;
  int (*retain_context)(void** context, int device) = nullptr;
  int (*push_context)(void* context) = nullptr;

  DriverFunctions() {
    find_driver_function("cuDriverGetVersion", version);
    find_driver_function("cuMemcpyDtoDAsync_v2", copy);
    find_driver_function("cuDevicePrimaryCtxRetain", retain_context);
    find_driver_function("cuCtxPushCurrent_v2", push_context);
  }

  std::string describe() const {
    std::string text = "driver";
    // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..."
    std::ifstream file("/proc/driver/nvidia/version");
    for (std::string word; file >> word;)
      if (std::count(word.begin(), word.end(), '.') == 2 &&
          word.find_first_not_of("0123456789.") == std::string::npos) {
        text += " " + word;
        break;
      }
    if (int number = 0; version && version(&number) == 0)
      text += fmt::format("{}CUDA {}.{}", text == "driver" ? " for " : ", ", number / 1000,
                          number % 1000 / 10);
    return text;
  }
};

struct Gpu::Flush {
  Flush(const Device& device, std::int64_t bytes)
      : plan(sweep_plan(device, bytes)),
        from(device, bytes),
        to(device, bytes * 4 / kSector),
        workspace(device, plan.workspace_size()) {
    from.fill(std::byte{0});
  }
  void run() const {
    void* const pointers[] = {from.data(), to.data()};
    plan.run(pointers, workspace.data());
  }
  Plan plan;
  ashlar::Memory from, to, workspace;
};

Gpu::Gpu(const Device& device, const GpuBytes& bytes) : device_(device), bytes_(bytes) {
  flush_ = std::make_unique<Flush>(device, bytes.flush);
  functions_ = std::make_unique<DriverFunctions>();
  driver_ = functions_->describe();
  // Peer libraries use the current context: make it the primary context, in which our plans run.
  void* context = nullptr;
  if (functions_->retain_context && functions_->push_context &&
      functions_->retain_context(&context, device.props().ordinal) == 0)
    functions_->push_context(context);
}

Gpu::~Gpu() = default;

void Gpu::flush() const { flush_->run(); }

void Gpu::require_alive() const {
  flush();
  device_.synchronize();
}

bool Gpu::repeat(const ashlar::Memory& memory, std::int64_t pattern) const {
  // Doubles the filled prefix until the memory is full.
  for (std::int64_t full = pattern; full < memory.bytes();) {
    const std::int64_t bytes = std::min(full, memory.bytes() - full);
    if (!copy(static_cast<std::byte*>(memory.data()) + full, memory.data(), bytes)) return false;
    full += bytes;
  }
  return true;
}

bool Gpu::copy(void* to, const void* from, std::int64_t bytes, void* stream) const {
  const auto address = [](const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); };
  return functions_->copy &&
         functions_->copy(address(to), address(from), static_cast<std::size_t>(bytes), stream) == 0;
}

struct GpuCopy::Buffers {
  Buffers(const Device& device, std::int64_t each, int slots)
      : half(each),
        step((each + kAlignment - 1) / kAlignment * kAlignment),
        plan(copy_plan(device, each)),
        from(device, step * slots),
        to(device, step * slots) {}
  static void* at(const ashlar::Memory& memory, std::int64_t byte) {
    return static_cast<std::byte*>(memory.data()) + byte;
  }
  std::int64_t half, step;  // bytes of a slot, and the stride between slots
  Plan plan;
  ashlar::Memory from, to;
};

GpuCopy::GpuCopy(const Gpu& gpu, std::int64_t bytes, int slots) : gpu_(gpu), slots_(slots) {
  const std::int64_t each = std::max<std::int64_t>(bytes / 2 / 16 * 16, 16);
  buffers_ = std::make_unique<const Buffers>(gpu.device(), each, slots);
  if (gpu.copy(to(0), from(0), each)) methods_ = 2;
}

GpuCopy::~GpuCopy() = default;

std::int64_t GpuCopy::half() const { return buffers_->half; }
void* GpuCopy::from(int slot) const { return Buffers::at(buffers_->from, slot * buffers_->step); }
void* GpuCopy::to(int slot) const { return Buffers::at(buffers_->to, slot * buffers_->step); }

void GpuCopy::run(int method, int slot, void* stream) const {
  void* const pointers[] = {from(slot), to(slot)};
  if (method == 0)
    buffers_->plan.run(pointers, nullptr, stream);
  else if (!gpu_.copy(pointers[1], pointers[0], half(), stream))
    throw Error(ErrorCode::device, "bench: cuMemcpyDtoDAsync failed");
}

double Gpu::copy_speed() {
  if (copy_speed_ > 0) return copy_speed_;
  const GpuCopy copy(*this, 2 * bytes_.copy);
  Timer timer(device_);
  for (int method = 0; method < copy.methods(); ++method) {
    std::vector<double> times;
    copy.run(method);
    for (int i = 0; i < kCopySamples; ++i) {
      timer.start();
      copy.run(method);
      timer.stop();
      times.push_back(timer.seconds());
    }
    copy_speed_ = std::max(copy_speed_, 2.0 * static_cast<double>(bytes_.copy) / median(times));
  }
  return copy_speed_;
}

double Gpu::peak(const Graph& graph, bool tf32) const {
  for (const Node& node : graph.nodes()) {
    const bool matmul = std::holds_alternative<Matmul>(node.op) ||
                        std::holds_alternative<AttentionForward>(node.op) ||
                        std::holds_alternative<AttentionBackward>(node.op);
    const bool convolution = std::holds_alternative<ConvForward>(node.op) ||
                             std::holds_alternative<ConvBackwardData>(node.op) ||
                             std::holds_alternative<ConvBackwardFilter>(node.op);
    if (!matmul && !convolution) continue;
    // A depthwise convolution (one channel per filter) does not use tensor cores.
    bool depthwise = false;
    for (const TensorId id : {node.inputs[1], node.outputs[0]}) {
      const Dims& dims = graph.tensor(id).dims;
      depthwise = depthwise || (convolution && dims.rank() > 2 && dims[1] == 1);
    }
    if (depthwise) continue;
    const DType dtype = graph.tensor(node.inputs[0]).dtype;
    if (bit_width(dtype) == 8) return 2 * device_.props().flops_f16;
    if (bit_width(dtype) == 16) return device_.props().flops_f16;
    if (dtype == f32 && tf32) return device_.props().flops_f16 / 2;
  }
  return device_.props().flops_f32;
}

}  // namespace ashlar::bench

// Kernel bundles: reading them, and building them from the kernels of plans.
#include <ashlar/bundle.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "api/backends.hpp"
#include "api/known_devices.hpp"
#include "cuda/jit/bundle.hpp"
#include "cuda/launch/kernel_design.hpp"
#include "plan/tune.hpp"

namespace ashlar {

BundleContents read_bundle(const std::string& path) {
  const cuda::Bundle bundle = cuda::Bundle::open(path);
  BundleContents contents{bundle.architecture(), bundle.version(), 0, {}};
  for (const cuda::Bundle::Row& row : bundle.rows()) {
    bundle.read(row);  // throws when it is damaged
    contents.kernels.push_back({row.name, static_cast<std::int64_t>(row.bytes)});
    contents.file_bytes =
        std::max(contents.file_bytes, static_cast<std::int64_t>(row.offset + row.bytes));
  }
  return contents;
}

struct BundleBuilder::Data {
  std::string architecture;
  std::vector<DeviceProps> devices;
  std::map<std::string, cuda::KernelSource> sources;  // by source text
  int without_kernel = 0;
};

namespace {

std::vector<DeviceProps> devices_of(const std::string& architecture) {
  std::vector<DeviceProps> found;
  std::string known;
  for (const DeviceProps& props : known_devices()) {
    if (props.kind != DeviceKind::cuda) continue;
    const std::string own = cuda::architecture_of(props.compute_capability);
    if (own == architecture) found.push_back(props);
    if (known.find(own) == std::string::npos) known += (known.empty() ? "" : ", ") + own;
  }
  if (found.empty())
    fail(ErrorCode::invalid_argument, "architecture: got '{}', expected one of: {}", architecture,
         known);
  return found;
}

}  // namespace

BundleBuilder::BundleBuilder(const std::string& architecture)
    : data_(std::make_unique<Data>(Data{architecture, devices_of(architecture), {}, 0})) {}
BundleBuilder::BundleBuilder(const Device& device) {
  if (device.props().kind != DeviceKind::cuda)
    fail(ErrorCode::invalid_argument, "device: got '{}', expected a GPU", device.props().name);
  data_ = std::make_unique<Data>(
      Data{cuda::architecture_of(device.props().compute_capability), {device.props()}, {}, 0});
}
BundleBuilder::~BundleBuilder() = default;
BundleBuilder::BundleBuilder(BundleBuilder&& other) noexcept = default;
BundleBuilder& BundleBuilder::operator=(BundleBuilder&& other) noexcept = default;

void BundleBuilder::add(const Graph& graph, const CompileOptions& options) {
  for (const DeviceProps& device : data_->devices) {
    const auto outline = build_plan(graph, device, options, nullptr, false);
    const auto note = [&](const Region& region, const Engine* chosen, const Config& config) {
      const auto* engine = dynamic_cast<const cuda::CudaEngine*>(chosen);
      if (engine == nullptr) return false;
      const cuda::KernelDesign design =
          engine->design(outline->lowered.graph, region, config, device);
      for (const cuda::LaunchDesign& launch : design.launches)
        data_->sources.emplace(launch.source.text, launch.source);
      return true;
    };
    for (const PlanData::Step& step : outline->steps) {
      if (!note(step.region, step.choice.engine, step.choice.config)) ++data_->without_kernel;
      if (!options.tune) continue;
      Ranking ranking = rank(step.region, backend_for(device.kind).engines(), device, options);
      for (const Candidate& one : contenders(std::move(ranking.candidates), options))
        note(step.region, one.engine, one.config);
    }
  }
}

int BundleBuilder::kernel_count() const { return static_cast<int>(data_->sources.size()); }
int BundleBuilder::regions_without_kernel() const { return data_->without_kernel; }
const std::string& BundleBuilder::architecture() const { return data_->architecture; }

std::string BundleBuilder::build(const std::function<void(int done, int all)>& progress) const {
  std::vector<const cuda::KernelSource*> sources;
  for (const auto& [text, source] : data_->sources) sources.push_back(&source);
  std::vector<cuda::PackedItem> items(sources.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  int done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < sources.size(); i = next++) {
      try {
        const auto image = cuda::kernel_images().get(*sources[i], data_->architecture);
        items[i] = cuda::packed(*sources[i], data_->architecture, *image);
        const std::lock_guard lock(mutex);
        ++done;
        if (progress) progress(done, static_cast<int>(sources.size()));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = sources.size();
      }
    }
  };
  std::vector<std::thread> threads;
  const std::size_t wanted =
      std::min<std::size_t>(std::thread::hardware_concurrency(), sources.size());
  for (std::size_t i = 1; i < wanted; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  return cuda::encode_bundle(data_->architecture, std::move(items));
}

}  // namespace ashlar

#include "cuda/launch/kernel_design.hpp"

#include <map>
#include <mutex>

#include "base/settings.hpp"
#include "cuda/driver/context.hpp"
#include "cuda/driver/stream_event.hpp"

namespace ashlar::cuda {

namespace {

// Each image is loaded once and shared by all plans that use it.
std::shared_ptr<const LoadedCode> shared_code(const std::shared_ptr<const KernelImage>& image,
                                              const std::string& name) {
  static std::mutex mutex;
  static std::map<std::weak_ptr<const KernelImage>, std::weak_ptr<const LoadedCode>,
                  std::owner_less<>>
      loaded;
  const std::lock_guard lock(mutex);
  std::erase_if(loaded, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const LoadedCode>& slot = loaded[image];
  std::shared_ptr<const LoadedCode> code = slot.lock();
  if (!code) slot = code = std::make_shared<const LoadedCode>(image->cubin, name);
  return code;
}

class CudaKernel final : public Kernel {
 public:
  CudaKernel(KernelDesign design, const DeviceProps& device, const std::string& purpose)
      : device_(device.ordinal),
        waits_(settings().cuda_sync),
        unaligned_(std::move(design.unaligned)),
        architecture_(architecture_of(device.compute_capability)),
        purpose_(purpose) {
    scratch_layout_ = std::move(design.scratch);
    load(std::move(design.launches));
  }

  void keep_constants(const KernelContext& constants) override {
    for (Launch& launch : launches_) launch.arguments.keep_constants(constants);
  }

  void run(const KernelContext& context) const override {
    const ContextScope scope(device_);
    const auto stream = static_cast<StreamHandle>(context.stream());
    Arguments::Words words;
    for (const Launch& launch : launches_) {
      const bool aligned = launch.arguments.fill(context, scratch_layout_, words);
      if (!aligned && !launch.has_unaligned_function && unaligned_) return fallback().run(context);
      const LoadedKernel& kernel = aligned ? launch.aligned : launch.unaligned;
      const LaunchForm form{
          aligned ? launch.grid : launch.unaligned_grid, launch.threads,
          aligned ? launch.cluster : 1, launch.cooperative,
          launch.is_dependent_launch && supports_dependent_launch(context.stream())};
      kernel.launch(scope, stream, form, words.data());
      if (waits_ && !is_capturing(context.stream())) kernel.wait(stream);
    }
  }

 private:
  CudaKernel(const CudaKernel& other, KernelDesign design)
      : device_(other.device_),
        waits_(other.waits_),
        architecture_(other.architecture_),
        purpose_(other.purpose_) {
    scratch_layout_ = other.scratch_layout_;
    load(std::move(design.launches));
  }

  void load(std::vector<LaunchDesign> designs) {
    for (LaunchDesign& launch : designs) {
      const auto image = kernel_images().get(launch.source, architecture_);
      const ContextScope scope(device_);
      const auto code = shared_code(image, launch.function);
      const auto load = [&](const std::string& function) {
        return LoadedKernel(device_, code, function, launch.shared_bytes, purpose_);
      };
      LoadedKernel aligned = load(launch.function);
      LoadedKernel unaligned =
          launch.unaligned_function.empty() ? aligned : load(launch.unaligned_function);
      launches_.push_back({std::move(aligned), std::move(unaligned), launch.grid,
                           launch.unaligned_function.empty() ? launch.grid : launch.unaligned_grid,
                           launch.threads, launch.cluster, !launch.unaligned_function.empty(),
                           launch.cooperative, launch.is_dependent_launch,
                           ArgumentFiller(launch.arguments)});
    }
  }

  struct Launch {
    LoadedKernel aligned, unaligned;
    Grid grid, unaligned_grid;
    unsigned threads, cluster;
    bool has_unaligned_function;  // has a variant for unaligned addresses
    bool cooperative;
    bool is_dependent_launch;  // programmatic edges in graphs need newer drivers
    ArgumentFiller arguments;
  };
  const CudaKernel& fallback() const {
    std::call_once(fallback_once_, [&] { fallback_.reset(new CudaKernel(*this, unaligned_())); });
    return *fallback_;
  }

  DeviceOrdinal device_;
  bool waits_;  // synchronise after every launch, so that errors name the right kernel
  std::vector<Launch> launches_;
  std::function<KernelDesign()> unaligned_;
  std::string architecture_, purpose_;
  mutable std::once_flag fallback_once_;
  mutable std::unique_ptr<const CudaKernel> fallback_;
};

}  // namespace

std::int64_t CudaEngine::dynamic_shared_bytes(const Graph& graph, const Region& region,
                                              const Config& config,
                                              const DeviceProps& device) const {
  std::int64_t most = 0;
  for (const LaunchDesign& launch : design(graph, region, config, device).launches)
    most = std::max(most, std::int64_t{launch.shared_bytes});
  return most;
}

std::unique_ptr<Kernel> CudaEngine::build(const Graph& graph, const Region& region,
                                          const Config& config, const DeviceProps& device) const {
  return std::make_unique<CudaKernel>(design(graph, region, config, device), device,
                                      region.to_text(graph));
}

}  // namespace ashlar::cuda

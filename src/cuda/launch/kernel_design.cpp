#include "cuda/launch/kernel_design.hpp"

#include "cuda/driver/context.hpp"

namespace ashlar::cuda {

namespace {

class CudaKernel final : public Kernel {
 public:
  CudaKernel(KernelDesign design, const DeviceProps& device) : device_(device.ordinal) {
    scratch_book_ = std::move(design.scratch);
    const std::string architecture = architecture_of(device.compute_capability);
    for (LaunchDesign& launch : design.launches) {
      const auto image = kernel_images().get(launch.source, architecture);
      const auto load = [&](const std::string& function) {
        return LoadedKernel(device_, image->cubin, function, launch.shared_bytes);
      };
      launch.arguments.check_size();
      LoadedKernel aligned = load(launch.function);
      LoadedKernel unaligned =
          launch.unaligned_function.empty() ? aligned : load(launch.unaligned_function);
      launches_.push_back({std::move(aligned), std::move(unaligned), launch.grid,
                           launch.unaligned_function.empty() ? launch.grid : launch.unaligned_grid,
                           launch.threads, std::move(launch.arguments)});
    }
  }

  void run(const KernelContext& context) const override {
    const ContextScope scope(device_);
    const auto stream = static_cast<StreamHandle>(context.stream());
    Arguments::Words words;
    for (const Launch& launch : launches_) {
      launch.arguments.fill(context, scratch_book_, words);
      constexpr std::int64_t kVectorBytes = 16;
      const bool aligned = launch.arguments.are_aligned(words, kVectorBytes);
      const LoadedKernel& kernel = aligned ? launch.aligned : launch.unaligned;
      kernel.launch(stream, aligned ? launch.grid : launch.unaligned_grid, launch.threads,
                    words.data());
    }
  }

 private:
  struct Launch {
    LoadedKernel aligned, unaligned;
    Grid grid, unaligned_grid;
    unsigned threads;
    Arguments arguments;
  };
  DeviceOrdinal device_;
  std::vector<Launch> launches_;
};

}  // namespace

std::unique_ptr<Kernel> CudaEngine::build(const Graph& graph, const Region& region,
                                          const Config& config, const DeviceProps& device) const {
  return std::make_unique<CudaKernel>(design(graph, region, config, device), device);
}

}  // namespace ashlar::cuda

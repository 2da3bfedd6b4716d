// The output of an engine, computed without a GPU: kernel text, arguments and launch shape.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cuda/driver/loaded_kernel.hpp"
#include "cuda/jit/kernel_image.hpp"
#include "cuda/launch/arguments.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

inline constexpr std::int64_t kMaxGridY = 65535;  // grid limit along y and z

struct LaunchDesign {
  KernelSource source;
  std::string function;  // entry point
  Grid grid;
  unsigned threads = 256;
  unsigned shared_bytes = 0;
  Arguments arguments;
  // Entry point for addresses without the required alignment; empty: `function` supports any
  // address.
  std::string unaligned_function = {};
  Grid unaligned_grid = {};
  bool cooperative = false;  // cooperative launch: all CTAs are co-resident and may synchronise
  unsigned cluster = 1;      // cluster size along x (sm_90 on); of `function` only
  // Programmatic dependent launch (PDL): may start before the previous launch has finished; the
  // kernel itself waits for the previous launch's results (lib/ptx_grid_dependency.cuh).
  bool is_dependent_launch = false;
};

// Launches in stream order. Empty: nothing to do (no elements).
struct KernelDesign {
  std::vector<LaunchDesign> launches;
  ScratchLayout scratch;
  // Fallback where a launch without an unaligned function gets an unaligned address, which TMA
  // cannot read. It uses the same workspace, and is designed and compiled on first use, from the
  // graph and the region. Null: all addresses are supported.
  std::function<KernelDesign()> unaligned = {};
};

// An engine whose kernels are CUDA C++ text; compiling, loading and launching are shared by all of
// them.
class CudaEngine : public Engine {
 public:
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  ComputeMethod method() const override { return ComputeMethod::cuda_cores; }
  // A pure function: kernel bundles and tests compile its result on machines without a GPU.
  virtual KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                              const DeviceProps& device) const = 0;
  std::int64_t dynamic_shared_bytes(const Graph& graph, const Region& region, const Config& config,
                                    const DeviceProps& device) const final;
  std::unique_ptr<Kernel> build(const Graph& graph, const Region& region, const Config& config,
                                const DeviceProps& device) const final;
};

}  // namespace ashlar::cuda

// What an engine decides about a kernel before any GPU is touched: text, arguments, launch shape.
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

inline constexpr std::int64_t kMaxGridY = 65535;  // blocks along y or z

struct LaunchDesign {
  KernelSource source;
  std::string function;  // of the source
  Grid grid;
  unsigned threads = 256;
  unsigned shared_bytes = 0;
  Arguments arguments;
  // Another function of the source for addresses that are not multiples of what the arguments want;
  // empty: the function takes any.
  std::string unaligned_function = {};
  Grid unaligned_grid = {};
  bool cooperative = false;  // the blocks wait for each other: all of them are there at once
  unsigned cluster = 1;      // blocks along x that run together (sm_90 on); of `function` only
  // May start before the launch before it is done, for whose results it waits itself: see
  // lib/ptx_grid_dependency.cuh.
  bool is_dependent_launch = false;
};

// Launches in order. An empty list does nothing (no elements).
struct KernelDesign {
  std::vector<LaunchDesign> launches;
  ScratchLayout scratch;
  // What runs instead where a launch without an unaligned function is given such an address: the
  // copy engine would have to read it. It has the same scratch, and is designed and compiled when
  // that happens first, from the graph and the region. Null: all addresses are taken.
  std::function<KernelDesign()> unaligned = {};
};

// An engine whose kernels are text: compiling, loading and launching are the same for all of them.
class CudaEngine : public Engine {
 public:
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  // A pure function: packs and tests compile what it gives on machines without a GPU.
  virtual KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                              const DeviceProps& device) const = 0;
  std::unique_ptr<Kernel> build(const Graph& graph, const Region& region, const Config& config,
                                const DeviceProps& device) const final;
};

}  // namespace ashlar::cuda

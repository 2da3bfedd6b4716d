// Tail reductions fused behind a GEMM (Region::reductions): partial results of its tiles, and the
// launch that combines them (kernels/lib/gemm_tails.cuh, kernels/tail_reduce.cuh).
#pragma once

#include <string>
#include <vector>

#include "base/ceil_div.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// Role of an axis of the epilogue's space in the GEMM.
enum class TailAxis : std::uint8_t { row, column, batch };

// Number of partial results: one part per row of tiles, column of tiles or warp.
struct TailParts {
  std::int64_t rows = 0;     // per batch: warpgroups along M
  std::int64_t columns = 0;  // per batch: tiles along N
  std::int64_t warps = 0;    // of the grid
};

class GemmTails {
 public:
  GemmTails() = default;
  // `axes`: one per axis of the epilogue's space.
  GemmTails(const Region& region, const std::vector<TailAxis>& axes, const TailParts& parts);

  // Whether every reduction covers all rows, all columns or everything. Call it before code that
  // relies on a store of the epilogue.
  static Support supports(const Region& region, const std::vector<TailAxis>& axes);

  bool empty() const { return tails_.empty(); }
  std::int64_t scratch_bytes() const;
  // Reserves workspace for the partial results.
  void scratch_layout(ScratchLayout& scratch_layout);
  // Kernel text after the struct of arguments: constants and Tail<number>. add_arguments comes
  // before that struct.
  void add_arguments(Arguments& arguments) const;
  std::string text() const;
  // Adds the files of the kernel; `place` defines its tail_place.
  void add_files(std::vector<std::string_view>& files, std::string_view place) const;
  LaunchDesign sum(const Graph& graph) const;
  // The region by the generic engine, with the same partial results.
  std::function<KernelDesign()> unaligned(const Graph& graph, const Region& region,
                                          const DeviceProps& device) const;

 private:
  enum Over { rows, columns, all };
  struct Tail {
    Over over = rows;
    ReductionMode fold = ReductionMode::add;
    PointwiseProgram finish;
    std::int64_t elements = 1, parts = 1;
    std::int64_t batch = 0;  // stride between the partial results of batches
    int slot = 0;            // among those over the same axes
    int reservation = 0;
    std::int64_t bytes() const {  // rounded up to the workspace alignment
      return ceil_div(elements * parts * 4, kWorkspaceAlignment) * kWorkspaceAlignment;
    }
  };
  static bool find_over(const Dims& full, const Dims& result, const std::vector<TailAxis>& axes,
                        Over& over, bool& keeps_batches);
  std::vector<Tail> tails_;
};

// For engines that do not support tail reductions.
Support has_no_tails(const Region& region);

}  // namespace ashlar::cuda

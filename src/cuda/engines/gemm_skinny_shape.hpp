// Skinny GEMM (up to 32 rows or columns): the problem (which operand is the weights, their layout
// in memory) and the kernel layouts (tiles, pipeline stages, split-K) with their cost estimates.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// y[..., m, n] = sum over k of x[..., m, k] * weights[..., n, k], with m <= 32.
struct SkinnyShape {
  std::int64_t m = 0, n = 0, k = 0, batches = 1;
  Dims batch_extent;  // of the result
  int rank = 2;
  DType type = f32;     // of MMA operands: bf16 or f16 on tensor cores, f32 for FMA
  bool k_major = true;  // weights are K-major (contiguous along K), else N-major
  bool raw = true;      // bit operations alone convert weights to operands
  View weights;         // over [..., n, k] if K-major, else [..., k, n]
  bool has_work = false;
  std::int64_t scale_block = 0;  // elements of K per scale, a multiple of 8; 0: no scales
  PointwiseProgram scale;        // block scales of the weights, over the space of the weights
  PointwiseProgram work;         // prologue on the weights, its accumulator; over the same space
  PointwiseProgram x;            // over [..., m, k]
  PointwiseProgram factors;      // scale factors of results, over [..., m, n]; empty: none
  PointwiseProgram epilogue;     // over [..., m, n]

  // Fills `shape`, or returns the reason of the refusal.
  static Support describe(const Region& region, SkinnyShape& shape);

  bool uses_mma() const { return type != f32; }
  int bits() const { return bit_width(weights.dtype); }
  std::int64_t row_stride() const;
  std::int64_t k_stride() const;
  // Bytes of a packet (the weights a lane loads at once), and bytes per cp.async if pointers are
  // aligned; below 4 they are copied byte by byte.
  std::int64_t packet_bytes() const;
  std::int64_t copy_bytes() const;
  // x needs no conversion and is aligned: copied by cp.async or TMA.
  bool copies_x() const;
  // Whether TMA bulk loads suit weights, x and scales: K-major rows in multiples of 16 bytes, sm_90
  // on (kernels/gemm_skinny_tma.cuh).
  bool fits_tma(const DeviceProps& device) const;
  // Whether wgmma applies: sm_90a, and rows are multiples of the 128-byte pieces of TMA boxes
  // (kernels/gemm_skinny_warpgroup.cuh).
  bool fits_wgmma(const DeviceProps& device) const;
  // Whether weights are 4-bit integers with block scales, which the warpgroup kernel multiplies as
  // integers by int8 limbs of x (kernels/gemm_skinny_limbs.cuh) or as packed pairs (SmallScale in
  // kernels/lib/narrow_to_half2.cuh). Either way accumulators may become invalid and are recomputed
  // (kernels/gemm_skinny_recompute_nonfinite.cuh).
  bool has_small_integers() const {
    return scale_block > 0 && (weights.dtype == i4 || weights.dtype == u4);
  }
  // Rows of x, rounded up to a supported N of wgmma.
  std::int64_t columns() const { return m <= 8 ? 8 : m <= 16 ? 16 : 32; }
  // Whether 4-bit weights keep the offset of their encoding, whose products with x are subtracted
  // from the accumulators: with few rows of x these MMAs are fewer than the instructions they save.
  bool keeps_offset() const;
  std::int64_t row_bytes() const { return k * bits() / 8; }
  const View& scales() const { return scale.steps[0].view; }  // over blocks of K
};

// The kernel and its parameters: kernels/gemm_skinny_warpgroup.cuh if `helpers` > 0, else
// gemm_skinny_tma.cuh if `chunk` > 0, else gemm_skinny.cuh (cp.async).
struct SkinnyLayout {
  static constexpr std::int64_t kBarrierBytes = 16;       // of a stage: two mbarriers
  static constexpr std::int64_t kGroupBarrierBytes = 24;  // three in the warpgroup kernel
  std::int64_t tiles = 1;             // of 16 rows per warp, for K-major weights
  std::int64_t warps_n = 1;           // along N
  std::int64_t warps_k = 1;           // along K
  std::int64_t split = 1;             // CTAs of a cluster along K
  std::int64_t blocks = 1;            // resident CTAs per SM
  std::int64_t steps = 3, phase = 1;  // pipeline stages; steps per phase of x
  std::int64_t passes = 1;            // work units per CTA
  std::int64_t chunk = 0;             // bytes of a row per TMA stage; 0: no TMA
  // Warps besides the MMA warpgroups: one TMA producer warp, and repack warps for x; with only the
  // producer, a pre-pass launch repacks x. 0: not the warpgroup kernel.
  std::int64_t helpers = 0;
  std::int64_t limbs = 0;  // 1: warpgroups multiply int8 limbs of x by 4-bit weights
  // Warpgroup kernel: rows per CTA if fewer than its warps have room for; 0: all.
  std::int64_t block_rows = 0;

  std::vector<std::pair<std::string, std::int64_t>> knobs() const;
  explicit SkinnyLayout(const Config& config);
  SkinnyLayout() = default;

  std::int64_t threads() const { return (warps_n * warps_k + helpers) * 32; }
  std::int64_t step_k(const SkinnyShape& shape) const;  // of a warp
  std::int64_t warp_rows(const SkinnyShape& shape) const;
  std::int64_t rows_of_warps(const SkinnyShape& shape) const { return warps_n * warp_rows(shape); }
  std::int64_t rows(const SkinnyShape& shape) const {
    return block_rows > 0 ? block_rows : rows_of_warps(shape);
  }
  std::int64_t rounds(const SkinnyShape& shape) const;  // or chunks, over the whole K
  std::int64_t block_rounds(const SkinnyShape& shape) const;
  std::int64_t buffers_x(const SkinnyShape& shape) const;
  std::int64_t buffers_scales(const SkinnyShape& shape) const;
  std::int64_t step_bytes(const SkinnyShape& shape) const;
  std::int64_t shared_bytes(const SkinnyShape& shape) const;
  std::int64_t reduction_bytes(const SkinnyShape& shape) const;
  std::int64_t rows_per_pass(const SkinnyShape& shape) const;  // rows of x per reduction pass
  std::int64_t groups(const SkinnyShape& shape) const;         // row tiles along N
  std::int64_t grid(const SkinnyShape& shape) const;
  // Chooses steps, phase and passes for a pipeline of that many bytes per SM; false: nothing fits.
  bool choose_lengths(const SkinnyShape& shape, const DeviceProps& device,
                      std::int64_t pipeline_bytes);
  void choose_passes(const SkinnyShape& shape, const DeviceProps& device);
  // Clusters of `split` CTAs that can be resident at once with one CTA per SM.
  static std::int64_t clusters_at_once(const DeviceProps& device, std::int64_t split);
  double seconds(const SkinnyShape& shape, const DeviceProps& device) const;

  // TMA kernels. The reduction aliases the stages unless these prefetch the next unit meanwhile, or
  // other CTAs of the cluster, which may finish earlier, write partials to it.
  std::int64_t stage_bytes(const SkinnyShape& shape) const;
  bool has_own_reduction_smem() const { return passes > 1 || (helpers > 0 && split > 1); }
  bool choose_stages(const SkinnyShape& shape, const DeviceProps& device);
  // Warpgroup kernel.
  bool repacks_in_cta() const { return helpers > 1; }
  bool has_limbs() const { return limbs != 0; }
  // Columns of operand B per row of x: one per limb.
  std::int64_t planes() const { return has_limbs() ? 3 : 1; }
  // Sets of integer accumulators in flight: one where registers are short.
  std::int64_t acc_buffers(const SkinnyShape& shape) const;
  // Rows of x per repack work item, 1 to 8; with fewer rows an item spans more of K.
  std::int64_t repack_rows(const SkinnyShape& shape) const;
  // Work items per repack warp for `chunks` consecutive chunks.
  std::int64_t repack_turns(const SkinnyShape& shape, std::int64_t chunks) const;
  std::int64_t packed_x_bytes(const SkinnyShape& shape) const;  // of repacked x per chunk
  std::int64_t scratch_bytes(const SkinnyShape& shape) const {  // repacked x, for the pre-pass
    return helpers == 1 ? rounds(shape) * packed_x_bytes(shape) : 0;
  }
  std::int64_t warpgroup_stage_bytes(const SkinnyShape& shape) const;
};

// The best layouts of every kernel, fastest first by estimate within a kernel; cp.async layouts
// come last.
std::vector<SkinnyLayout> skinny_layouts(const SkinnyShape& shape, const DeviceProps& device);
// Keeps the layout with the lowest estimate of each kind.
class FastestLayouts {
 public:
  using Kind = std::vector<std::int64_t>;
  void consider(const Kind& kind, double seconds, const SkinnyLayout& layout);
  std::vector<SkinnyLayout> first(std::size_t most) const;  // the fastest first

 private:
  std::map<Kind, std::pair<double, SkinnyLayout>> best_;
};
// The `most` fastest layouts of a single kernel.
std::vector<SkinnyLayout> cp_async_layouts(const SkinnyShape& shape, const DeviceProps& device,
                                           std::size_t most = 16);
std::vector<SkinnyLayout> tma_layouts(const SkinnyShape& shape, const DeviceProps& device,
                                      std::size_t most = 16);
std::vector<SkinnyLayout> warpgroup_layouts(const SkinnyShape& shape, const DeviceProps& device,
                                            std::size_t most = 16);

}  // namespace ashlar::cuda

// A matrix product with few rows (or few columns): which operand is the weights, how they lie in
// memory, and how blocks share them out.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// y[..., few, many] = sum over the depth of x[..., few, depth] * weights[..., many, depth].
struct SkinnyShape {
  std::int64_t m = 0, n = 0, k = 0, batches = 1;
  Dims batch_extent;  // of the result
  int rank = 2;
  DType type = f32;     // of the products' factors: bf16 or f16 for matrix units, else f32
  bool k_major = true;  // weights that lie together are of neighbouring depths, not rows
  bool raw = true;      // weights become factors by operations on bits alone
  View weights;         // over [..., many, depth] if along, else [..., depth, many]
  bool has_work = false;
  std::int64_t scale_block = 0;  // depths that share a scale, a multiple of 8; 0: no scales
  PointwiseProgram scale;        // of weights as factors, over the same as the weights
  PointwiseProgram work;         // on weights, which are its accumulator, over the same
  PointwiseProgram x;            // over [..., few, depth]
  PointwiseProgram factors;      // of results, over [..., few, many]; empty: none
  PointwiseProgram epilogue;     // over [..., few, many]

  // Fills `shape`, or says why not.
  static Support describe(const Region& region, SkinnyShape& shape);

  bool uses_mma() const { return type != f32; }
  int bits() const { return bit_width(weights.dtype); }
  std::int64_t row_stride() const;
  std::int64_t k_stride() const;
  // Bytes of a packet, and of the pieces it is copied in if pointers are aligned; less than 4: one
  // by one.
  std::int64_t packet_bytes() const;
  std::int64_t copy_bytes() const;
  // Elements of x are copied as they are.
  bool copies_x() const;
  // Whether the copy engine can bring the weights, x and scales of weights: they lie in rows whose
  // parts are multiples of 16 bytes (kernels/gemm_skinny_tma.cuh).
  bool fits_tma(const DeviceProps& device) const;
  // Whether warpgroups can multiply them (wgmma), the copy engine bringing boxes of whole pieces of
  // 128 bytes (kernels/gemm_skinny_warpgroup.cuh).
  bool fits_wgmma(const DeviceProps& device) const;
  // Whether they multiply whole numbers of 4 bits with scales of blocks: as integers, x as digits
  // (kernels/gemm_skinny_limbs.cuh), or as pairs (SmallScale in kernels/lib/narrow_to_half2.cuh).
  // Either way sums may be lost, and are made once more
  // (kernels/gemm_skinny_recompute_nonfinite.cuh).
  bool has_small_integers() const {
    return scale_block > 0 && (weights.dtype == i4 || weights.dtype == u4);
  }
  // Rows of x as wgmma counts them.
  std::int64_t columns() const { return m <= 8 ? 8 : m <= 16 ? 16 : 32; }
  // Whether 4-bit weights are multiplied with an offset, whose products are taken away from sums:
  // with few rows of x these products are fewer than the instructions that they save.
  bool keeps_offset() const;
  std::int64_t row_bytes() const { return k * bits() / 8; }
  const View& scales() const { return scale.steps[0].view; }  // over blocks of depths
};

// How a launch is laid out: kernels/gemm_skinny_packets.cuh and gemm_skinny.cuh, or
// gemm_skinny_tma.cuh where `chunk` is not 0, gemm_skinny_direct.cuh where `batch` is not 0,
// gemm_skinny_warpgroup.cuh where `helpers` is not 0.
struct SkinnyLayout {
  static constexpr std::int64_t kBarrierBytes = 16;       // of a stage: two barriers
  static constexpr std::int64_t kGroupBarrierBytes = 24;  // three, where warpgroups multiply
  std::int64_t tiles = 1;             // of 16 rows of a warp, where packets lie along the depth
  std::int64_t warps_n = 1;           // with different rows
  std::int64_t warps_k = 1;           // with different depths
  std::int64_t split = 1;             // blocks with different depths
  std::int64_t blocks = 1;            // of a multiprocessor at a time
  std::int64_t steps = 3, phase = 1;  // of the ring, and for which x is there
  std::int64_t passes = 1;            // a block has other rows in each
  std::int64_t chunk = 0;  // bytes of a row that the copy engine brings at a time; 0: threads copy
  std::int64_t batch = 0;  // steps of a warp that go straight to registers at a time
  // Beside warpgroups that multiply: a warp that asks the copy engine, and those that put x in
  // order; where there are none, a launch before does that.
  std::int64_t helpers = 0;
  std::int64_t limbs = 0;  // 1: there, x as digits times 4-bit weights, as integers
  // There: rows of a block where they are fewer than its warps have room for; 0: all.
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
  std::int64_t rounds(const SkinnyShape& shape) const;  // or chunks; all blocks with the same rows
  std::int64_t block_rounds(const SkinnyShape& shape) const;
  std::int64_t buffers_x(const SkinnyShape& shape) const;
  std::int64_t buffers_scales(const SkinnyShape& shape) const;
  std::int64_t step_bytes(const SkinnyShape& shape) const;
  std::int64_t shared_bytes(const SkinnyShape& shape) const;
  std::int64_t reduction_bytes(const SkinnyShape& shape) const;
  std::int64_t rows_per_pass(
      const SkinnyShape& shape) const;                  // rows of x that are summed at a time
  std::int64_t groups(const SkinnyShape& shape) const;  // of rows
  std::int64_t grid(const SkinnyShape& shape) const;
  // Steps, phase and passes, for a ring of so many bytes of a multiprocessor; false where nothing
  // fits.
  bool choose_lengths(const SkinnyShape& shape, const DeviceProps& device,
                      std::int64_t pipeline_bytes);
  void choose_passes(const SkinnyShape& shape, const DeviceProps& device);
  // Clusters of `split` blocks that can be there at a time, one block on a multiprocessor.
  static std::int64_t clusters_at_once(const DeviceProps& device, std::int64_t split);
  double seconds(const SkinnyShape& shape, const DeviceProps& device) const;

  // The same where the copy engine brings the weights. Sums lie where stages were, unless the next
  // rows come to these meanwhile, or sums of other blocks, whose warpgroups may be done earlier.
  std::int64_t stage_bytes(const SkinnyShape& shape) const;
  bool has_own_reduction_smem() const { return passes > 1 || (helpers > 0 && split > 1); }
  bool choose_stages(const SkinnyShape& shape, const DeviceProps& device);
  // Where warpgroups multiply.
  bool repacks_in_cta() const { return helpers > 1; }
  bool has_limbs() const { return limbs != 0; }
  // Of x: columns for each of its rows.
  std::int64_t planes() const { return has_limbs() ? 3 : 1; }
  // Pieces whose sums wait for their scales at a time: one where registers are few.
  std::int64_t acc_buffers(const SkinnyShape& shape) const;
  // Rows of x that a warp of a block puts in order at a time, 1 to 8; of fewer, more depths.
  std::int64_t repack_rows(const SkinnyShape& shape) const;
  // How often such a warp does so, for so many chunks one after the other.
  std::int64_t repack_turns(const SkinnyShape& shape, std::int64_t chunks) const;
  std::int64_t packed_x_bytes(const SkinnyShape& shape) const;  // of x, for a chunk
  std::int64_t scratch_bytes(const SkinnyShape& shape) const {  // for all of x
    return helpers == 1 ? rounds(shape) * packed_x_bytes(shape) : 0;
  }
  std::int64_t warpgroup_stage_bytes(const SkinnyShape& shape) const;
};

// The best layouts, fastest first by estimate. Those whose weights are copied by threads come last
// where there are others.
std::vector<SkinnyLayout> skinny_layouts(const SkinnyShape& shape, const DeviceProps& device);
// Of layouts of a kind the one with the least estimate.
class FastestLayouts {
 public:
  using Kind = std::vector<std::int64_t>;
  void consider(const Kind& kind, double seconds, const SkinnyLayout& layout);
  std::vector<SkinnyLayout> first(std::size_t most) const;  // the fastest first

 private:
  std::map<Kind, std::pair<double, SkinnyLayout>> best_;
};
// Of one kind alone, `most` of them.
std::vector<SkinnyLayout> cp_async_layouts(const SkinnyShape& shape, const DeviceProps& device,
                                           std::size_t most = 16);
std::vector<SkinnyLayout> tma_layouts(const SkinnyShape& shape, const DeviceProps& device,
                                      std::size_t most = 16);
std::vector<SkinnyLayout> warpgroup_layouts(const SkinnyShape& shape, const DeviceProps& device,
                                            std::size_t most = 16);
std::vector<SkinnyLayout> direct_layouts(const SkinnyShape& shape, const DeviceProps& device,
                                         std::size_t most = 4);

}  // namespace ashlar::cuda

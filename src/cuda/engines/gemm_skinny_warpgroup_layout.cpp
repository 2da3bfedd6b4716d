// Candidate layouts of the skinny GEMM on warpgroups (wgmma).
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/gemm_skinny_shape.hpp"

namespace ashlar::cuda {

namespace {

using Layout = SkinnyLayout;
using Shape = SkinnyShape;

constexpr std::int64_t kReserved = 1 << 10;  // shared memory reserved per CTA
constexpr std::int64_t kAlignment = 1 << 10;
// Room for a CTA of the next launch's repack pre-pass, which must be resident to overlap.
constexpr std::int64_t kNextRepack = 6 << 10;
constexpr std::int64_t kStepBytes = 64;  // of a row, per step of a warpgroup
constexpr std::int64_t kMaxStages = 8;
constexpr std::int64_t kMaxRows = 256;  // of a TMA box
constexpr std::int64_t kRegisters = 64 << 10;
constexpr std::int64_t kBlockK = 128;       // k that a warp repacks at a time
constexpr std::int64_t kMaxOrderWarps = 4;  // per CTA: 8 gain nothing

std::int64_t chunk_k(const Shape& shape, const Layout& layout) {
  return layout.chunk * 8 / shape.bits();
}
// Work items of the repack warps per chunk.
std::int64_t repack_units(const Shape& shape, const Layout& layout) {
  constexpr std::int64_t kTile = 8;
  const std::int64_t blocks = chunk_k(shape, layout) / kBlockK * (shape.columns() / kTile);
  return blocks * layout.repack_rows(shape) / kTile;
}
// Registers available per thread: warps are distributed over the four partitions of an SM.
std::int64_t registers_left(const Layout& layout) {
  constexpr std::int64_t kPartitions = 4, kWarp = 32;
  const std::int64_t warps = ceil_div(layout.threads() / kWarp * layout.blocks, kPartitions);
  return kRegisters / kPartitions / (warps * kWarp) / 8 * 8;
}
std::int64_t pieces_of(const Layout& layout) {  // per chunk and warpgroup
  return layout.tiles * (layout.chunk / kStepBytes / layout.warps_k);
}
// Registers of an MMA thread, estimated.
std::int64_t registers_of(const Shape& shape, const Layout& layout) {
  const std::int64_t accumulators = shape.columns() / 2, more_tiles = layout.tiles - 1;
  const std::int64_t large_cluster = layout.split > 2 ? 8 : 0;  // DSMEM addresses
  if (layout.has_limbs()) {  // accumulators of three limbs; longer loops keep more addresses
    const std::int64_t places = layout.acc_buffers(shape);
    // A few more if the kernel also contains the repack warps.
    const std::int64_t extra =
        large_cluster + (layout.repacks_in_cta() && (places == 1 || pieces_of(layout) > 4) ? 8 : 0);
    if (places == 1) return 56 + 9 * accumulators / 2 + more_tiles * 48 + extra;
    return (pieces_of(layout) == 2 ? 46 : 76) + 9 * accumulators + more_tiles * 24 + extra;
  }
  // Accumulators, two parts of the weights as operands, packets, scales.
  if (shape.scale_block > 0)
    return std::max<std::int64_t>(88, 56 + 5 * layout.tiles * accumulators / 2 + more_tiles * 8) +
           large_cluster;
  const std::int64_t all =
      16 + layout.tiles * (14 + accumulators) + (shape.bits() == 16 ? 16 : 32) + large_cluster;
  return shape.bits() == 4 ? std::max<std::int64_t>(all, 92) : all;
}

// Rows per CTA that balance the SMs: the rows of a pass divided evenly over the CTAs that fit at
// once, rounded up to whole warps.
std::int64_t even_rows(const Shape& shape, const Layout& layout, const DeviceProps& device) {
  const std::int64_t at_once = Layout::clusters_at_once(device, layout.split) * layout.blocks;
  const std::int64_t passes = ceil_div(ceil_div(shape.n, layout.rows_of_warps(shape)), at_once);
  const std::int64_t of_warp = layout.warp_rows(shape);  // a warp has all of its rows or none
  return ceil_div(ceil_div(shape.n, at_once * passes), of_warp) * of_warp;
}

bool choose_warpgroup_stages(const Shape& shape, const DeviceProps& device, Layout& layout) {
  const std::int64_t room =
      std::min(device.l1_bytes / layout.blocks - kReserved, device.shared_bytes) -
      (layout.repacks_in_cta() ? 0 : kNextRepack);
  layout.choose_passes(shape, device);
  const std::int64_t rest =
      room - kAlignment - (layout.has_own_reduction_smem() ? layout.reduction_bytes(shape) : 0);
  const std::int64_t each = layout.warpgroup_stage_bytes(shape) + Layout::kGroupBarrierBytes;
  const std::int64_t all = layout.passes * layout.block_rounds(shape);
  layout.steps = std::min({rest / each, kMaxStages, all});
  return layout.steps >= std::min<std::int64_t>(3, all) && layout.shared_bytes(shape) <= room;
}

}  // namespace

std::int64_t SkinnyLayout::acc_buffers(const Shape& shape) const {
  const std::int64_t warps = warps_n * warps_k, columns = shape.columns();
  return has_limbs() && (columns == 32 || (columns == 16 && warps > 12)) ? 1 : 2;
}

std::int64_t SkinnyLayout::packed_x_bytes(const Shape& shape) const {
  const std::int64_t numbers = shape.columns() * chunk_k(shape, *this);
  if (!has_limbs()) return numbers * 2;  // see kernels/gemm_skinny_repack.cuh
  // See kernels/gemm_skinny_limbs.cuh: limbs, and a power of two per row and step.
  constexpr std::int64_t kBox = 128;  // alignment of TMA boxes
  return numbers * planes() + ceil_div(shape.columns() * chunk / kStepBytes * 4, kBox) * kBox;
}

std::int64_t SkinnyLayout::warpgroup_stage_bytes(const Shape& shape) const {
  // See kernels/gemm_skinny_warpgroup_load.cuh.
  std::int64_t bytes = rows(shape) * chunk + packed_x_bytes(shape);
  if (shape.scale_block > 0)
    bytes += chunk_k(shape, *this) / shape.scale_block * rows(shape) *
             bit_width(shape.scales().dtype) / 8;
  return ceil_div(bytes, kAlignment) * kAlignment;
}

std::int64_t SkinnyLayout::repack_rows(const Shape& shape) const {
  constexpr std::int64_t kTile = 8;
  if (!has_limbs()) return kTile;
  // Fewer rows per item as long as the chunk has enough steps for the remaining lanes.
  std::int64_t at_once = kTile;
  while (at_once / 2 >= shape.m && kTile / (at_once / 2) <= chunk / kStepBytes) at_once /= 2;
  return at_once;
}

std::int64_t SkinnyLayout::repack_turns(const Shape& shape, std::int64_t chunks) const {
  return ceil_div(chunks * repack_units(shape, *this), helpers - 1);
}

std::vector<SkinnyLayout> warpgroup_layouts(const Shape& shape, const DeviceProps& device,
                                            std::size_t most) {
  if (!shape.fits_wgmma(device)) return {};
  FastestLayouts best;
  // Some of each variant (pairs or limbs, pre-pass or repack warps), whatever the estimates.
  constexpr std::size_t kPerVariant = 4;
  std::map<std::pair<bool, bool>, FastestLayouts> variants;
  const auto consider = [&](Layout layout) {
    if (layout.rows(shape) > kMaxRows || layout.chunk > shape.row_bytes()) return;
    if (chunk_k(shape, layout) % kBlockK != 0) return;
    const std::int64_t steps = layout.chunk / kStepBytes / layout.warps_k;
    if (layout.tiles * steps < 2) return;  // pieces are processed in pairs
    const std::int64_t registers = registers_left(layout);
    if (std::min<std::int64_t>(registers, 255) < registers_of(shape, layout)) return;
    if (layout.rounds(shape) <= (layout.split - 1) * layout.block_rounds(shape)) return;
    if (shape.scale_block > 0 && chunk_k(shape, layout) % shape.scale_block != 0) return;
    if (!choose_warpgroup_stages(shape, device, layout)) return;
    if (layout.split > 1 && layout.passes > 1)
      return;  // helper warps join the cluster barriers of a single unit
    const double seconds = layout.seconds(shape, device);
    const FastestLayouts::Kind kind = {
        layout.tiles, layout.warps_n, layout.warps_k,    layout.split,
        layout.chunk, layout.limbs,   layout.block_rows, layout.repacks_in_cta() ? 1 : 0};
    best.consider(kind, seconds, layout);
    variants[{layout.has_limbs(), layout.repacks_in_cta()}].consider(kind, seconds, layout);
  };
  const auto consider_rows = [&](Layout layout) {
    consider(layout);
    layout.block_rows = even_rows(shape, layout, device);
    const std::int64_t idle = layout.rows_of_warps(shape) - layout.block_rows;
    if (idle > 0 && idle < 4 * layout.warp_rows(shape)) consider(layout);  // no whole warpgroup
  };
  Layout layout;
  for (layout.tiles = 1; layout.tiles <= 2; ++layout.tiles)
    for (layout.warps_k = 1; layout.warps_k <= 4; layout.warps_k *= 2)
      for (layout.warps_n = 4; layout.warps_n * layout.warps_k <= 16; layout.warps_n += 4)
        for (layout.split = 1; layout.split <= 4; layout.split *= 2)
          for (layout.blocks = 1; layout.blocks <= 2; ++layout.blocks)
            for (layout.chunk = 128; layout.chunk <= 512; layout.chunk *= 2) {
              layout.limbs = 0;
              layout.helpers = 1;
              consider_rows(layout);
              // One repack warp fewer leaves more registers.
              for (const std::int64_t warps : {kMaxOrderWarps - 1, kMaxOrderWarps}) {
                layout.helpers = 1 + std::min(repack_units(shape, layout), warps);
                consider_rows(layout);
              }
              if (!shape.has_small_integers()) continue;
              layout.limbs = 1;
              // Repack warps for up to 8 rows of x: with 16 rows they take a fifth longer than the
              // pre-pass, with 32 twice as long. Fewer repack warps leave more registers.
              const std::int64_t max_helpers = shape.m <= 8 ? 1 + kMaxOrderWarps : 1;
              for (layout.helpers = 1; layout.helpers <= max_helpers; ++layout.helpers)
                consider_rows(layout);
            }
  std::vector<Layout> result = best.first(most);
  for (const auto& [way, fastest] : variants)
    for (const Layout& one : fastest.first(kPerVariant))
      if (std::none_of(result.begin(), result.end(),
                       [&](const Layout& other) { return other.knobs() == one.knobs(); }))
        result.push_back(one);
  return result;
}

}  // namespace ashlar::cuda

// Candidate layouts of the skinny GEMM with TMA bulk loads.
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/gemm_skinny_shape.hpp"

namespace ashlar::cuda {

namespace {

using Layout = SkinnyLayout;
using Shape = SkinnyShape;

constexpr std::int64_t kStepBytes = 64;      // of a row, per step of a warp
constexpr std::int64_t kReserved = 1 << 10;  // shared memory reserved per CTA
constexpr std::int64_t kMaxStages = 8;

std::int64_t chunk_k(const Shape& shape, const Layout& layout) {
  return layout.chunk * 8 / shape.bits();
}
std::int64_t groups_of_chunk(const Shape& shape, const Layout& layout) {
  return shape.scale_block > 0 ? chunk_k(shape, layout) / shape.scale_block : 0;
}
std::int64_t scale_bytes(const Shape& shape) {
  return shape.scale_block > 0 ? bit_width(shape.scales().dtype) / 8 : 0;
}

std::int64_t registers_of(const Shape& shape, const Layout& layout) {
  const std::int64_t m = ceil_div(shape.m, 8);
  const std::int64_t accumulators = layout.tiles * m * 4 * (shape.scale_block > 0 ? 2 : 1);
  const std::int64_t offset = shape.keeps_offset() ? m * 4 : 0;
  return 64 + accumulators + offset + 2 * layout.tiles * 4 + m * 4;
}

}  // namespace

std::int64_t SkinnyLayout::stage_bytes(const Shape& shape) const {
  // See kernels/gemm_skinny_tma.cuh.
  const std::int64_t apart = shape.bits() == 4 && shape.m > 8 ? 32 : 64;
  const std::int64_t pitch = chunk + (128 + apart - chunk % 128) % 128;
  const std::int64_t x_pitch = shape.bits() < 16 ? chunk_k(shape, *this) * 2 + 16 : pitch;
  return rows(shape) * pitch + shape.m * x_pitch +
         groups_of_chunk(shape, *this) * rows(shape) * scale_bytes(shape);
}

bool SkinnyLayout::choose_stages(const Shape& shape, const DeviceProps& device) {
  const std::int64_t room = std::min(device.l1_bytes / blocks - kReserved, device.shared_bytes);
  choose_passes(shape, device);
  const std::int64_t each = stage_bytes(shape) + SkinnyLayout::kBarrierBytes;
  const std::int64_t accumulators = has_own_reduction_smem() ? reduction_bytes(shape) : 0;
  steps = std::min({(room - accumulators) / each, kMaxStages, passes * block_rounds(shape)});
  if (shared_bytes(shape) > room) return false;
  return steps >= std::min<std::int64_t>(3, passes * block_rounds(shape));
}

std::vector<SkinnyLayout> tma_layouts(const Shape& shape, const DeviceProps& device,
                                      std::size_t most) {
  if (!shape.fits_tma(device)) return {};
  FastestLayouts best;  // over layouts that differ only in the number of warps
  const auto consider = [&](Layout layout) {
    const std::int64_t warps = layout.warps_n * layout.warps_k;
    if (warps < 4 || warps > 16 || layout.rows(shape) > 512) return;
    const std::int64_t registers = registers_of(shape, layout);
    if (registers > 248 ||
        registers * ceil_div(layout.threads() * layout.blocks, 128) * 128 > (64 << 10))
      return;
    if (layout.rounds(shape) <= (layout.split - 1) * layout.block_rounds(shape)) return;
    if (shape.scale_block > 0 && chunk_k(shape, layout) % shape.scale_block != 0) return;
    if (layout.chunk > shape.row_bytes() && layout.chunk > kStepBytes * layout.warps_k) return;
    if (!layout.choose_stages(shape, device)) return;
    best.consider({layout.tiles, layout.split, layout.blocks, layout.chunk},
                  layout.seconds(shape, device), layout);
  };
  Layout layout;
  for (layout.tiles = 1; layout.tiles <= 4; layout.tiles *= 2)
    for (layout.warps_k = 1; layout.warps_k <= 16; layout.warps_k *= 2)
      for (layout.warps_n = 1; layout.warps_n * layout.warps_k <= 16; ++layout.warps_n)
        for (layout.split = 1; layout.split <= 2; ++layout.split)
          for (layout.blocks = 1; layout.blocks <= 4; ++layout.blocks)
            for (layout.chunk = std::max<std::int64_t>(256, kStepBytes * layout.warps_k);
                 layout.chunk <= std::min<std::int64_t>(2048, kStepBytes * layout.warps_k * 4);
                 layout.chunk *= 2)
              consider(layout);
  return best.first(most);
}

}  // namespace ashlar::cuda

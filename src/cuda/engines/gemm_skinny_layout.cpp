// Layouts of the skinny GEMM: derived sizes, and candidates of the cp.async kernel.
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/gemm_skinny_shape.hpp"

namespace ashlar::cuda {

namespace {

using Layout = SkinnyLayout;
using Shape = SkinnyShape;

constexpr std::int64_t kReserved = 1 << 10;  // shared memory reserved per CTA
constexpr std::int64_t kMaxSteps = 16;
constexpr std::int64_t kPipeline = 64 << 10;  // bytes per SM; more is not faster

std::int64_t elements(const Shape& shape) { return shape.packet_bytes() * 8 / shape.bits(); }
std::int64_t own_k(const Shape& shape) {
  return shape.k_major ? elements(shape) : shape.uses_mma() ? 8 : 4;
}
std::int64_t packets(const Shape& shape, const Layout& layout) {
  return shape.k_major ? 2 * layout.tiles : own_k(shape);
}
// Bytes of x for one step of all warps along K.
std::int64_t x_bytes(const Shape& shape, const Layout& layout) {
  return layout.warps_k * layout.step_k(shape) * shape.m * bit_width(shape.type) / 8;
}
// Bytes of block scales for a phase.
std::int64_t scale_bytes(const Shape& shape, const Layout& layout) {
  if (shape.scale_block == 0) return 0;
  const std::int64_t k = layout.phase * layout.warps_k * layout.step_k(shape);
  return (ceil_div(k, shape.scale_block) + 1) * layout.rows(shape) * 2;
}
// Accumulators per lane.
std::int64_t accumulators(const Shape& shape, const Layout& layout) {
  const std::int64_t rows = shape.k_major ? 2 * layout.tiles : elements(shape);
  return shape.uses_mma() ? rows * 2 * ceil_div(shape.m, 8) : rows * shape.m;
}

// Registers per thread, estimated.
std::int64_t registers_of(const Shape& shape, const Layout& layout) {
  const std::int64_t factors =
      shape.uses_mma() ? 4 * ceil_div(shape.m, 8) : 4 * packets(shape, layout);
  return 72 + accumulators(shape, layout) + packets(shape, layout) * shape.packet_bytes() / 4 +
         factors;
}

// Whether copies of x (or scales) for the next phase have landed when it starts: every phase, also
// the last one of a K slice, must have at least steps - 1 steps.
bool phases_are_long_enough(const Shape& shape, const Layout& layout) {
  if (layout.buffers_x(shape) == 1) return true;
  const std::int64_t rounds = layout.block_rounds(shape);
  for (const std::int64_t length : {rounds, layout.rounds(shape) - (layout.split - 1) * rounds})
    for (const std::int64_t part : {std::min(layout.phase, length), length % layout.phase})
      if (part != 0 && part < layout.steps - 1) return false;
  return true;
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> SkinnyLayout::knobs() const {
  return {{"tiles", tiles},     {"warps_n", warps_n}, {"warps_k", warps_k},
          {"split", split},     {"blocks", blocks},   {"steps", steps},
          {"phase", phase},     {"passes", passes},   {"chunk", chunk},
          {"helpers", helpers}, {"digits", limbs},    {"block_rows", block_rows}};
}
SkinnyLayout::SkinnyLayout(const Config& config)
    : tiles(config.knob("tiles")),
      warps_n(config.knob("warps_n")),
      warps_k(config.knob("warps_k")),
      split(config.knob("split")),
      blocks(config.knob("blocks")),
      steps(config.knob("steps")),
      phase(config.knob("phase")),
      passes(config.knob("passes")),
      chunk(config.knob("chunk")),
      helpers(config.knob("helpers")),
      limbs(config.knob("digits")),
      block_rows(config.knob("block_rows")) {}

std::int64_t SkinnyLayout::step_k(const Shape& shape) const { return 4 * own_k(shape); }
std::int64_t SkinnyLayout::warp_rows(const Shape& shape) const {
  return shape.k_major ? 16 * tiles : 8 * elements(shape);
}
std::int64_t SkinnyLayout::rounds(const Shape& shape) const {
  if (chunk > 0) return ceil_div(shape.row_bytes(), chunk);
  return ceil_div(shape.k, step_k(shape) * warps_k);
}
std::int64_t SkinnyLayout::block_rounds(const Shape& shape) const {
  return ceil_div(rounds(shape), split);
}
std::int64_t SkinnyLayout::buffers_x(const Shape& shape) const {
  return phase < block_rounds(shape) || (shape.batches > 1 && passes > 1) ? 2 : 1;
}
std::int64_t SkinnyLayout::buffers_scales(const Shape& shape) const {
  return shape.scale_block > 0 && (phase < block_rounds(shape) || passes > 1) ? 2 : 1;
}
std::int64_t SkinnyLayout::step_bytes(const Shape& shape) const {
  return threads() * packets(shape, *this) * shape.packet_bytes();
}
std::int64_t SkinnyLayout::shared_bytes(const Shape& shape) const {
  const std::int64_t accumulators = reduction_bytes(shape);
  if (helpers > 0) {
    constexpr std::int64_t kAlignment = 1024;  // of stages
    const std::int64_t stages = steps * warpgroup_stage_bytes(shape);
    return kAlignment +
           (has_own_reduction_smem() ? stages + accumulators : std::max(stages, accumulators)) +
           steps * kGroupBarrierBytes;
  }
  if (chunk > 0) {
    const std::int64_t stages = steps * stage_bytes(shape);
    return (has_own_reduction_smem() ? stages + accumulators : std::max(stages, accumulators)) +
           steps * kBarrierBytes;
  }
  return steps * step_bytes(shape) + buffers_x(shape) * phase * x_bytes(shape, *this) +
         buffers_scales(shape) * scale_bytes(shape, *this) + accumulators;
}
std::int64_t SkinnyLayout::reduction_bytes(const Shape& shape) const {
  if (helpers == 0) return warps_k * rows_per_pass(shape) * (rows(shape) + 4) * 4;
  // See kernels/gemm_skinny_warpgroup_epilogue.cuh.
  const std::int64_t places = split == 1 && has_own_reduction_smem() ? 2 : 1;
  const std::int64_t pitch = ceil_div(rows(shape) / split, 16) * 16 + 4;
  return places * split * warps_k * rows_per_pass(shape) * pitch * 4;
}
std::int64_t SkinnyLayout::rows_per_pass(const Shape& shape) const {
  constexpr std::int64_t kTile = 8;
  if (helpers > 0 && passes == 1) return shape.m;
  return chunk > 0 && split == 1 ? std::min(shape.m, kTile) : shape.m;
}
std::int64_t SkinnyLayout::groups(const Shape& shape) const {
  return ceil_div(shape.n, rows(shape));
}
std::int64_t SkinnyLayout::grid(const Shape& shape) const {
  return ceil_div(groups(shape) * shape.batches, passes) * split;
}
void SkinnyLayout::choose_passes(const Shape& shape, const DeviceProps& device) {
  const std::int64_t units = groups(shape) * shape.batches;
  passes = ceil_div(units, clusters_at_once(device, split) * blocks);
  // x of the next batch would not have landed in time.
  if (chunk == 0 && !phases_are_long_enough(shape, *this)) passes = 1;
}

bool SkinnyLayout::choose_lengths(const Shape& shape, const DeviceProps& device,
                                  std::int64_t pipeline_bytes) {
  const std::int64_t room = std::min(device.l1_bytes / blocks - kReserved, device.shared_bytes);
  const std::int64_t rounds = block_rounds(shape);
  const auto fits = [&] {
    return shared_bytes(shape) <= room && phases_are_long_enough(shape, *this);
  };
  steps = std::clamp<std::int64_t>(pipeline_bytes / blocks / step_bytes(shape), 3, kMaxSteps);
  for (; steps >= 3; --steps)
    for (std::int64_t parts = 1; parts <= rounds; ++parts) {
      phase = ceil_div(rounds, parts);
      choose_passes(shape, device);
      if (fits()) return true;
      if (phase < steps - 1) break;
    }
  return false;
}

std::vector<SkinnyLayout> skinny_layouts(const Shape& shape, const DeviceProps& device) {
  std::vector<Layout> result = warpgroup_layouts(shape, device);
  for (const Layout& layout : tma_layouts(shape, device)) result.push_back(layout);
  const std::size_t others = result.empty() ? 16 : 4;
  for (const Layout& layout : cp_async_layouts(shape, device, others)) result.push_back(layout);
  return result;
}

void FastestLayouts::consider(const Kind& kind, double seconds, const SkinnyLayout& layout) {
  const auto found = best_.find(kind);
  if (found == best_.end() || seconds < found->second.first)
    best_.insert_or_assign(kind, std::pair(seconds, layout));
}

std::vector<SkinnyLayout> FastestLayouts::first(std::size_t most) const {
  std::vector<std::pair<double, SkinnyLayout>> sorted;
  for (const auto& [kind, one] : best_) sorted.push_back(one);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<SkinnyLayout> result;
  for (std::size_t i = 0; i < std::min(sorted.size(), most); ++i)
    result.push_back(sorted[i].second);
  return result;
}

namespace {

// Candidates with the given cluster sizes.
std::vector<Layout> cp_async_layouts(const Shape& shape, const DeviceProps& device,
                                     const std::vector<std::int64_t>& splits, std::size_t most) {
  FastestLayouts best;  // over layouts that differ only in the number of warps
  Layout layout;
  for (layout.tiles = 1; layout.tiles <= (shape.k_major ? 4 : 1); layout.tiles *= 2)
    for (layout.warps_k = 1; layout.warps_k <= 16; layout.warps_k *= 2)
      for (layout.warps_n = 1; layout.warps_n * layout.warps_k <= 16; ++layout.warps_n)
        for (const std::int64_t split : splits)
          for (layout.blocks = 1; layout.blocks <= 4; layout.blocks *= 2) {
            layout.split = split;
            const std::int64_t warps = layout.warps_n * layout.warps_k;
            if (warps < 4 || warps * layout.blocks < 8 || warps * layout.blocks > 32) continue;
            const std::int64_t registers = registers_of(shape, layout);
            if (accumulators(shape, layout) > 128 ||
                registers * layout.threads() * layout.blocks > (64 << 10))
              continue;
            if (layout.rounds(shape) <= (layout.split - 1) * layout.block_rounds(shape)) continue;
            if (layout.warps_k > 1 && layout.step_k(shape) * (layout.warps_k / 2) >= shape.k)
              continue;
            if (!layout.choose_lengths(shape, device, kPipeline)) continue;
            best.consider({layout.tiles, layout.warps_k, layout.split, layout.blocks},
                          layout.seconds(shape, device), layout);
          }
  return best.first(most);
}

}  // namespace

std::vector<SkinnyLayout> cp_async_layouts(const Shape& shape, const DeviceProps& device,
                                           std::size_t most) {
  if (device.compute_capability < 90) return cp_async_layouts(shape, device, {1}, most);
  // Large clusters leave SMs idle: only where clusters of two would leave more SMs idle, or have no
  // room for x.
  constexpr std::int64_t kFewRows = 32;
  if (ceil_div(shape.n, kFewRows) * shape.batches * 2 >= device.compute_units)
    if (std::vector<Layout> some = cp_async_layouts(shape, device, {1, 2}, most); !some.empty())
      return some;
  return cp_async_layouts(shape, device, {1, 2, 4, 8}, most);
}

}  // namespace ashlar::cuda

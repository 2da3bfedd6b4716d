// How blocks share out the weights of a product with few rows.
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/gemm_skinny_shape.hpp"

namespace ashlar::cuda {

namespace {

using Layout = SkinnyLayout;
using Shape = SkinnyShape;

constexpr std::int64_t kReserved = 1 << 10;  // of shared memory, for each block
constexpr std::int64_t kMostSteps = 16;
constexpr std::int64_t kRing = 64 << 10;  // bytes of a multiprocessor; more is not faster

std::int64_t elements(const Shape& shape) { return shape.packet_bytes() * 8 / shape.bits(); }
std::int64_t own_depth(const Shape& shape) {
  return shape.along ? elements(shape) : shape.matrix() ? 8 : 4;
}
std::int64_t packets(const Shape& shape, const Layout& layout) {
  return shape.along ? 2 * layout.tiles : own_depth(shape);
}
// Of x, for one step of all warps with the same rows.
std::int64_t x_bytes(const Shape& shape, const Layout& layout) {
  return layout.warps_k * layout.step_depth(shape) * shape.few * bit_width(shape.type) / 8;
}
// Of scales of weights, for a phase.
std::int64_t scale_bytes(const Shape& shape, const Layout& layout) {
  if (shape.scale_block == 0) return 0;
  const std::int64_t depth = layout.phase * layout.warps_k * layout.step_depth(shape);
  return (ceil_div(depth, shape.scale_block) + 1) * layout.rows(shape) * 2;
}
// Sums that a lane holds.
std::int64_t sums(const Shape& shape, const Layout& layout) {
  const std::int64_t rows = shape.along ? 2 * layout.tiles : elements(shape);
  return shape.matrix() ? rows * 2 * ceil_div(shape.few, 8) : rows * shape.few;
}

// Registers of a thread, about.
std::int64_t registers_of(const Shape& shape, const Layout& layout) {
  const std::int64_t factors =
      shape.matrix() ? 4 * ceil_div(shape.few, 8) : 4 * packets(shape, layout);
  return 72 + sums(shape, layout) + packets(shape, layout) * shape.packet_bytes() / 4 + factors;
}

// Whether copies of x (or scales) for the next phase have arrived when it starts: enough steps lie
// between, also in the last phase of a part of the depth.
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
  return {{"tiles", tiles},          {"warps_n", warps_n}, {"warps_k", warps_k}, {"split", split},
          {"blocks", blocks},        {"steps", steps},     {"phase", phase},     {"passes", passes},
          {"chunk", chunk},          {"batch", batch},     {"helpers", helpers}, {"digits", digits},
          {"block_rows", block_rows}};
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
      batch(config.knob("batch")),
      helpers(config.knob("helpers")),
      digits(config.knob("digits")),
      block_rows(config.knob("block_rows")) {}

std::int64_t SkinnyLayout::step_depth(const Shape& shape) const { return 4 * own_depth(shape); }
std::int64_t SkinnyLayout::warp_rows(const Shape& shape) const {
  return shape.along ? 16 * tiles : 8 * elements(shape);
}
std::int64_t SkinnyLayout::rounds(const Shape& shape) const {
  if (chunk > 0) return ceil_div(shape.row_bytes(), chunk);
  return ceil_div(shape.depth, step_depth(shape) * warps_k);
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
  const std::int64_t sums = sum_bytes(shape);
  if (helpers > 0) {
    constexpr std::int64_t kAlignment = 1024;  // of stages
    const std::int64_t stages = steps * group_stage_bytes(shape);
    return kAlignment + (has_sums_apart() ? stages + sums : std::max(stages, sums)) +
           steps * kGroupBarrierBytes;
  }
  if (chunk > 0) {
    const std::int64_t stages = steps * stage_bytes(shape);
    return (has_sums_apart() ? stages + sums : std::max(stages, sums)) + steps * kBarrierBytes;
  }
  if (batch > 0) return sums;
  return steps * step_bytes(shape) + buffers_x(shape) * phase * x_bytes(shape, *this) +
         buffers_scales(shape) * scale_bytes(shape, *this) + sums;
}
std::int64_t SkinnyLayout::sum_bytes(const Shape& shape) const {
  if (helpers == 0) return warps_k * few_at_once(shape) * (rows(shape) + 4) * 4;
  // See kernels/gemm_skinny_group_finish.cuh.
  const std::int64_t places = split == 1 && has_sums_apart() ? 2 : 1;
  const std::int64_t pitch = ceil_div(rows(shape) / split, 16) * 16 + 4;
  return places * split * warps_k * few_at_once(shape) * pitch * 4;
}
std::int64_t SkinnyLayout::few_at_once(const Shape& shape) const {
  constexpr std::int64_t kTile = 8;
  if (helpers > 0 && passes == 1) return shape.few;
  return chunk + batch > 0 && split == 1 ? std::min(shape.few, kTile) : shape.few;
}
std::int64_t SkinnyLayout::groups(const Shape& shape) const {
  return ceil_div(shape.many, rows(shape));
}
std::int64_t SkinnyLayout::grid(const Shape& shape) const {
  return ceil_div(groups(shape) * shape.batches, passes) * split;
}
void SkinnyLayout::choose_passes(const Shape& shape, const DeviceProps& device) {
  const std::int64_t units = groups(shape) * shape.batches;
  passes = ceil_div(units, clusters_at_once(device, split) * blocks);
  // x of the next batch would come too late.
  if (chunk == 0 && !phases_are_long_enough(shape, *this)) passes = 1;
}

bool SkinnyLayout::choose_lengths(const Shape& shape, const DeviceProps& device,
                                  std::int64_t ring_bytes) {
  const std::int64_t room = std::min(device.l1_bytes / blocks - kReserved, device.shared_bytes);
  const std::int64_t rounds = block_rounds(shape);
  const auto fits = [&] {
    return shared_bytes(shape) <= room && phases_are_long_enough(shape, *this);
  };
  steps = std::clamp<std::int64_t>(ring_bytes / blocks / step_bytes(shape), 3, kMostSteps);
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
  std::vector<Layout> result = layouts_by_groups(shape, device);
  for (const Layout& layout : layouts_by_rows(shape, device)) result.push_back(layout);
  for (const Layout& layout : direct_layouts(shape, device)) result.push_back(layout);
  const std::size_t others = result.empty() ? 16 : 4;
  for (const Layout& layout : layouts_by_threads(shape, device, others)) result.push_back(layout);
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

// With clusters of so many blocks.
std::vector<Layout> layouts_by_threads(const Shape& shape, const DeviceProps& device,
                                       const std::vector<std::int64_t>& splits, std::size_t most) {
  FastestLayouts best;  // of those that differ in the number of warps alone
  Layout layout;
  for (layout.tiles = 1; layout.tiles <= (shape.along ? 4 : 1); layout.tiles *= 2)
    for (layout.warps_k = 1; layout.warps_k <= 16; layout.warps_k *= 2)
      for (layout.warps_n = 1; layout.warps_n * layout.warps_k <= 16; ++layout.warps_n)
        for (const std::int64_t split : splits)
          for (layout.blocks = 1; layout.blocks <= 4; layout.blocks *= 2) {
            layout.split = split;
            const std::int64_t warps = layout.warps_n * layout.warps_k;
            if (warps < 4 || warps * layout.blocks < 8 || warps * layout.blocks > 32) continue;
            const std::int64_t registers = registers_of(shape, layout);
            if (sums(shape, layout) > 128 ||
                registers * layout.threads() * layout.blocks > (64 << 10))
              continue;
            if (layout.rounds(shape) <= (layout.split - 1) * layout.block_rounds(shape)) continue;
            if (layout.warps_k > 1 &&
                layout.step_depth(shape) * (layout.warps_k / 2) >= shape.depth)
              continue;
            if (!layout.choose_lengths(shape, device, kRing)) continue;
            best.consider({layout.tiles, layout.warps_k, layout.split, layout.blocks},
                          layout.seconds(shape, device), layout);
          }
  return best.first(most);
}

}  // namespace

std::vector<SkinnyLayout> layouts_by_threads(const Shape& shape, const DeviceProps& device,
                                             std::size_t most) {
  if (device.compute_capability < 90) return layouts_by_threads(shape, device, {1}, most);
  // Large clusters leave multiprocessors idle: only where pairs would leave more of them, or have
  // no room for x.
  constexpr std::int64_t kFewRows = 32;
  if (ceil_div(shape.many, kFewRows) * shape.batches * 2 >= device.compute_units)
    if (std::vector<Layout> some = layouts_by_threads(shape, device, {1, 2}, most); !some.empty())
      return some;
  return layouts_by_threads(shape, device, {1, 2, 4, 8}, most);
}

}  // namespace ashlar::cuda

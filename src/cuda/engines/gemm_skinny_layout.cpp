// How blocks share out the weights of a product with few rows, and what that should take.
#include <algorithm>
#include <map>

#include "cuda/engines/gemm_skinny_shape.hpp"

namespace ashlar::cuda {

namespace {

using Layout = SkinnyLayout;
using Shape = SkinnyShape;

constexpr std::int64_t kReserved = 1 << 10;  // of shared memory, for each block
constexpr std::int64_t kMostSteps = 16;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
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
// Sums that a lane holds.
std::int64_t sums(const Shape& shape, const Layout& layout) {
  const std::int64_t rows = shape.along ? 2 * layout.tiles : elements(shape);
  return shape.matrix() ? rows * 2 * ceil_div(shape.few, 8) : rows * shape.few;
}

// Registers of a thread, about.
std::int64_t registers_of(const Shape& shape, const Layout& layout) {
  const std::int64_t factors = shape.matrix() ? 4 * ceil_div(shape.few, 8) : 4 * packets(shape, layout);
  return 72 + sums(shape, layout) + packets(shape, layout) * shape.packet_bytes() / 4 + factors;
}

// The longest ring and phase that fit; false where none do.
bool choose_lengths(const Shape& shape, const DeviceProps& device, std::int64_t ring_bytes,
                    Layout& layout) {
  const std::int64_t room =
      std::min(device.l1_bytes / layout.blocks - kReserved, device.shared_bytes);
  const std::int64_t rounds = layout.block_rounds(shape);
  const std::int64_t step = layout.step_bytes(shape), x = x_bytes(shape, layout);
  layout.steps = std::clamp<std::int64_t>(ring_bytes / layout.blocks / step, 3,
                                          std::min(kMostSteps, std::max<std::int64_t>(rounds, 3)));
  for (; layout.steps >= 3; --layout.steps) {
    layout.phase = rounds;
    if (layout.shared_bytes(shape) <= room) return true;
    layout.phase = std::min(rounds, (room - layout.steps * step) / (2 * x));
    if (layout.phase >= layout.steps - 1 && layout.phase >= 1 &&
        layout.shared_bytes(shape) <= room)
      return true;
  }
  return false;
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> SkinnyLayout::knobs() const {
  return {{"tiles", tiles},   {"warps_n", warps_n}, {"warps_k", warps_k}, {"split", split},
          {"blocks", blocks}, {"steps", steps},     {"phase", phase}};
}
SkinnyLayout::SkinnyLayout(const Config& config)
    : tiles(config.knob("tiles")),
      warps_n(config.knob("warps_n")),
      warps_k(config.knob("warps_k")),
      split(config.knob("split")),
      blocks(config.knob("blocks")),
      steps(config.knob("steps")),
      phase(config.knob("phase")) {}

std::int64_t SkinnyLayout::step_depth(const Shape& shape) const { return 4 * own_depth(shape); }
std::int64_t SkinnyLayout::warp_rows(const Shape& shape) const {
  return shape.along ? 16 * tiles : 8 * elements(shape);
}
std::int64_t SkinnyLayout::rounds(const Shape& shape) const {
  return ceil_div(shape.depth, step_depth(shape) * warps_k);
}
std::int64_t SkinnyLayout::block_rounds(const Shape& shape) const {
  return ceil_div(rounds(shape), split);
}
std::int64_t SkinnyLayout::buffers(const Shape& shape) const {
  return phase >= block_rounds(shape) ? 1 : 2;
}
std::int64_t SkinnyLayout::step_bytes(const Shape& shape) const {
  return threads() * packets(shape, *this) * shape.packet_bytes();
}
std::int64_t SkinnyLayout::shared_bytes(const Shape& shape) const {
  const std::int64_t stream =
      steps * step_bytes(shape) + buffers(shape) * phase * x_bytes(shape, *this);
  return std::max(stream, warps_k * shape.few * (rows(shape) + 4) * 4);
}
std::int64_t SkinnyLayout::grid(const Shape& shape) const {
  return ceil_div(shape.many, rows(shape)) * split;
}

// Memory gives all its speed to blocks that have enough on the way; what is left is the start, the
// end, and multiprocessors that have more to do than others.
double SkinnyLayout::seconds(const Shape& shape, const DeviceProps& device) const {
  constexpr double kEnough = 48 << 10;  // bytes on the way per multiprocessor
  constexpr double kStart = 1.5e-6, kWave = 0.7e-6, kBarrier = 0.5e-6;
  constexpr double kMostOfOne = 1.2;  // of its share of the memory's speed
  const double fair = device.bytes_per_second * 0.9 / device.compute_units;
  const auto count = static_cast<double>(grid(shape) * shape.batches);
  const double block_bytes = static_cast<double>(block_rounds(shape) * warps_k *
                                                 step_depth(shape) * rows(shape) * shape.bits()) /
                             8;
  const double x_traffic =
      static_cast<double>(block_rounds(shape) * x_bytes(shape, *this)) * count;
  const double all = static_cast<double>(shape.many * shape.depth * shape.batches * shape.bits()) / 8;
  const double per_unit = std::ceil(count / device.compute_units);
  const double at_once = std::min(per_unit, static_cast<double>(blocks));
  const double on_the_way = at_once * static_cast<double>((steps - 1) * step_bytes(shape));
  const double speed = std::min(1.0, on_the_way / kEnough);
  const double memory = (all + 0.2 * x_traffic) / (fair * device.compute_units * speed);
  const double busiest = per_unit * block_bytes / (fair * kMostOfOne * speed);
  const double waves = std::ceil(per_unit / static_cast<double>(blocks));
  return std::max(memory, busiest) + kStart + (waves - 1) * kWave + (split > 1 ? kBarrier : 0);
}

std::vector<SkinnyLayout> skinny_layouts(const Shape& shape, const DeviceProps& device,
                                         std::size_t most) {
  struct Candidate {
    double seconds;
    Layout layout;
  };
  std::vector<std::int64_t> splits = {1};
  if (device.compute_capability >= 90) splits = {1, 2, 4, 8};
  // Of those that differ in the number of warps alone, the best.
  std::map<std::vector<std::int64_t>, Candidate> best;
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
            if (layout.rounds(shape) < layout.split && layout.split > 1) continue;
            if (layout.warps_k > 1 &&
                layout.step_depth(shape) * (layout.warps_k / 2) >= shape.depth)
              continue;
            if (!choose_lengths(shape, device, 128 << 10, layout)) continue;
            const double seconds = layout.seconds(shape, device);
            const std::vector<std::int64_t> kind = {layout.tiles, layout.warps_k, layout.split,
                                                    layout.blocks};
            const auto found = best.find(kind);
            if (found == best.end() || seconds < found->second.seconds)
              best.insert_or_assign(kind, Candidate{seconds, layout});
          }
  std::vector<Candidate> sorted;
  for (const auto& [kind, candidate] : best) sorted.push_back(candidate);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
  std::vector<Layout> result;
  for (std::size_t i = 0; i < std::min(sorted.size(), most); ++i)
    result.push_back(sorted[i].layout);
  return result;
}

}  // namespace ashlar::cuda

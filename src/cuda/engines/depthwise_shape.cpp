#include "cuda/engines/depthwise_shape.hpp"

#include <algorithm>
#include <cmath>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/spatial_axes.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kMaxRegisters = 200;          // for the values of a tile
constexpr std::int64_t kMaxUnrolledProducts = 4096;  // multiply-adds of a tile
constexpr std::int64_t kMaxChannelLanes = 96;
constexpr std::int64_t kMaxThreads = 256, kMaxOfWalk = 512;
constexpr std::int64_t kMaxResidentBlocks = 8;  // per SM
constexpr std::int64_t kFewBlocks = 8;          // CTAs along the channels
constexpr std::int64_t kLeastThreads = 96;      // per CTA, where there is a choice
constexpr std::int64_t kLoopRegisters = 40;     // addresses, loops, products in flight
constexpr std::int64_t kOtherOfWalk = 20, kOtherOfNarrowWalk = 28, kOtherOfFilterWalk = 36,
                       kOtherOfUnrolledWalk = 40;
// Weights per thread in registers; more without conversions, where fewer resident warps suffice.
constexpr std::int64_t kMaxKept = 36, kMaxKeptUnconverted = 49;
constexpr std::size_t kMaxOfKind = 4;  // candidates: rolling tiles, and tiles in registers
// Tiles held in registers stall on each of their rows and reload their halo rows.
constexpr double kTileSlowdown = 2.5;
// Measured on the H200 with 3 x 3 filters, NHWC: smaller without conversions, and with stride 2,
// where a rolling tile would wait for two rows at a time.
constexpr double kTileSlowdownOfSmallFilter = 1.0, kTileSlowdownOfStride = 0.6;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

// Resident warps per SM: each of its four partitions has 512 registers per lane, allocated in
// eights.
std::int64_t resident_warps(const DepthwiseShape& shape, const DepthwiseTile& tile) {
  const bool filter = shape.kind == DepthwiseShape::Kind::filter;
  std::int64_t others = kLoopRegisters;
  if (tile.rolls && filter)
    others = shape.unrolled() == 1 ? kOtherOfFilterWalk : kOtherOfUnrolledWalk;
  else if (tile.rolls)
    others = tile.vector == 1 || shape.stride[1] > 1 ? kOtherOfNarrowWalk : kOtherOfWalk;
  const std::int64_t needed = std::min<std::int64_t>(shape.registers(tile) + others, 255);
  return std::min<std::int64_t>(4 * (512 / (ceil_div(needed, 8) * 8)), 32);
}

PointwiseProgram arranged(const PointwiseProgram& program, const std::vector<int>& order) {
  return program.empty() ? program : reordered(program, order);
}

}  // namespace

Support is_depthwise(const Region& region) {
  const ConvAttributes* op = conv_attributes(region);
  if (op == nullptr) return Support::other_operation("the anchor is not a convolution");
  const bool filter = region.anchor_as<ConvBackwardFilter>() != nullptr;
  const Anchor& anchor = *region.anchor;
  const Dims& x = anchor.inputs[0].dims;
  const Dims& w = filter ? anchor.outputs[0].dims : anchor.inputs[1].dims;
  if (x.rank() < 3 || x.rank() > 5) return Support::no("only 1 to 3 spatial axes are supported");
  const std::int64_t channels =
      region.anchor_as<ConvBackwardData>() ? anchor.outputs[0].dims[1] : x[1];
  if (w[1] != 1 || w[0] != channels)
    return Support::no("not depthwise: {} filters of {} channels for {} channels", w[0], w[1],
                       channels);
  return Support::yes();
}

DepthwiseShape::DepthwiseShape(const Region& region)
    : kind(region.anchor_as<ConvForward>()        ? Kind::forward
           : region.anchor_as<ConvBackwardData>() ? Kind::data
                                                  : Kind::filter),
      op(conv_attributes(region)),
      from(region.prologues[0]),
      precision(region.precision()) {
  const int rank = from.space.rank();
  const bool filter = kind == Kind::filter;
  const std::vector<int> filter_order = with_spatial_axes(rank, {0}, {});
  to = filter ? region.prologues[ConvBackwardFilter::dy] : region.epilogue;
  weights = arranged(filter ? region.epilogue : region.prologues[1], filter_order);
  static_assert(ConvForward::z == 2 && ConvBackwardData::z == 2 && ConvBackwardFilter::z == 2);
  const PointwiseProgram addend = op->beta != 0.0 ? input_program(region, 2) : PointwiseProgram{};
  images = from.space[0];
  channels = from.space[1];
  from_extent = spatial_of(from.space);
  to_extent = spatial_of(to.space);
  for (std::size_t axis = 0; axis < 3; ++axis)
    window[axis] = weights.space[static_cast<int>(axis) + 1];
  stride = per_axis(op->stride, 1);
  dilation = per_axis(op->dilation, 1);
  padding = per_axis(op->padding, 0);
  columns = choose_row_axis(from.space, {&from}) == 1;
  const std::vector<int> order =
      columns ? with_spatial_axes(rank, {0}, {1}) : with_spatial_axes(rank, {0, 1}, {});
  from = reordered(from, order);
  to = reordered(to, order);
  z = arranged(filter ? PointwiseProgram{} : addend, order);
  weights_z = arranged(filter ? addend : PointwiseProgram{}, filter_order);
}

DepthwiseShape::Span DepthwiseShape::span(std::size_t axis, std::int64_t count,
                                          std::int64_t count_taps) const {
  const std::int64_t reach = (count_taps - 1) * dilation[axis];
  if (!backward()) {
    const std::int64_t first = kind == Kind::filter ? 0 : -padding[axis];
    return {first, (count - 1) * stride[axis] + reach + 1};
  }
  const std::int64_t first = floor_div(padding[axis] - reach, stride[axis]);
  return {first, floor_div(count - 1 + padding[axis], stride[axis]) - first + 1};
}

bool DepthwiseShape::is_plain(const PointwiseProgram& program) {
  if (program.steps.size() != 1 || program.result != 0 || !program.stores.empty()) return false;
  const PointwiseProgram::Step& step = program.steps[0];
  if (step.kind != PointwiseProgram::Step::Kind::load || step.round_to) return false;
  const View& view = step.view;  // an all-zero bit pattern must mean 0
  return view.strides[view.strides.rank() - 1] == 1 && bit_width(view.dtype) >= 8 &&
         view.dtype != DType::e8m0 && view.dtype != DType::boolean;
}

bool DepthwiseShape::converts() const {
  return from.precision() == f32 && bit_width(from.steps[0].view.dtype) < 32;
}

bool DepthwiseShape::can_roll() const {
  if (window[0] != 1 || stride[0] != 1 || padding[0] != 0 || dilation[1] != 1) return false;
  return kind != Kind::data || (stride[1] == 1 && stride[2] == 1);
}

bool DepthwiseShape::keeps_weights(const DepthwiseTile& tile) const {
  return window[1] * window[2] * tile.vector <= (converts() ? kMaxKept : kMaxKeptUnconverted);
}

std::int64_t DepthwiseShape::ahead(const DepthwiseTile& tile) const {
  // Few multiply-adds per row do not hide the load latency, the less so for short rows.
  if (!tile.rolls || !converts() || window[1] > 3 || stride[1] != 1) return 1;
  return kind == Kind::filter ? unrolled() : 2;
}

std::int64_t DepthwiseShape::registers(const DepthwiseTile& tile) const {
  const auto waiting = [&](const PointwiseProgram& program) {  // registers per value in flight
    if (!is_plain(program)) return 1.0;
    return std::min(1.0, bit_width(program.steps[0].view.dtype) / 32.0 * (tile.vector > 1 ? 1 : 2));
  };
  const std::int64_t line = span_w(tile).count * tile.vector, strip = tile.w * tile.vector,
                     pixels = tile.h * strip, taps_of_row = window[2] * tile.vector;
  double numbers = 0;
  if (tile.rolls && kind == Kind::filter) {
    const std::int64_t lines = stride[1] * line;
    numbers = static_cast<double>(window[1] * taps_of_row + slots() * strip + lines) +
              static_cast<double>(ahead(tile)) * (static_cast<double>(lines) * waiting(from) +
                                                  static_cast<double>(strip) * waiting(to));
  } else if (tile.rolls) {
    const std::int64_t weights_kept =
        keeps_weights(tile) ? window[1] * taps_of_row : 2 * tile.vector;
    numbers = static_cast<double>(slots() * strip + weights_kept) +
              static_cast<double>(stride[1] * line) *
                  (1.0 + static_cast<double>(ahead(tile)) * waiting(from));
  } else {
    numbers = static_cast<double>(pixels + line) + static_cast<double>(line) * waiting(from) +
              static_cast<double>((kind == Kind::filter ? tile.part : std::min(tile.h, window[1])) *
                                  taps_of_row);
  }
  return static_cast<std::int64_t>(numbers) * (precision == f64 ? 2 : 1);
}

std::int64_t DepthwiseShape::tile_count(const DepthwiseTile& tile) const {
  return images * to_extent[0] * ceil_div(to_extent[1], tile.h) * ceil_div(to_extent[2], tile.w);
}

// Instructions of a thread per tile: multiply-adds, loads and conversions, weights, stores.
double DepthwiseShape::instructions(const DepthwiseTile& tile) const {
  const bool filter = kind == Kind::filter;
  const double taps_of_row = static_cast<double>(window[2]), vector = tile.vector;
  const double per_load = 1.5 + (converts() ? vector : 0.0);
  const double line = static_cast<double>(span_w(tile).count), strip = static_cast<double>(tile.w);
  const double width =
      converts() ? bit_width(from.steps[0].view.dtype) / 32.0 : 1.0;  // in 32-bit words
  if (tile.rolls) {
    const double taps = taps_of_row * static_cast<double>(window[1]);
    const std::int64_t rows = std::min(tile.h, to_extent[1]);
    const double steps = static_cast<double>(rows < to_extent[1] ? rows + slots() - 1 : rows);
    const double moves = unrolled() == 1 ? static_cast<double>(slots() - 1) * strip * vector : 0.0;
    const double loads = line * static_cast<double>(stride[1]) + (filter ? strip : 0.0);
    const double weights_read = filter || keeps_weights(tile) ? 0.0 : taps;
    // A row of one channel is stored as a vector, or element by element.
    const double store = vector_stores(tile) ? 2.0 : columns ? 1.5 + vector : 12.0;
    const double others = filter ? moves : weights_read + strip * store;
    // Words through the load/store unit that four schedulers share; half of that time is hidden.
    const double words = weights_read * vector + loads * std::max(vector * width, 1.0);
    return steps * (taps * strip * vector + loads * per_load + others + 2.0 * words + 30.0);
  }
  const double rows = static_cast<double>(filter ? tile.part : window[1]);
  const double pixels = static_cast<double>(tile.h * tile.w);
  const double strides = backward() ? static_cast<double>(stride[1] * stride[2]) : 1.0;
  const double loads = static_cast<double>(span_h(tile).count) * line + (filter ? pixels : 0.0);
  const double parts = filter ? static_cast<double>(ceil_div(window[1], tile.part)) : 1.0;
  return parts * (rows * taps_of_row * pixels * vector / strides + loads * per_load +
                  loads * std::max(vector * width, 1.0) + 1.5 * rows * taps_of_row +
                  pixels * (3.0 + 2.0 * vector));
}

std::vector<DepthwiseTile> DepthwiseShape::tiles(const DeviceProps& device) const {
  const bool filter = kind == Kind::filter;
  std::vector<int> vectors = {1};
  if (columns) {
    const int widest =
        z.empty() ? packet_length({&from, &to}, 4) : packet_length({&from, &to, &z}, 4);
    for (int vector = 2; vector <= widest; vector *= 2) vectors.push_back(vector);
  }
  double slowdown = kTileSlowdown;
  if (columns && taps() <= 9 && filter && !converts()) slowdown = kTileSlowdownOfSmallFilter;
  if (columns && taps() <= 9 && kind == Kind::forward && stride[1] > 1)
    slowdown = kTileSlowdownOfStride;
  std::vector<std::pair<double, DepthwiseTile>> fitting;
  const auto add = [&](DepthwiseTile tile) {
    if (backward()) {  // tiles start at multiples of the stride
      tile.h = ceil_div(tile.h, stride[1]) * stride[1];
      tile.w = ceil_div(tile.w, stride[2]) * stride[2];
    }
    const std::int64_t rows = tile.rolls ? window[1] : filter ? tile.part : window[1] * tile.h;
    if (rows * window[2] * tile.w * tile.vector > kMaxUnrolledProducts ||
        registers(tile) > kMaxRegisters)
      return;
    // Waves of resident threads, and how well these hide latency.
    const DepthwiseGeometry geometry(*this, tile, 1, device);
    const double at_once = static_cast<double>(geometry.threads * geometry.blocks_at_once);
    const double threads = static_cast<double>(tile_count(tile)) *
                           static_cast<double>(geometry.channel_blocks * geometry.lanes);
    const double rounds = threads / at_once / static_cast<double>(device.compute_units);
    const double time = (tile.rolls ? std::ceil(rounds) : rounds * slowdown) * at_once *
                        instructions(tile) * (1.0 + 128.0 / at_once);
    fitting.emplace_back(time, tile);
  };
  for (const int vector : vectors) {
    if (can_roll())
      for (const std::int64_t wide : {4, 6, 7, 8})
        for (const std::int64_t segments : {1, 2, 4})
          add({vector, ceil_div(to_extent[1], segments), wide, filter ? window[1] : 0, true});
    for (const std::int64_t high : {1, 2, 4})
      for (const std::int64_t wide : {1, 2, 4, 8}) {
        if (!filter) {
          add({vector, high, wide});
          continue;
        }
        for (std::int64_t parts = 1; parts <= window[1]; ++parts)
          if (ceil_div(window[1], parts) * (parts - 1) < window[1])
            add({vector, high, wide, ceil_div(window[1], parts)});
      }
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // Some candidates of both kinds, because autotuning finds what the model misjudges.
  std::vector<DepthwiseTile> result;
  std::array<std::size_t, 2> taken = {0, 0};
  for (const auto& [time, tile] : fitting)
    if (std::find(result.begin(), result.end(), tile) == result.end() &&
        taken[tile.rolls ? 1 : 0]++ < kMaxOfKind)
      result.push_back(tile);
  return result;
}

bool DepthwiseShape::vector_stores(const DepthwiseTile& tile) const {
  if (columns || tile.w == 1 || kind == Kind::filter || (tile.w & (tile.w - 1)) != 0) return false;
  const int wanted = static_cast<int>(tile.w);
  return vector_length(to, wanted) == wanted && (z.empty() || vector_length(z, wanted) == wanted);
}

DepthwiseGeometry::DepthwiseGeometry(const DepthwiseShape& shape, const DepthwiseTile& tile,
                                     std::int64_t waves, const DeviceProps& device) {
  const std::int64_t packets = shape.columns ? shape.channels / tile.vector : 1;
  const std::int64_t across = ceil_div(packets, kMaxChannelLanes);
  lanes = ceil_div(packets, across);
  channel_blocks = shape.columns ? across : shape.channels;
  // Threads with rolling tiles are persistent: one wave, unless the channels need many CTAs.
  if (tile.rolls && shape.columns && channel_blocks <= kFewBlocks) waves = 1;
  // Resident threads that registers allow.
  const std::int64_t most = 32 * resident_warps(shape, tile);
  std::int64_t best = 0;
  // NCHW reduces over whole warps of one channel.
  const std::int64_t step = shape.columns ? 1 : 32;
  const std::int64_t max_of_block = std::min(most, tile.rolls ? kMaxOfWalk : kMaxThreads);
  for (std::int64_t rows = max_of_block / lanes; rows > 0; rows -= step) {
    // Whole warps are allocated to the four partitions of the SM.
    const std::int64_t warps = ceil_div(rows * lanes, 32);
    const std::int64_t at_once = std::min<std::int64_t>(most / 32 / warps, kMaxResidentBlocks);
    if (at_once * rows * lanes <= best + best / 8 || (rows * lanes < kLeastThreads && best > 0))
      continue;
    best = at_once * rows * lanes;
    threads = rows * lanes;
    blocks_at_once = at_once;
  }
  const bool filter = shape.kind == DepthwiseShape::Kind::filter;
  const std::int64_t parts = filter ? ceil_div(shape.window[1], tile.part) * shape.window[0] : 1;
  const std::int64_t wanted = device.compute_units * blocks_at_once * waves;
  pixel_blocks = std::clamp<std::int64_t>(wanted / (channel_blocks * parts), 1,
                                          ceil_div(shape.tile_count(tile), threads / lanes));
}

}  // namespace ashlar::cuda

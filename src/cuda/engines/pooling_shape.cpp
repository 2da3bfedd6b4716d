#include "cuda/engines/pooling_shape.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/spatial_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kMaxSegment = 24;         // registers for a row of x
constexpr std::int64_t kMaxUnrolledWindow = 64;  // elements of a window
constexpr std::int64_t kMaxPixels = 1024;  // per image: many images share a CTA's shared memory

const ResampleAttributes& resample_attributes_of(const Region& region) {
  if (const auto* forward = region.anchor_as<ResampleForward>()) return *forward;
  return *region.anchor_as<ResampleBackward>();
}

// Five axes in the order in which kernels index them; `rank` of a tensor is 3 to 5.
std::vector<int> axis_order(int rank, bool columns) {
  const int missing = 5;  // not an axis of the tensor: extent 1
  const std::vector<int> spatial = {rank > 4 ? 2 : missing, rank > 3 ? rank - 2 : missing,
                                    rank - 1};
  if (columns) return {0, spatial[0], spatial[1], spatial[2], 1};
  return {0, 1, spatial[0], spatial[1], spatial[2]};
}

View arranged(const View& view, const std::vector<int>& order) {
  return view.present() ? reordered(plain_load(view), order).steps[0].view : view;
}

}  // namespace

PoolingShape::PoolingShape(const Region& region)
    : op(&resample_attributes_of(region)),
      forward(region.anchor_as<ResampleForward>() != nullptr),
      from(region.prologues[0]),
      to(region.epilogue) {
  static_assert(ResampleForward::x == 0 && ResampleBackward::dy == 0);
  window = per_axis(op->window, 1);
  stride = per_axis(op->stride.empty() ? op->window : op->stride, 1);
  padding = per_axis(op->padding, 0);
  x = spatial_of(forward ? from.space : to.space);
  y = spatial_of(forward ? to.space : from.space);
  images = from.space[0];
  channels = from.space[1];
  columns = channels_are_contiguous({forward ? &from : &to});
  const std::vector<int> order = axis_order(from.space.rank(), columns);
  from = reordered(from, order);
  to = reordered(to, order);
  if (forward) {
    index = arranged(output_view(region, ResampleForward::index), order);
  } else {
    const PointwiseProgram& given = input_program(region, ResampleBackward::index);
    if (!given.empty()) index = arranged(given.steps[0].view, order);
  }
  const int most = precision(region) == f64 ? 4 : 8;
  std::vector<const PointwiseProgram*> parts = {&from};
  const PointwiseProgram winner = index.present() ? plain_load(index) : PointwiseProgram{};
  if (columns) parts.push_back(&to);
  if (columns && index.present()) parts.push_back(&winner);
  vector = packet_length(parts, most);
  // At most 16 bytes of x and y, so that accesses of a warp are coalesced.
  for (const PointwiseProgram* program : {&from, &to})
    if (columns && !program->empty()) vector = std::min(vector, packet_length({program}, most));
}

bool PoolingShape::has_pairs(const Region& region) const {
  if (!columns || !forward || !is_maximum() || vector % 2 != 0) return false;
  if (op->padding_mode != PaddingMode::neg_inf || precision(region) != f32) return false;
  if (from.steps.size() != 1 || from.result != 0 || !from.stores.empty()) return false;
  const PointwiseProgram::Step& step = from.steps[0];
  if (step.kind != PointwiseProgram::Step::Kind::load || step.round_to) return false;
  const View& view = step.view;
  return (view.dtype == bf16 || view.dtype == f16) && view.strides[view.strides.rank() - 1] == 1;
}

std::optional<PoolingShape::Flat> PoolingShape::flat() const {
  const bool whole = window == x && y == Axes{1, 1, 1} && padding == Axes{0, 0, 0};
  if (!whole || index.present() || (is_maximum() && !forward) || pixels() > kMaxPixels) return {};
  Flat result{from, to};
  for (PointwiseProgram* program : {&result.from, &result.to})
    for (int axis = columns ? 2 : 3; axis >= (columns ? 1 : 0); --axis)
      if (!join_axes({program}, axis)) return {};
  return result;
}

bool PoolingShape::stays_inside() const {
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (padding[axis] > 0 || (y[axis] - 1) * stride[axis] + window[axis] > x[axis]) return false;
  return true;
}

bool PoolingShape::by_segments(const PoolingTile& tile) const {
  if (columns) return false;
  if (forward) return tile.w * stride[2] % vector == 0 && span(tile) <= kMaxSegment;
  // The windows that start in a tile's row, as one packet.
  const int own = static_cast<int>(tile.w / stride[2]);
  if (tile.w % stride[2] != 0 || own < 2 || own > 8 || (own & (own - 1)) != 0) return false;
  if (y[2] % own != 0 || vector_length(from, own) != own) return false;
  return !index.present() || vector_length(plain_load(index), own) == own;
}

bool PoolingShape::own_windows_exist(const PoolingTile& tile) const {
  return ceil_div(x[2], tile.w) * (tile.w / stride[2]) <= y[2];
}

bool PoolingShape::vector_stores(const PoolingTile& tile) const {
  if (columns || tile.w == 1 || (tile.w & (tile.w - 1)) != 0) return false;
  const int wanted = static_cast<int>(tile.w);
  if (vector_length(to, wanted) != wanted) return false;
  return !forward || !index.present() || vector_length(plain_load(index), wanted) == wanted;
}

std::vector<PoolingTile> PoolingShape::tiles(bool keeps_positions) const {
  if (flat()) return {{0, 0}, {1, 1}};
  const bool small = window[0] * window[1] * window[2] <= kMaxUnrolledWindow;
  if (!small) return {{1, 1}};
  std::vector<PoolingTile> result;
  const auto add = [&](std::int64_t h, std::int64_t w) {
    h = std::min(h, results()[1]);
    const auto same = [&](const PoolingTile& other) { return other.h == h && other.w == w; };
    if (std::none_of(result.begin(), result.end(), same)) result.push_back({h, w});
  };
  // Backward: tiles that start at multiples of the stride have compile-time window offsets.
  const auto whole = [&](std::size_t axis, std::int64_t wanted) {
    if (forward || stride[axis] > 4) return wanted;
    return (wanted + stride[axis] - 1) / stride[axis] * stride[axis];
  };
  if (columns) {
    // Windows that do not overlap share no loads.
    const bool overlap = window[1] > stride[1] || window[2] > stride[2];
    if (!overlap && forward) add(1, 1);
    // Positions need as many registers as the maxima.
    if (keeps_positions) add(2, 1);
    add(whole(1, 2), whole(2, 2));
    add(whole(1, 1), whole(2, 1));
    if (forward) add(4, 1);
    add(1, 1);
    return result;
  }
  if (!forward) {
    // Rows of 16 bytes, so that stores of a warp are coalesced.
    const std::int64_t wide = std::max(packet_length({&to}, 8), 4);
    add(whole(1, 4), whole(2, wide));
    add(whole(1, 1), whole(2, wide));
    add(whole(1, 1), whole(2, 4));
    add(1, 1);
    return result;
  }
  // Rows of x in whole packets.
  const std::int64_t per_packet = vector % stride[2] == 0 ? vector / stride[2] : vector;
  for (std::int64_t w : {std::max<std::int64_t>(per_packet, 4), std::int64_t{4}, std::int64_t{8}})
    for (std::int64_t h : {4, 2, 1})
      if (by_segments({h, w})) add(h, w);
  add(1, 1);
  return result;
}

View PoolingShape::winners(bool channels_last) const {
  View view;
  const std::int64_t positions = window[0] * window[1] * window[2];
  // 4-bit positions where vectors have whole groups of 8 (NHWC) or 4 (NCHW).
  const bool by_words = (channels_last ? channels % 8 : y[2] % 4) == 0;
  view.dtype = positions <= 16 && by_words ? u4 : positions <= 256 ? u8 : i32;
  view.dims = {images, channels, y[0], y[1], y[2]};
  view.strides = (channels_last ? ashlar::channels_last : row_major).strides_for(view.dims);
  return reordered(plain_load(view), axis_order(5, columns)).steps[0].view;
}

// Positions do not count: they are ints in separate registers.
DType PoolingShape::precision(const Region& region) const {
  const DType compute = region.anchor->compute;
  if (compute == f64 || !is_floating(compute)) return f64;
  return from.precision() == f64 || to.precision() == f64 ? f64 : f32;
}

}  // namespace ashlar::cuda

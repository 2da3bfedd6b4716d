#include "cuda/engines/conv_direct_shape.hpp"

#include <algorithm>
#include <limits>

#include "base/ceil_div.hpp"
#include "cuda/engines/blended_epilogue.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/spatial_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kMaxRunChannels = 4;  // channels up to which taps form contiguous runs

std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return ((a % b) + b) % b; }

constexpr std::size_t kPlane = 2;  // spatial axes, of tensors of rank 3 or 4

// The fewest groups that together have a multiple of a unit of channels and of 8 results.
std::int64_t groups_together(const ConvDirectShape& shape) {
  for (std::int64_t count = 1; count <= 8 && count <= shape.groups; ++count)
    if (shape.groups % count == 0 && count * shape.depth % shape.unit() == 0 &&
        count * shape.results % 8 == 0)
      return count;
  return 1;
}

}  // namespace

ConvDirectShape::ConvDirectShape(const Region& region)
    : kind(region.anchor_as<ConvForward>()        ? Kind::forward
           : region.anchor_as<ConvBackwardData>() ? Kind::data
                                                  : Kind::filter),
      op(conv_attributes(region)),
      element(region.anchor->inputs[0].dtype),
      source(region.prologues[0]) {
  const bool filter = kind == Kind::filter;
  const PointwiseProgram epilogue = blended_epilogue(region);
  result = filter ? region.prologues[1] : epilogue;
  const PointwiseProgram& plain_weights = filter ? epilogue : region.prologues[1];
  const int rank = source.space.rank();
  images = source.space[0];
  source_channels = source.space[1];
  result_channels = result.space[1];
  source_extent = spatial_of<kPlane>(source.space);
  result_extent = spatial_of<kPlane>(result.space);
  taps = spatial_of<kPlane>(plain_weights.space);
  const std::int64_t filters = plain_weights.space[0], channels = plain_weights.space[1];
  groups = std::max<std::int64_t>((kind == Kind::data ? result_channels : source_channels) /
                                      std::max<std::int64_t>(channels, 1),
                                  1);
  depth = kind == Kind::data ? filters / groups : channels;
  results = kind == Kind::data ? channels : filters / groups;
  stride = per_axis<kPlane>(op->stride, 1);
  dilation = per_axis<kPlane>(op->dilation, 1);
  padding = per_axis<kPlane>(op->padding, 0);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (kind != Kind::data) {
      window[axis] = taps[axis];
      step[axis] = stride[axis];
      reach[axis] = dilation[axis];
      first[axis] = -padding[axis];
      grid[axis] = result_extent[axis];
      continue;
    }
    // Result i * stride + phase reads dy at i + d for taps with d * stride = phase + padding - tap.
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = -least;
    for (std::int64_t phase = 0; phase < stride[axis]; ++phase)
      for (std::int64_t tap = 0; tap < taps[axis]; ++tap) {
        const std::int64_t distance = phase + padding[axis] - tap * dilation[axis];
        if (distance % stride[axis] != 0) continue;
        least = std::min(least, distance / stride[axis]);
        most = std::max(most, distance / stride[axis]);
      }
    first[axis] = least;
    window[axis] = most - least + 1;
    step[axis] = reach[axis] = 1;
    phases[axis] = stride[axis];
    grid[axis] = ceil_div(result_extent[axis], stride[axis]);
  }
  merge = groups_together(*this);
  // A tensor with one channel fits either layout.
  std::vector<const PointwiseProgram*> telling;
  for (const PointwiseProgram* program : {&source, &result})
    if (program->space[1] > 1) telling.push_back(program);
  channels_last = channels_are_contiguous(telling);
  const std::vector<int> order = channels_last ? with_spatial_axes<kPlane>(rank, {0}, {1})
                                               : with_spatial_axes<kPlane>(rank, {0, 1}, {});
  source = reordered(source, order);
  result = reordered(result, order);
  weights = reordered(plain_weights, with_spatial_axes<kPlane>(rank, {0, 1}, {}));
}

std::int64_t ConvDirectShape::least_terms() const {
  std::int64_t terms = kind == Kind::filter ? images : depth;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    std::int64_t count = taps[axis] - padding[axis];
    if (kind == Kind::data) count = taps[axis] / (2 * stride[axis]);
    if (kind == Kind::filter) count = result_extent[axis] - padding[axis];
    terms *= std::max<std::int64_t>(count, 1);
  }
  return terms;
}

bool ConvDirectShape::runs() const {
  return groups == 1 && depth <= (element == f32 ? kMaxRunChannels - 1 : kMaxRunChannels) &&
         reach[1] == 1;
}

std::int64_t ConvDirectShape::stored() const {
  if (!channels_last) return phases[1] == 1 ? packet_length({&result}, 8) : 1;
  std::int64_t count = packet_length({&result}, 8);
  while (group_results() % count != 0) count /= 2;
  return count;
}

bool ConvDirectShape::copies(const PointwiseProgram& program) const {
  if (!program.is_plain_load()) return false;
  const View& view = program.steps[0].view;
  const int last = view.strides.rank() - 1;
  return view.dtype == element && (view.strides[last] == 1 || program.space[last] == 1);
}

ConvDirectPatch::ConvDirectPatch(const ConvDirectShape& shape, std::int64_t rows,
                                 std::int64_t columns, std::int64_t groups) {
  const std::int64_t unit = shape.unit(), step = shape.step[1];
  const bool is_short = unit == 8;
  height = (rows - 1) * shape.step[0] + (shape.window[0] - 1) * shape.reach[0] + 1;
  width = (columns - 1) * step + (shape.window[1] - 1) * shape.reach[1] + 1;
  if (!shape.runs()) {
    tap_channels = round_up(shape.group_channels(), unit);
    channels = groups * tap_channels;
    pixel = channels / unit % 2 == 0 ? channels + unit : channels;  // no bank conflicts
    pitch = width * pixel;
    units_of_tap = tap_channels / unit;
    units = shape.window[0] * shape.window[1] * units_of_tap;
  } else {
    const std::int64_t depth = shape.depth;
    const View* view = shape.copies(shape.source) ? &shape.source.steps[0].view : nullptr;
    if (view != nullptr && shape.channels_last && (depth == 1 || view->strides[3] == 1) &&
        (shape.source_extent[1] == 1 || view->strides[2] == depth))
      for (span = is_short ? 8 : 4; span > (is_short ? 1 : 0); span /= 2) {
        spans = shape.source_extent[1] * depth % span == 0 && columns * step * depth % span == 0 &&
                view->strides[0] % span == 0 && view->strides[1] % span == 0;
        if (spans) break;
      }
    pixel = depth;
    if (is_short && step * depth % 2 != 0) {
      // Pairs of elements must start at multiples of 4 bytes, or are shifted in registers.
      odd = spans;
      if (!spans) ++pixel;
    }
    channels = tap_channels = pixel;
    if (spans) {
      const std::int64_t start = shape.first[1] * depth;
      lead = is_short && !odd ? floor_mod(start, 2) : 0;
      shift = floor_mod(start - lead, span);
      first_element = start - lead - shift;
    }
    units_of_row = ceil_div(lead + shape.window[1] * pixel, unit);
    units = shape.window[0] * units_of_row;
    const std::int64_t end =
        shift + (columns - 1) * step * pixel + units_of_row * unit + (odd ? 2 : 0);
    width = std::max(width, ceil_div(end, pixel));
    pitch = round_up(spans ? end : width * pixel, spans ? span : 2);
    const auto is_whole = [&](std::int64_t elements) { return elements % unit == 0; };
    aligned = is_whole(step * pixel) && is_whole(pitch) && is_whole(shift);
  }
  vector = packet_length({&shape.source}, static_cast<int>(unit));
  if (!shape.channels_last) {
    while (columns * step % vector != 0) vector /= 2;
    return;
  }
  while (vector > 1 && (channels % vector != 0 || pixel % vector != 0 ||
                        shape.group_channels() % vector != 0 || pitch % vector != 0))
    vector /= 2;
}

}  // namespace ashlar::cuda

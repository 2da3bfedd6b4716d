// Convolution geometry: phases and taps from an anchor's attributes.
#include "cpu/conv/conv_geometry.hpp"

#include <algorithm>

namespace ashlar::cpu {

namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

// Spatial extents of a tensor [a, b, spatial...], after leading ones.
Spatial spatial_extents(const Dims& dims) {
  Spatial result{1, 1, 1};
  for (int axis = 2; axis < dims.rank(); ++axis)
    result[at(axis - dims.rank() + kMaxSpatial)] = dims[axis];
  return result;
}

Spatial attribute(const Dims& given, int spatial, std::int64_t missing) {
  Spatial result{missing, missing, missing};
  for (int axis = 0; axis < given.rank(); ++axis)
    result[at(axis + kMaxSpatial - spatial)] = given[axis];
  return result;
}

template <class Visit>
void for_each_position(const Spatial& extents, Visit&& visit) {
  for (std::int64_t i = 0; i < extents[0]; ++i)
    for (std::int64_t j = 0; j < extents[1]; ++j)
      for (std::int64_t k = 0; k < extents[2]; ++k) visit(Spatial{i, j, k});
}

}  // namespace

ConvGeometry::ConvGeometry(const Anchor& anchor) {
  const ConvAttributes* attributes = nullptr;
  const Dims *x_dims = nullptr, *w_dims = nullptr, *y_dims = nullptr;
  if (const auto* op = std::get_if<ConvForward>(&anchor.op)) {
    attributes = op;
    x_dims = &anchor.inputs[ConvForward::x].dims;
    w_dims = &anchor.inputs[ConvForward::w].dims;
    y_dims = &anchor.outputs[ConvForward::y].dims;
  } else if (const auto* data = std::get_if<ConvBackwardData>(&anchor.op)) {
    attributes = data;
    x_dims = &anchor.outputs[ConvBackwardData::dx].dims;
    w_dims = &anchor.inputs[ConvBackwardData::w].dims;
    y_dims = &anchor.inputs[ConvBackwardData::dy].dims;
  } else {
    attributes = &std::get<ConvBackwardFilter>(anchor.op);
    x_dims = &anchor.inputs[ConvBackwardFilter::x].dims;
    w_dims = &anchor.outputs[ConvBackwardFilter::dw].dims;
    y_dims = &anchor.inputs[ConvBackwardFilter::dy].dims;
  }
  spatial = x_dims->rank() - 2;
  images = (*x_dims)[0];
  channels = (*w_dims)[1];
  groups = channels == 0 ? 1 : std::max<std::int64_t>((*x_dims)[1] / channels, 1);
  filters = (*w_dims)[0] / groups;
  x = spatial_extents(*x_dims);
  y = spatial_extents(*y_dims);
  window = spatial_extents(*w_dims);
  padding = attribute(attributes->padding, spatial, 0);
  stride = attribute(attributes->stride, spatial, 1);
  dilation = attribute(attributes->dilation, spatial, 1);
  flip = attributes->mode == ConvMode::convolution;
  alpha = attributes->alpha;
  beta = attributes->beta;
}

ConvPhase ConvGeometry::forward_phase() const {
  ConvPhase phase{
      .images = images, .extent = y, .scale = stride, .origin = {}, .step = {1, 1, 1}, .taps = {}};
  for_each_position(window, [&](const Spatial& tap) {
    ConvTap entry{};
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis) {
      entry.shift[axis] = tap[axis] * dilation[axis] - padding[axis];
      entry.stored[axis] = flip ? window[axis] - 1 - tap[axis] : tap[axis];
    }
    phase.taps.push_back(entry);
  });
  return phase;
}

ConvPhase ConvGeometry::identity_phase() const {
  return {.images = images,
          .extent = y,
          .scale = {1, 1, 1},
          .origin = {},
          .step = {1, 1, 1},
          .taps = {ConvTap{}}};
}

std::vector<ConvPhase> ConvGeometry::backward_data_phases() const {
  std::vector<ConvPhase> phases;
  Spatial remainders;
  for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
    remainders[axis] = std::min(stride[axis], x[axis]);
  for_each_position(remainders, [&](const Spatial& remainder) {
    ConvPhase phase{.images = images,
                    .extent = {},
                    .scale = {1, 1, 1},
                    .origin = remainder,
                    .step = stride,
                    .taps = {}};
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
      phase.extent[axis] =
          std::max<std::int64_t>((x[axis] - remainder[axis] + stride[axis] - 1) / stride[axis], 0);
    if (phase.pixels() == 0) return;
    for_each_position(window, [&](const Spatial& tap) {
      ConvTap entry{};
      for (std::size_t axis = 0; axis < kMaxSpatial; ++axis) {
        const std::int64_t scaled = remainder[axis] + padding[axis] - tap[axis] * dilation[axis];
        if (scaled % stride[axis] != 0) return;
        entry.shift[axis] = scaled / stride[axis];
        entry.stored[axis] = flip ? window[axis] - 1 - tap[axis] : tap[axis];
      }
      phase.taps.push_back(entry);
    });
    phases.push_back(std::move(phase));
  });
  return phases;
}

}  // namespace ashlar::cpu

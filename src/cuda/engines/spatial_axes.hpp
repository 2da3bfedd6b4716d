// The spatial axes of images as depth, height and width, however many of them there are.
#pragma once

#include <array>
#include <cstddef>

#include "plan/view.hpp"

namespace ashlar::cuda {

using SpatialAxes = std::array<std::int64_t, 3>;  // d, h, w

// One value per spatial axis; those that are missing come first.
inline SpatialAxes per_axis(const Dims& values, std::int64_t absent) {
  SpatialAxes result = {absent, absent, absent};
  for (int axis = 0; axis < values.rank(); ++axis)
    result[static_cast<std::size_t>(axis + 3 - values.rank())] = values[axis];
  return result;
}

// Of extents or strides [N, C, spatial...].
inline SpatialAxes spatial_of(const Dims& dims, std::int64_t absent = 1) {
  SpatialAxes result = {absent, absent, absent};
  for (int axis = 2; axis < dims.rank(); ++axis)
    result[static_cast<std::size_t>(axis + 3 - dims.rank())] = dims[axis];
  return result;
}

}  // namespace ashlar::cuda

// Spatial axes of images normalised to depth, height and width.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "plan/view.hpp"

namespace ashlar::cuda {

using SpatialAxes = std::array<std::int64_t, 3>;  // d, h, w

// One value per spatial axis; of kCount, missing ones come first.
template <std::size_t kCount = 3>
std::array<std::int64_t, kCount> per_axis(const Dims& values, std::int64_t absent) {
  std::array<std::int64_t, kCount> result;
  result.fill(absent);
  for (int axis = 0; axis < values.rank(); ++axis)
    result[static_cast<std::size_t>(axis + static_cast<int>(kCount) - values.rank())] =
        values[axis];
  return result;
}

// Of extents or strides [N, C, spatial...].
template <std::size_t kCount = 3>
std::array<std::int64_t, kCount> spatial_of(const Dims& dims, std::int64_t absent = 1) {
  std::array<std::int64_t, kCount> result;
  result.fill(absent);
  for (int axis = 2; axis < dims.rank(); ++axis)
    result[static_cast<std::size_t>(axis + static_cast<int>(kCount) - dims.rank())] = dims[axis];
  return result;
}

// A permutation of axes: those in front, kCount spatial ones of a tensor [N, C, spatial...] of this
// rank, those behind. A missing axis exists in no tensor, so its extent is 1.
template <std::size_t kCount = 3>
std::vector<int> with_spatial_axes(int rank, std::vector<int> front, const std::vector<int>& back) {
  constexpr int kSpatial = static_cast<int>(kCount), kMissing = kSpatial + 2;
  for (int axis = rank - kSpatial; axis < rank; ++axis) front.push_back(axis < 2 ? kMissing : axis);
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

}  // namespace ashlar::cuda

// Dims and Layout: element counts and packed strides.
#include <ashlar/dims.hpp>
#include <limits>
#include <numeric>

#include "base/checked.hpp"

namespace ashlar {

namespace {

// Packed strides with axes[0] varying fastest.
Dims packed_strides(const Dims& dims, std::span<const int> axes) {
  Dims strides = Dims::filled(dims.rank(), 1);
  // No element of an empty tensor is ever addressed, so its other extents cannot overflow.
  const bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
  std::int64_t step = 1;
  for (int axis : axes) {
    strides[axis] = step;
    const std::int64_t extent = std::max<std::int64_t>(dims[axis], 1);
    if (!empty || step <= std::numeric_limits<std::int64_t>::max() / extent)
      step = checked_mul(step, extent);
  }
  return strides;
}

}  // namespace

void Dims::throw_too_many() {
  fail(ErrorCode::invalid_argument, "axes of a tensor: got more than {}, expected at most {}",
       kMaxRank, kMaxRank);
}

std::string to_string(const Dims& dims) {
  return fmt::format("[{}]", fmt::join(dims.begin(), dims.end(), ", "));
}

std::int64_t element_count(const Dims& dims) {
  // With a zero extent the product is 0 and cannot overflow, whatever the other extents are.
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, checked_mul);
}

Dims Layout::strides_for(const Dims& dims) const {
  if (order_ == Order::explicit_strides) return strides_;
  std::array<int, kMaxRank> axes{};
  int count = 0;
  const bool channels_first_to_vary = order_ == Order::channels_last && dims.rank() >= 3;
  if (channels_first_to_vary) axes[static_cast<std::size_t>(count++)] = 1;
  for (int axis = dims.rank() - 1; axis >= 0; --axis)
    if (!(channels_first_to_vary && axis == 1)) axes[static_cast<std::size_t>(count++)] = axis;
  return packed_strides(dims, std::span(axes.data(), static_cast<std::size_t>(count)));
}

Dims packed_strides_like(const Dims& dims, const Dims& like) {
  std::array<int, kMaxRank> axes{};
  for (int i = 0; i < dims.rank(); ++i) axes[static_cast<std::size_t>(i)] = dims.rank() - 1 - i;
  const auto end = axes.begin() + dims.rank();
  // Equal strides (extents of 1, broadcasts) keep row-major order: the sort is stable.
  std::stable_sort(axes.begin(), end, [&](int a, int b) { return like[a] < like[b]; });
  return packed_strides(dims, std::span(axes.data(), static_cast<std::size_t>(dims.rank())));
}

}  // namespace ashlar

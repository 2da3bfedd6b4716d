// Shared by grid sampling forward and backward: grid positions as taps of x, and the planes of x
// they index.
#pragma once

#include <cmath>
#include <limits>

#include "base/checked.hpp"
#include "cpu/engines/pooling.hpp"
#include "cpu/kernels/gather.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

inline constexpr int kMaxTaps = 8;                 // corners of a cell in three axes
inline constexpr std::int64_t kGridChunk = 256;    // positions at once
inline constexpr std::int64_t kChannelRow = 1024;  // channels at once

// The taps of one position: elements of x and their weights.
template <class T>
struct PointTaps {
  std::array<std::int64_t, 3> low{};  // by spatial axis: the tap's coordinate, or the lower of two
  std::array<T, kMaxTaps> weight{};
  std::array<std::array<T, kMaxTaps>, 3> change{};  // d weight / d position on each axis
  std::array<T, 3> slope{};                         // d position / d coordinate of the grid

  std::int64_t coordinate(int tap, int axis) const {
    return low[static_cast<std::size_t>(axis)] + (tap >> axis & 1);
  }
};

template <class T>
class GridSampler {
 public:
  GridSampler() = default;
  GridSampler(const GridSampleAttributes& op, const Dims& x) : op_(op), spatial_(x.rank() - 2) {
    for (int s = 0; s < spatial_; ++s) extent_[static_cast<std::size_t>(s)] = x[s + 2];
  }
  int spatial() const { return spatial_; }
  bool nearest() const { return op_.mode == GridSampleMode::nearest; }
  int taps() const { return nearest() ? 1 : 1 << spatial_; }
  std::int64_t extent(int axis) const { return extent_[static_cast<std::size_t>(axis)]; }

  // `grid` holds the coordinates in grid order: x, the last axis, first.
  PointTaps<T> at(const T* grid) const {
    PointTaps<T> taps;
    std::array<std::array<T, 2>, 3> weight{};
    std::array<std::array<T, 2>, 3> change{};
    for (int s = 0; s < spatial_; ++s) {
      const auto a = static_cast<std::size_t>(s);
      const T position = locate(grid[spatial_ - 1 - s], extent_[a], taps.slope[a]);
      if (std::isnan(position)) return not_a_position();
      const T last = static_cast<T>(extent_[a] - 1);
      const T inside = std::clamp<T>(position, -2, last + 2);
      const T low = nearest() ? std::nearbyint(inside) : std::floor(inside);
      taps.low[a] = static_cast<std::int64_t>(low);
      const T above = inside - low;
      const T sees_low = low >= 0 && low <= last ? 1 : 0;
      const T sees_high = low + 1 >= 0 && low + 1 <= last ? 1 : 0;
      weight[a] = {nearest() ? sees_low : sees_low * (1 - above), sees_high * above};
      change[a] = {-sees_low, sees_high};
    }
    for (int tap = 0; tap < this->taps(); ++tap) {
      const auto k = static_cast<std::size_t>(tap);
      taps.weight[k] = 1;
      for (int s = 0; s < spatial_; ++s)
        taps.weight[k] *= weight[static_cast<std::size_t>(s)][k >> s & 1];
      for (int j = 0; j < spatial_; ++j) {
        T product = 1;
        for (int s = 0; s < spatial_; ++s)
          product *= (s == j ? change : weight)[static_cast<std::size_t>(s)][k >> s & 1];
        taps.change[static_cast<std::size_t>(j)][k] = product;
      }
    }
    return taps;
  }
  bool sees(const PointTaps<T>& taps, int tap) const {
    for (int s = 0; s < spatial_; ++s) {
      const std::int64_t i = taps.coordinate(tap, s);
      if (i < 0 || i >= extent_[static_cast<std::size_t>(s)]) return false;
    }
    return true;
  }

 private:
  // The position along an axis and its derivative with respect to the grid coordinate; formulas in
  // docs/ops/spatial_transformer.md.
  T locate(T coordinate, std::int64_t extent, T& slope) const {
    const T size = static_cast<T>(extent), last = size - 1;
    const T scale = op_.align_corners ? last / 2 : size / 2;
    T position = op_.align_corners ? (coordinate + 1) * scale : ((coordinate + 1) * size - 1) / 2;
    slope = scale;
    if (op_.padding == GridPadding::zeros) return position;
    if (op_.padding == GridPadding::reflection) {
      const T low = op_.align_corners ? T{0} : static_cast<T>(-0.5);
      position = reflect(position, low, op_.align_corners ? last : size, slope);
    }
    if (!(position > 0 && position < last)) slope = 0;
    return std::isnan(position) ? position : std::clamp<T>(position, 0, last);
  }
  // Triangle wave between `low` and `low + span` (reflection padding).
  static T reflect(T position, T low, T span, T& slope) {
    if (span == 0) {
      slope = 0;
      return std::isnan(position) ? position : T{0};
    }
    if (position >= low && position <= low + span) return position;
    const T leg = std::floor((position - low) / span);
    if (std::fmod(std::fabs(leg), T{2}) != 0) slope = -slope;
    const T rest = std::fmod(std::fabs(position - low), 2 * span);
    return low + (rest > span ? 2 * span - rest : rest);
  }
  PointTaps<T> not_a_position() const {
    constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
    PointTaps<T> taps;
    taps.weight.fill(kNaN);
    for (auto& change : taps.change) change.fill(kNaN);
    taps.slope.fill(kNaN);
    return taps;
  }

  GridSampleAttributes op_;
  int spatial_ = 0;
  std::array<std::int64_t, 3> extent_{};
};

// Tap tables of a chunk of positions for GatherSum, and the grid coordinates they come from.
template <class T>
struct TapTable {
  alignas(64) GatherIndex<T> index[kMaxTaps * kGridChunk];
  alignas(64) T weight[kMaxTaps * kGridChunk];
  alignas(64) T change[3][kMaxTaps * kGridChunk];
  alignas(64) T slope[3][kGridChunk];

  // `strides` are those of a plane, by spatial axis. Taps outside x index element 0 with weight 0.
  void set(const GridSampler<T>& sampler, std::int64_t position, const PointTaps<T>& taps,
           const std::array<std::int64_t, 3>& strides, bool with_change) {
    for (int k = 0; k < sampler.taps(); ++k) {
      std::int64_t at = 0;
      if (sampler.sees(taps, k))
        for (int s = 0; s < sampler.spatial(); ++s)
          at += taps.coordinate(k, s) * strides[static_cast<std::size_t>(s)];
      index[k * kGridChunk + position] = static_cast<GatherIndex<T>>(at);
      weight[k * kGridChunk + position] = taps.weight[static_cast<std::size_t>(k)];
      for (int j = 0; with_change && j < sampler.spatial(); ++j)
        change[j][k * kGridChunk + position] =
            taps.change[static_cast<std::size_t>(j)][static_cast<std::size_t>(k)];
    }
    for (int j = 0; with_change && j < sampler.spatial(); ++j)
      slope[j][position] = taps.slope[static_cast<std::size_t>(j)];
  }
};

// The planes x[n, c] as contiguous or strided memory of T: in place, or a copy.
template <class T>
class Planes {
 public:
  static constexpr DType kOwn = sizeof(T) == 4 ? f32 : f64;

  Planes() = default;
  Planes(const PointwiseProgram& program, ScratchLayout& scratch_layout)
      : dims_(program.space), in_place_(program.is_plain_load() && view_of(program).dtype == kOwn) {
    if (in_place_) {
      view_ = view_of(program);
      return;
    }
    load_ = RowProgram<T>(program, dims_.rank() - 1);
    copy_ = scratch_layout.add(
        "x", checked_mul(element_count(dims_), static_cast<std::int64_t>(sizeof(T))));
    view_.strides = row_major.strides_for(dims_);
  }

  std::array<std::int64_t, 3> strides() const {
    std::array<std::int64_t, 3> result{};
    for (int s = 0; s + 2 < dims_.rank(); ++s)
      result[static_cast<std::size_t>(s)] = view_.strides[s + 2];
    return result;
  }
  // Plane (0, 0); fills the copy.
  const T* prepare(const KernelContext& context, const ScratchLayout& scratch_layout) const {
    if (in_place_) return static_cast<const T*>(context.pointer(view_.tensor)) + view_.offset;
    T* copy = context.scratch<T>(scratch_layout, copy_);
    const auto load = load_.bind(context);
    const RowLoop rows{dims_, dims_.rank() - 1, std::max<std::int64_t>(dims_[dims_.rank() - 1], 1)};
    parallel_for(rows.count(), std::max<std::int64_t>(16384 / rows.length, 1),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t row = begin; row < end; ++row) {
                     Coords at;
                     const std::int64_t count = rows.locate(row, at);
                     load.load(at.data(), count, copy + row * rows.length);
                   }
                 });
    return copy;
  }
  const T* plane(const T* first, std::int64_t n, std::int64_t c) const {
    return first + n * view_.strides[0] + c * view_.strides[1];
  }
  // Whether the offsets in a plane fit a gather index.
  static bool fits(const PointwiseProgram& program) {
    std::int64_t packed = 1, reach = 0;
    const Dims& dims = program.space;
    for (int a = 2; a < dims.rank(); ++a) {
      packed = checked_mul(packed, dims[a]);
      if (program.is_plain_load())
        reach = checked_add(reach, checked_mul(dims[a], view_of(program).strides[a]));
    }
    return std::max(packed, reach) < std::numeric_limits<std::int32_t>::max();
  }

 private:
  static const View& view_of(const PointwiseProgram& program) { return program.steps[0].view; }

  Dims dims_;
  bool in_place_ = false;
  View view_;
  RowProgram<T> load_;
  int copy_ = -1;
};

// Rows of the grid [N, out...], in chunks along the last axis.
template <class T>
class GridRows {
 public:
  GridRows() = default;
  GridRows(const PointwiseProgram& program, int spatial) : spatial_(spatial) {
    for (int a = 0; a <= spatial; ++a) loop_.dims.push_back(program.space[a]);
    loop_.axis = spatial;
    loop_.length = kGridChunk;
    grid_ = RowProgram<T>(program, spatial);
  }
  const RowLoop& loop() const { return loop_; }
  typename RowProgram<T>::Bound bind(const KernelContext& context) const {
    return grid_.bind(context);
  }
  // Calls body(position in the chunk, coordinates) for `count` positions from `at` on.
  template <class Body>
  void for_positions(const typename RowProgram<T>::Bound& grid, Coords at, std::int64_t count,
                     Body&& body) const {
    alignas(64) T values[3][kGridChunk];
    for (int j = 0; j < spatial_; ++j) {
      at[static_cast<std::size_t>(spatial_ + 1)] = j;
      grid.load(at.data(), count, values[j]);
    }
    for (std::int64_t p = 0; p < count; ++p) {
      T position[3];
      for (int j = 0; j < spatial_; ++j) position[j] = values[j][p];
      body(p, position);
    }
  }
  // The index in y (or dy) of channel c of the position `at`.
  static Coords in_result(const Coords& at, std::int64_t c) {
    Coords result{};
    result[0] = at[0];
    result[1] = c;
    for (std::size_t a = 1; a + 1 < result.size(); ++a) result[a + 1] = at[a];
    return result;
  }

 private:
  int spatial_ = 0;
  RowLoop loop_;
  RowProgram<T> grid_;
};

// Whether rows run across channels: if those are contiguous and many.
inline bool samples_across_channels(const PointwiseProgram& x) {
  return choose_row_axis(x.space, {&x}) == 1 && x.space[1] >= 8;
}

std::unique_ptr<Kernel> build_grid_sample_backward(const Region& region);

}  // namespace ashlar::cpu

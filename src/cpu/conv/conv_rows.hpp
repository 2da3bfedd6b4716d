// Convolution operands and results as rows of an implicit GEMM (see conv_geometry.hpp). Columns of
// the patch matrix and of the filter are numbered tap by tap, channels fastest.
#pragma once

#include <algorithm>

#include "cpu/conv/conv_geometry.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/row_program.hpp"

namespace ashlar::cpu {

using ConvCoords = std::array<std::int64_t, kMaxRank>;

inline bool is_convolution(const Region& region) {
  return region.anchor_as<ConvForward>() || region.anchor_as<ConvBackwardData>() ||
         region.anchor_as<ConvBackwardFilter>();
}

inline const PointwiseProgram& z_of(const Region& region) {
  static const PointwiseProgram kAbsent;
  constexpr auto kSlot = static_cast<std::size_t>(ConvForward::z);
  static_assert(kSlot == ConvBackwardData::z && kSlot == ConvBackwardFilter::z);
  return region.prologues.size() > kSlot ? region.prologues[kSlot] : kAbsent;
}

inline std::vector<ConvPhase> phases_of(const ConvGeometry& geometry, const Region& region) {
  if (region.anchor_as<ConvBackwardData>()) return geometry.backward_data_phases();
  return {geometry.forward_phase()};
}

// x (or dy) as the patch matrix: pixel x (tap, channel).
template <class T>
struct PatchSource {
  RowProgram<T> program;
  Spatial extents;        // of the tensor
  std::int64_t channels;  // per group
  bool along_channels;    // rows run along channels at one pixel, or along pixels at one channel

  PatchSource(const PointwiseProgram& source, const Spatial& spatial_extents,
              std::int64_t group_channels, std::int64_t scale, bool run_along_channels)
      : extents(spatial_extents), channels(group_channels), along_channels(run_along_channels) {
    const int last = source.space.rank() - 1;
    program =
        along_channels ? RowProgram<T>(source, 1) : RowProgram<T>(source, last, nullptr, scale);
  }
};

// Chooses the cheaper row direction. Runs of pixels gather with a stride if channels are
// contiguous; runs of few channels cost more than that.
inline bool runs_along_channels(const PointwiseProgram& source, std::int64_t group_channels,
                                std::int64_t scale) {
  constexpr std::int64_t kFewChannels = 16;
  const int last = source.space.rank() - 1;
  const std::int64_t row = source.space[last] / scale;
  if (contiguous_views(source, 1) > contiguous_views(source, last))
    return group_channels >= std::min(kFewChannels, row);
  return group_channels > 8 * row;
}

template <class T>
class PatchOperand final : public GemmOperand<T> {
 public:
  // `pixels_are_index`: pixels are the rows of A (columns of B), else K.
  PatchOperand(const PatchSource<T>& source, const ConvGeometry& geometry, const ConvPhase& phase,
               bool pixels_are_index, const KernelContext& context)
      : source_(source),
        geometry_(geometry),
        phase_(phase),
        pixels_are_index_(pixels_are_index),
        bound_(source.program.bind(context)) {}

  bool along_k() const override { return pixels_are_index_ == source_.along_channels; }

  void row(std::int64_t group, std::int64_t fixed, std::int64_t start, std::int64_t count,
           T* destination) const override {
    if (source_.along_channels)
      channel_row(group, fixed, start, count, destination);
    else
      pixel_row(group, fixed, start, count, destination);
  }

 private:
  void channel_row(std::int64_t group, std::int64_t pixel_number, std::int64_t start,
                   std::int64_t count, T* destination) const {
    const ConvPixel pixel(phase_, pixel_number);
    std::int64_t tap = start / source_.channels, channel = start % source_.channels;
    while (count > 0) {
      const std::int64_t length = std::min(count, source_.channels - channel);
      Spatial position;
      bool inside = true;
      for (std::size_t axis = 0; axis < kMaxSpatial; ++axis) {
        position[axis] = pixel.at[axis] * phase_.scale[axis] + tap_at(tap).shift[axis];
        inside = inside && position[axis] >= 0 && position[axis] < source_.extents[axis];
      }
      if (inside)
        load(pixel.image, group * source_.channels + channel, position, length, destination);
      else
        std::fill_n(destination, length, T{0});
      destination += length;
      count -= length;
      channel = 0;
      ++tap;
    }
  }

  void pixel_row(std::int64_t group, std::int64_t column, std::int64_t start, std::int64_t count,
                 T* destination) const {
    const ConvTap& tap = tap_at(column / source_.channels);
    const std::int64_t channel = group * source_.channels + column % source_.channels;
    constexpr std::size_t kLast = kMaxSpatial - 1;
    const std::int64_t scale = phase_.scale[kLast];
    for_pixel_runs(
        phase_, start, count, [&](const ConvPixel& pixel, std::int64_t length, std::int64_t done) {
          T* target = destination + done;
          Spatial position;
          bool inside = true;
          for (std::size_t axis = 0; axis < kMaxSpatial; ++axis) {
            position[axis] = pixel.at[axis] * phase_.scale[axis] + tap.shift[axis];
            if (axis < kLast)
              inside = inside && position[axis] >= 0 && position[axis] < source_.extents[axis];
          }
          // Pixels before `first` and from `last` on read padding.
          const std::int64_t from = position[kLast];
          const std::int64_t first = from >= 0 ? 0 : std::min(length, (-from + scale - 1) / scale);
          const std::int64_t room = source_.extents[kLast] - from;
          const std::int64_t last =
              room <= 0 ? first : std::clamp((room + scale - 1) / scale, first, length);
          if (!inside || first == last) return void(std::fill_n(target, length, T{0}));
          std::fill_n(target, first, T{0});
          position[kLast] += first * scale;
          load(pixel.image, channel, position, last - first, target + first);
          std::fill_n(target + last, length - last, T{0});
        });
  }

  const ConvTap& tap_at(std::int64_t tap) const {
    return phase_.taps[static_cast<std::size_t>(tap)];
  }

  void load(std::int64_t image, std::int64_t channel, const Spatial& position, std::int64_t count,
            T* destination) const {
    ConvCoords coords;
    geometry_.put(image, channel, position, coords.data());
    bound_.load(coords.data(), count, destination);
  }

  const PatchSource<T>& source_;
  const ConvGeometry& geometry_;
  const ConvPhase& phase_;
  bool pixels_are_index_;
  typename RowProgram<T>::Bound bound_;
};

// w as result channel x (tap, reduced channel). Forward reduces over channels (axis 1),
// backward-data over filters.
template <class T>
struct FilterSource {
  RowProgram<T> program;
  bool sums_channels;
  bool along_summed;  // rows run along the reduced channels, or along the result's

  FilterSource(const PointwiseProgram& source, bool forward)
      : FilterSource(source, forward,
                     contiguous_views(source, forward ? 1 : 0) >
                         contiguous_views(source, forward ? 0 : 1)) {}
  FilterSource(const PointwiseProgram& source, bool forward, bool run_along_summed)
      : program(source, forward == run_along_summed ? 1 : 0),
        sums_channels(forward),
        along_summed(run_along_summed) {}
};

template <class T>
class FilterOperand final : public GemmOperand<T> {
 public:
  FilterOperand(const FilterSource<T>& source, const ConvGeometry& geometry, const ConvPhase& phase,
                const KernelContext& context)
      : source_(source), geometry_(geometry), phase_(phase), bound_(source.program.bind(context)) {}

  bool along_k() const override { return source_.along_summed; }

  void row(std::int64_t group, std::int64_t fixed, std::int64_t start, std::int64_t count,
           T* destination) const override {
    const std::int64_t summed = source_.sums_channels ? geometry_.channels : geometry_.filters;
    if (!source_.along_summed)
      return load(group, fixed / summed, start, fixed % summed, count, destination);
    std::int64_t tap = start / summed, channel = start % summed;
    while (count > 0) {
      const std::int64_t length = std::min(count, summed - channel);
      load(group, tap, fixed, channel, length, destination);
      destination += length;
      count -= length;
      channel = 0;
      ++tap;
    }
  }

 private:
  void load(std::int64_t group, std::int64_t tap, std::int64_t result, std::int64_t summed,
            std::int64_t count, T* destination) const {
    const std::int64_t filter = source_.sums_channels ? result : summed;
    const std::int64_t channel = source_.sums_channels ? summed : result;
    ConvCoords coords;
    geometry_.put(group * geometry_.filters + filter, channel,
                  phase_.taps[static_cast<std::size_t>(tap)].stored, coords.data());
    bound_.load(coords.data(), count, destination);
  }

  const FilterSource<T>& source_;
  const ConvGeometry& geometry_;
  const ConvPhase& phase_;
  typename RowProgram<T>::Bound bound_;
};

// alpha * acc + beta * z, then the epilogue.
template <class T>
class ConvStore {
 public:
  ConvStore() = default;
  // `z` may be empty; `step` as in RowProgram.
  ConvStore(const PointwiseProgram& epilogue, const PointwiseProgram& z,
            const ConvGeometry& geometry, int axis, std::int64_t step)
      : epilogue_(epilogue, axis, nullptr, step),
        alpha_(static_cast<T>(geometry.alpha)),
        beta_(z.empty() ? T{0} : static_cast<T>(geometry.beta)) {
    if (beta_ != T{0}) z_ = RowProgram<T>(z, axis, nullptr, step);
  }

  class Bound {
   public:
    Bound(const ConvStore& store, const KernelContext& context)
        : store_(store), epilogue_(store.epilogue_.bind(context)) {
      if (store.beta_ != T{0}) z_ = store.z_.bind(context);
    }
    void row(const ConvCoords& coords, int axis, std::int64_t step, std::int64_t count,
             T* values) const {
      if (store_.alpha_ != T{1})
        for (std::int64_t i = 0; i < count; ++i) values[i] *= store_.alpha_;
      if (store_.beta_ != T{0}) add_z(coords, axis, step, count, values);
      epilogue_.store(coords.data(), count, values);
    }

   private:
    void add_z(ConvCoords coords, int axis, std::int64_t step, std::int64_t count,
               T* values) const {
      constexpr std::int64_t kChunk = 256;
      alignas(64) T chunk[kChunk];
      for (std::int64_t first = 0; first < count; first += kChunk) {
        const std::int64_t length = std::min(kChunk, count - first);
        z_.load(coords.data(), length, chunk);
        for (std::int64_t i = 0; i < length; ++i) values[first + i] += store_.beta_ * chunk[i];
        coords[static_cast<std::size_t>(axis)] += length * step;
      }
    }
    const ConvStore& store_;
    typename RowProgram<T>::Bound epilogue_, z_;
  };

 private:
  RowProgram<T> epilogue_, z_;
  T alpha_ = 1, beta_ = 0;
};

// y or dx: pixel x channel, or the transpose.
template <class T>
class PixelSink final : public GemmSink<T> {
 public:
  // `channels`: of the result, per group.
  PixelSink(const ConvStore<T>& store, const ConvGeometry& geometry, const ConvPhase& phase,
            std::int64_t channels, bool pixels_are_rows, const KernelContext& context)
      : bound_(store, context),
        geometry_(geometry),
        phase_(phase),
        channels_(channels),
        pixels_are_rows_(pixels_are_rows) {}

  void row(std::int64_t group, std::int64_t m, std::int64_t n, std::int64_t count,
           T* values) const override {
    if (pixels_are_rows_) {
      const ConvCoords coords = coords_of(ConvPixel(phase_, m), group * channels_ + n);
      return bound_.row(coords, 1, 1, count, values);
    }
    for_pixel_runs(phase_, n, count,
                   [&](const ConvPixel& pixel, std::int64_t length, std::int64_t done) {
                     bound_.row(coords_of(pixel, group * channels_ + m), 1 + geometry_.spatial,
                                phase_.step[kMaxSpatial - 1], length, values + done);
                   });
  }

 private:
  ConvCoords coords_of(const ConvPixel& pixel, std::int64_t channel) const {
    Spatial position;
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
      position[axis] = phase_.origin[axis] + pixel.at[axis] * phase_.step[axis];
    ConvCoords coords;
    geometry_.put(pixel.image, channel, position, coords.data());
    return coords;
  }

  typename ConvStore<T>::Bound bound_;
  const ConvGeometry& geometry_;
  const ConvPhase& phase_;
  std::int64_t channels_;
  bool pixels_are_rows_;
};

// dw: filter x (tap, channel).
template <class T>
class FilterSink final : public GemmSink<T> {
 public:
  FilterSink(const ConvStore<T>& store, const ConvGeometry& geometry, const ConvPhase& phase,
             const KernelContext& context)
      : bound_(store, context), geometry_(geometry), phase_(phase) {}

  void row(std::int64_t group, std::int64_t m, std::int64_t n, std::int64_t count,
           T* values) const override {
    std::int64_t tap = n / geometry_.channels, channel = n % geometry_.channels;
    while (count > 0) {
      const std::int64_t length = std::min(count, geometry_.channels - channel);
      ConvCoords coords;
      geometry_.put(group * geometry_.filters + m, channel,
                    phase_.taps[static_cast<std::size_t>(tap)].stored, coords.data());
      bound_.row(coords, 1, 1, length, values);
      values += length;
      count -= length;
      channel = 0;
      ++tap;
    }
  }

 private:
  typename ConvStore<T>::Bound bound_;
  const ConvGeometry& geometry_;
  const ConvPhase& phase_;
};

}  // namespace ashlar::cpu

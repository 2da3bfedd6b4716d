// Direct convolution, forward and backward-data, for groups of few channels: rows of the source are
// multiplied with weights and summed, with no packing.
#pragma once

#include "cpu/conv_rows.hpp"
#include "cpu/kernels/conv_direct.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

// Bounds of what is kept on the stack, in elements.
inline constexpr std::int64_t kMostTerms = 256;          // taps x summed channels
inline constexpr std::int64_t kMostGroupWeights = 1024;  // terms x result channels of a group
inline constexpr std::int64_t kRowElements = 8192;       // rows of all terms

inline constexpr std::int64_t kLongestDirectRow = 128;

inline std::int64_t direct_row_length(std::int64_t terms) {
  return std::min(kLongestDirectRow, kRowElements / std::max<std::int64_t>(terms, 1));
}

// Rows run along pixels: NCHW.
template <class T>
class DirectPixelRows final : public Kernel {
 public:
  explicit DirectPixelRows(const Region& region)
      : geometry_(*region.anchor),
        forward_(region.anchor_as<ConvForward>() != nullptr),
        results_(forward_ ? geometry_.filters : geometry_.channels),
        summed_(forward_ ? geometry_.channels : geometry_.filters),
        phases_(phases_of(geometry_, region)),
        direct_(conv_direct<T>()),
        source_(region.prologues[0], forward_ ? geometry_.x : geometry_.y, summed_,
                forward_ ? geometry_.stride[kMaxSpatial - 1] : 1, false),
        filter_(region.prologues[1], forward_, true),
        store_(region.epilogue, z_of(region), geometry_, 1 + geometry_.spatial,
               forward_ ? 1 : geometry_.stride[kMaxSpatial - 1]) {}

  void run(const KernelContext& context) const override {
    for (const ConvPhase& phase : phases_) run_phase(phase, context);
  }

 private:
  static constexpr std::int64_t kPiece = 1024;  // pixels per task

  void run_phase(const ConvPhase& phase, const KernelContext& context) const {
    const PatchOperand<T> source(source_, geometry_, phase, true, context);
    const FilterOperand<T> filter(filter_, geometry_, phase, context);
    const PixelSink<T> sink(store_, geometry_, phase, results_, false, context);
    const std::int64_t terms = static_cast<std::int64_t>(phase.taps.size()) * summed_;
    const std::int64_t pixels = phase.pixels(), pieces = divide_up(pixels, kPiece);
    const std::int64_t longest = direct_row_length(terms);
    parallel_for(geometry_.groups * pieces, 1, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T rows[kRowElements];
      alignas(64) T result[kLongestDirectRow];
      T weights[kMostGroupWeights];
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t group = task / pieces;
        const std::int64_t first = task % pieces * kPiece, last = std::min(pixels, first + kPiece);
        for (std::int64_t r = 0; r < results_; ++r)
          if (terms > 0) filter.row(group, r, 0, terms, weights + r * terms);
        for (std::int64_t start = first; start < last; start += longest) {
          const std::int64_t count = std::min(longest, last - start);
          for (std::int64_t t = 0; t < terms; ++t)
            source.row(group, t, start, count, rows + t * longest);
          for (std::int64_t r = 0; r < results_; ++r) {
            direct_.combine(count, terms, rows, longest, weights + r * terms, result);
            sink.row(group, r, start, count, result);
          }
        }
      }
    });
  }

  ConvGeometry geometry_;
  bool forward_;
  std::int64_t results_, summed_;  // channels per group
  std::vector<ConvPhase> phases_;
  ConvDirect<T> direct_;
  PatchSource<T> source_;
  FilterSource<T> filter_;
  ConvStore<T> store_;
};

// Rows of channels of a depthwise operand, one element per result channel i: channel i * step +
// part, or channel i / repeat where results share it.
template <class T>
class DepthwiseRow {
 public:
  DepthwiseRow(const PointwiseProgram& source, std::int64_t step, std::int64_t repeat)
      : program_(source, 1, nullptr, step), step_(step), repeat_(repeat) {}

  class Bound {
   public:
    Bound(const DepthwiseRow& row, const KernelContext& context)
        : row_(row), bound_(row.program_.bind(context)) {}
    // Results [first, first + count) at the position in `coords`, whose channel is replaced.
    const T* view(ConvCoords& coords, std::int64_t first, std::int64_t part, std::int64_t count,
                  T* buffer) const {
      if (row_.repeat_ == 1) {
        coords[1] = first * row_.step_ + part;
        return bound_.view(coords.data(), count, buffer);
      }
      coords[1] = first / row_.repeat_;
      alignas(64) T channels[kLongestDirectRow];
      bound_.load(coords.data(), (first + count - 1) / row_.repeat_ - coords[1] + 1, channels);
      for (std::int64_t i = 0; i < count; ++i)
        buffer[i] = channels[(first + i) / row_.repeat_ - coords[1]];
      return buffer;
    }

   private:
    const DepthwiseRow& row_;
    typename RowProgram<T>::Bound bound_;
  };

 private:
  RowProgram<T> program_;
  std::int64_t step_, repeat_;
};

// Rows run along channels, one channel per group: depthwise, channels last. Result channel i takes
// source channels i * sources + s, each at weight i * sources + s; forward it may share its source
// with its neighbours.
template <class T>
class DirectChannelRows final : public Kernel {
 public:
  explicit DirectChannelRows(const Region& region)
      : geometry_(*region.anchor),
        forward_(region.anchor_as<ConvForward>() != nullptr),
        sources_(forward_ ? 1 : geometry_.filters),
        extents_(forward_ ? geometry_.x : geometry_.y),
        results_(geometry_.groups * (forward_ ? geometry_.filters : 1)),
        phases_(phases_of(geometry_, region)),
        direct_(conv_direct<T>()),
        filter_(region.prologues[1], 0, nullptr, sources_),
        source_(region.prologues[0], sources_, forward_ ? geometry_.filters : 1),
        store_(region.epilogue, z_of(region), geometry_, 1, 1) {}

  void run(const KernelContext& context) const override {
    for (const ConvPhase& phase : phases_) run_phase(phase, context);
  }

 private:
  void run_phase(const ConvPhase& phase, const KernelContext& context) const {
    if (phase.pixels() == 0) return;
    const auto terms = static_cast<std::int64_t>(phase.taps.size()) * sources_;
    const std::int64_t longest = direct_row_length(terms);
    const std::int64_t chunks = divide_up(results_, longest);
    const std::int64_t line = phase.extent[kMaxSpatial - 1], lines = phase.pixels() / line;
    const auto filter = filter_.bind(context);
    const typename DepthwiseRow<T>::Bound source(source_, context);
    const typename ConvStore<T>::Bound store(store_, context);
    parallel_for(lines * chunks, 1, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T weights[kRowElements];
      alignas(64) T rows[kRowElements];
      alignas(64) T result[kLongestDirectRow];
      const T *a[kMostTerms], *b[kMostTerms];
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t first = task % chunks * longest;
        const std::int64_t count = std::min(longest, results_ - first);
        load_weights(filter, phase, first, count, longest, weights);
        for (std::int64_t i = 0; i < line; ++i) {
          const ConvPixel pixel(phase, task / chunks * line + i);
          std::int64_t used = 0;
          for (std::size_t tap = 0; tap < phase.taps.size(); ++tap)
            add_terms(source, phase, pixel, tap, first, count, longest, weights, rows, a, b, used);
          direct_.multiply(count, used, a, b, result, false);
          Spatial position;
          for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
            position[axis] = phase.origin[axis] + pixel.at[axis] * phase.step[axis];
          ConvCoords coords;
          geometry_.put(pixel.image, first, position, coords.data());
          store.row(coords, 1, 1, count, result);
        }
      }
    });
  }

  void load_weights(const typename RowProgram<T>::Bound& filter, const ConvPhase& phase,
                    std::int64_t first, std::int64_t count, std::int64_t longest,
                    T* weights) const {
    for (const ConvTap& tap : phase.taps)
      for (std::int64_t s = 0; s < sources_; ++s, weights += longest) {
        ConvCoords coords;
        geometry_.put(first * sources_ + s, 0, tap.stored, coords.data());
        filter.load(coords.data(), count, weights);
      }
  }

  // Appends what a tap inside the source contributes.
  void add_terms(const typename DepthwiseRow<T>::Bound& source, const ConvPhase& phase,
                 const ConvPixel& pixel, std::size_t tap, std::int64_t first, std::int64_t count,
                 std::int64_t longest, const T* weights, T* rows, const T** a, const T** b,
                 std::int64_t& used) const {
    Spatial position;
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis) {
      position[axis] = pixel.at[axis] * phase.scale[axis] + phase.taps[tap].shift[axis];
      if (position[axis] < 0 || position[axis] >= extents_[axis]) return;
    }
    ConvCoords coords;
    geometry_.put(pixel.image, 0, position, coords.data());
    for (std::int64_t s = 0; s < sources_; ++s, ++used) {
      b[used] = weights + (static_cast<std::int64_t>(tap) * sources_ + s) * longest;
      a[used] = source.view(coords, first, s, count, rows + used * longest);
    }
  }

  ConvGeometry geometry_;
  bool forward_;
  std::int64_t sources_;  // summed channels per result channel
  Spatial extents_;
  std::int64_t results_;  // channels
  std::vector<ConvPhase> phases_;
  ConvDirect<T> direct_;
  RowProgram<T> filter_;
  DepthwiseRow<T> source_;
  ConvStore<T> store_;
};

}  // namespace ashlar::cpu

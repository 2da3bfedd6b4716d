// Direct backward-filter convolution for groups of few channels.
#pragma once

#include "cpu/conv_direct_pixels.hpp"

namespace ashlar::cpu {

// Rows run along pixels: NCHW. One task per group.
template <class T>
class DirectFilterPixelRows final : public Kernel {
 public:
  explicit DirectFilterPixelRows(const Region& region)
      : geometry_(*region.anchor),
        x_phase_(geometry_.forward_phase()),
        dy_phase_(geometry_.identity_phase()),
        direct_(conv_direct<T>()),
        x_(region.prologues[ConvBackwardFilter::x], geometry_.x, geometry_.channels,
           geometry_.stride[kMaxSpatial - 1], false),
        dy_(region.prologues[ConvBackwardFilter::dy], geometry_.y, geometry_.filters, 1, false),
        store_(region.epilogue, z_of(region), geometry_, 1, 1) {}

  void run(const KernelContext& context) const override {
    const PatchOperand<T> x(x_, geometry_, x_phase_, false, context);
    const PatchOperand<T> dy(dy_, geometry_, dy_phase_, false, context);
    const FilterSink<T> sink(store_, geometry_, x_phase_, context);
    const std::int64_t terms = geometry_.tap_count() * geometry_.channels;
    const std::int64_t pixels = x_phase_.pixels(), longest = direct_row_length(terms);
    parallel_for(geometry_.groups, 1, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T rows[kRowElements];
      alignas(64) T gradient[kLongestDirectRow];
      double sums[kMostGroupWeights];
      T values[kMostTerms];
      for (std::int64_t group = begin; group < end; ++group) {
        std::fill_n(sums, geometry_.filters * terms, 0.0);
        for (std::int64_t start = 0; start < pixels; start += longest) {
          const std::int64_t count = std::min(longest, pixels - start);
          for (std::int64_t t = 0; t < terms; ++t)
            x.row(group, t, start, count, rows + t * longest);
          for (std::int64_t m = 0; m < geometry_.filters; ++m) {
            dy.row(group, m, start, count, gradient);
            for (std::int64_t t = 0; t < terms; ++t)
              sums[m * terms + t] +=
                  static_cast<double>(direct_.dot(count, rows + t * longest, gradient));
          }
        }
        for (std::int64_t m = 0; m < geometry_.filters; ++m) {
          for (std::int64_t t = 0; t < terms; ++t) values[t] = static_cast<T>(sums[m * terms + t]);
          sink.row(group, m, 0, terms, values);
        }
      }
    });
  }

 private:
  ConvGeometry geometry_;
  ConvPhase x_phase_, dy_phase_;
  ConvDirect<T> direct_;
  PatchSource<T> x_, dy_;
  ConvStore<T> store_;
};

// Rows run along channels, one channel per group. Lines of pixels are cut into `splits` parts,
// summed apart and added in order.
template <class T>
class DirectFilterChannelRows final : public Kernel {
 public:
  DirectFilterChannelRows(const Region& region, std::int64_t splits)
      : geometry_(*region.anchor),
        phase_(geometry_.forward_phase()),
        filters_(geometry_.groups * geometry_.filters),
        splits_(splits),
        direct_(conv_direct<T>()),
        x_(region.prologues[ConvBackwardFilter::x], 1, geometry_.filters),
        dy_(region.prologues[ConvBackwardFilter::dy], 1, 1),
        store_(region.epilogue, z_of(region), geometry_, 1, 1) {
    if (splits_ > 1) scratch_ = scratch_book_.add("partial", scratch_bytes(geometry_, splits_));
  }

  static std::int64_t scratch_bytes(const ConvGeometry& geometry, std::int64_t splits) {
    return splits * geometry.tap_count() * geometry.groups * geometry.filters *
           static_cast<std::int64_t>(sizeof(T));
  }

  void run(const KernelContext& context) const override {
    const Operands operands{{x_, context}, {dy_, context}};
    const FilterSink<T> sink(store_, geometry_, phase_, context);
    const std::int64_t taps = geometry_.tap_count(), longest = direct_row_length(taps);
    const std::int64_t chunks = divide_up(filters_, longest);
    T* partial = splits_ > 1 ? context.scratch<T>(scratch_book_, scratch_) : nullptr;
    parallel_for(chunks * splits_, 1, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T sums[kRowElements];
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t first = task % chunks * longest, split = task / chunks;
        const std::int64_t count = std::min(longest, filters_ - first);
        sum_lines(operands, first, count, longest, split, sums);
        if (splits_ == 1) {
          finish(sink, first, count, sums, longest, 1);
        } else {
          for (std::int64_t tap = 0; tap < taps; ++tap)
            std::copy_n(sums + tap * longest, count,
                        partial + (split * taps + tap) * filters_ + first);
        }
      }
    });
    if (splits_ > 1) finish(sink, 0, filters_, partial, filters_, splits_);
  }

 private:
  static constexpr std::int64_t kRun = 32;  // pixels whose rows are held at once

  struct Operands {
    typename DepthwiseRow<T>::Bound x, dy;
  };

  // sums[tap * longest + i]: filter first + i, over the lines of one part.
  void sum_lines(const Operands& operands, std::int64_t first, std::int64_t count,
                 std::int64_t longest, std::int64_t split, T* sums) const {
    std::fill_n(sums, geometry_.tap_count() * longest, T{0});
    const std::int64_t line = phase_.extent[kMaxSpatial - 1];
    const std::int64_t lines = line == 0 ? 0 : phase_.pixels() / line;
    alignas(64) T x_rows[kRun * kLongestDirectRow];
    alignas(64) T dy_rows[kRun * kLongestDirectRow];
    const T *gradients[kRun], *a[kRun], *b[kRun];
    for (std::int64_t l = lines * split / splits_; l < lines * (split + 1) / splits_; ++l)
      for (std::int64_t start = 0; start < line; start += kRun) {
        const std::int64_t length = std::min(kRun, line - start);
        const ConvPixel pixel(phase_, l * line + start);
        ConvCoords coords;
        for (std::int64_t i = 0; i < length; ++i) {
          geometry_.put(pixel.image, 0, moved(pixel.at, i), coords.data());
          gradients[i] = operands.dy.view(coords, first, 0, count, dy_rows + i * kLongestDirectRow);
        }
        for (std::size_t tap = 0; tap < phase_.taps.size(); ++tap) {
          std::int64_t used = 0;
          for (std::int64_t i = 0; i < length; ++i) {
            Spatial position;
            if (!source_of(moved(pixel.at, i), phase_.taps[tap], position)) continue;
            geometry_.put(pixel.image, 0, position, coords.data());
            a[used] = operands.x.view(coords, first, 0, count, x_rows + used * kLongestDirectRow);
            b[used++] = gradients[i];
          }
          direct_.multiply(count, used, a, b, sums + static_cast<std::int64_t>(tap) * longest,
                           true);
        }
      }
  }

  static Spatial moved(Spatial at, std::int64_t distance) {
    at[kMaxSpatial - 1] += distance;
    return at;
  }

  // False: in the padding.
  bool source_of(const Spatial& at, const ConvTap& tap, Spatial& position) const {
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis) {
      position[axis] = at[axis] * phase_.scale[axis] + tap.shift[axis];
      if (position[axis] < 0 || position[axis] >= geometry_.x[axis]) return false;
    }
    return true;
  }

  // Hands over filters [first, first + count); part p of tap t of filter i is at sums[(p * taps +
  // t) * stride + i].
  void finish(const FilterSink<T>& sink, std::int64_t first, std::int64_t count, const T* sums,
              std::int64_t stride, std::int64_t parts) const {
    const std::int64_t taps = geometry_.tap_count();
    T values[kMostTerms];
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        double total = 0.0;
        for (std::int64_t part = 0; part < parts; ++part)
          total += static_cast<double>(sums[(part * taps + tap) * stride + i]);
        values[tap] = static_cast<T>(total);
      }
      sink.row((first + i) / geometry_.filters, (first + i) % geometry_.filters, 0, taps, values);
    }
  }

  ConvGeometry geometry_;
  ConvPhase phase_;
  std::int64_t filters_, splits_;
  ConvDirect<T> direct_;
  DepthwiseRow<T> x_, dy_;
  ConvStore<T> store_;
  int scratch_ = -1;
};

}  // namespace ashlar::cpu

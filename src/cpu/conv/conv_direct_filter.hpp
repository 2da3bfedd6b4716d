// Direct backward-filter convolution for groups of few channels.
#pragma once

#include "cpu/conv/conv_direct_pixels.hpp"

namespace ashlar::cpu {

// Rows along pixels: NCHW. One task per group.
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
      double sums[kMaxGroupWeights];
      T values[kMaxTerms];
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

}  // namespace ashlar::cpu

// Direct convolution, forward and backward-data, for groups of few channels: weighted sums of
// source rows, without packing.
#pragma once

#include "cpu/conv/conv_rows.hpp"
#include "cpu/kernels/conv_direct.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

// Limits of the stack buffers, in elements.
inline constexpr std::int64_t kMaxTerms = 256;          // taps x reduced channels
inline constexpr std::int64_t kMaxGroupWeights = 1024;  // terms x result channels of a group
inline constexpr std::int64_t kRowElements = 8192;      // rows of all terms

inline constexpr std::int64_t kLongestDirectRow = 128;

inline std::int64_t direct_row_length(std::int64_t terms) {
  return std::min(kLongestDirectRow, kRowElements / std::max<std::int64_t>(terms, 1));
}

// Rows along pixels: NCHW.
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
  static constexpr std::int64_t kChunk = 1024;  // pixels per task

  void run_phase(const ConvPhase& phase, const KernelContext& context) const {
    const PatchOperand<T> source(source_, geometry_, phase, true, context);
    const FilterOperand<T> filter(filter_, geometry_, phase, context);
    const PixelSink<T> sink(store_, geometry_, phase, results_, false, context);
    const std::int64_t terms = static_cast<std::int64_t>(phase.taps.size()) * summed_;
    const std::int64_t pixels = phase.pixels(), chunks = divide_up(pixels, kChunk);
    const std::int64_t longest = direct_row_length(terms);
    parallel_for(geometry_.groups * chunks, 1, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T rows[kRowElements];
      alignas(64) T result[kLongestDirectRow];
      T weights[kMaxGroupWeights];
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t group = task / chunks;
        const std::int64_t first = task % chunks * kChunk, last = std::min(pixels, first + kChunk);
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

}  // namespace ashlar::cpu

// Packs a convolution filter into panels: element (k = (tap, reduced channel), result channel n) of
// a panel at panel[k * columns + n], the last panel padded with zeros.
#pragma once

#include "cpu/conv/conv_tile_source.hpp"
#include "cpu/kernels/igemm_micro_kernel.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

class TileFilter {
 public:
  TileFilter(const PointwiseProgram& program, const ConvGeometry& geometry, bool forward,
             std::int64_t columns)
      : geometry_(geometry),
        forward_(forward),
        columns_(columns),
        source_(program, forward),
        is_float_(program.is_plain_load() && program.steps[0].view.dtype == f32),
        transpose_(transpose_tile()) {
    if (!is_float_) return;
    view_ = program.steps[0].view;
    const ViewStrides distances(view_, geometry.spatial);
    std::int64_t last_tap = 0;
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
      last_tap += (geometry.window[axis] - 1) * distances.axis[axis];
    const std::int64_t taps = geometry.tap_count();
    by_taps_ = result_stride() != 1 && summed_stride() != 1 && taps > 1 && taps <= kMaxTaps &&
               last_tap < taps;
  }

  std::int64_t panels() const { return divide_up(results(), columns_); }
  std::int64_t panel_elements(const ConvPhase& phase) const {
    return static_cast<std::int64_t>(phase.taps.size()) * summed() * columns_;
  }
  std::int64_t elements(const ConvPhase& phase) const {
    return geometry_.groups * panels() * panel_elements(phase);
  }

  // Packs all panels of all groups.
  void pack(const ConvPhase& phase, const KernelContext& context, float* destination) const {
    const auto taps = static_cast<std::int64_t>(phase.taps.size());
    const FilterOperand<float> rows(source_, geometry_, phase, context);
    // Chunks of channels are the unit of work, for all taps or for each tap.
    const std::int64_t chunks = divide_up(summed(), kChunk);
    const std::int64_t panels_of_all = geometry_.groups * panels();
    parallel_for(panels_of_all * chunks, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t panel = item / chunks;
        Part part{panel / panels(),
                  panel % panels() * columns_,
                  0,
                  item % chunks * kChunk,
                  0,
                  destination + panel * panel_elements(phase)};
        part.results = std::min(columns_, results() - part.result);
        part.channels = std::min(kChunk, summed() - part.channel);
        if (part.results < columns_) clear(part, taps);
        if (by_taps_)
          pack_by_taps(phase, part, context);
        else
          for (std::int64_t tap = 0; tap < taps; ++tap) pack_tap(phase, part, tap, rows, context);
      }
    });
  }

 private:
  static constexpr std::int64_t kChunk = 64;  // reduced channels

  struct Part {
    std::int64_t group, result, results, channel, channels;
    float* panel;
  };

  std::int64_t results() const { return forward_ ? geometry_.filters : geometry_.channels; }
  std::int64_t summed() const { return forward_ ? geometry_.channels : geometry_.filters; }
  std::int64_t result_stride() const { return view_.strides[forward_ ? 0 : 1]; }
  std::int64_t summed_stride() const { return view_.strides[forward_ ? 1 : 0]; }
  static constexpr std::int64_t kMaxTaps = 64;

  const float* first(const Part& part, const KernelContext& context) const {
    const std::int64_t filter = part.group * geometry_.filters + (forward_ ? part.result : 0);
    return static_cast<const float*>(context.pointer(view_.tensor)) + view_.offset +
           filter * view_.strides[0] + (forward_ ? 0 : part.result * view_.strides[1]) +
           part.channel * summed_stride();
  }
  std::int64_t stored_offset(const ConvTap& tap) const {
    const ViewStrides distances(view_, geometry_.spatial);
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
      offset += tap.stored[axis] * distances.axis[axis];
    return offset;
  }
  float* row_of(const Part& part, std::int64_t tap, std::int64_t channel) const {
    return part.panel + (tap * summed() + part.channel + channel) * columns_;
  }
  void clear(const Part& part, std::int64_t taps) const {
    for (std::int64_t tap = 0; tap < taps; ++tap)
      std::fill_n(row_of(part, tap, 0), part.channels * columns_, 0.0f);
  }

  void pack_by_taps(const ConvPhase& phase, const Part& part, const KernelContext& context) const {
    alignas(64) float chunk[kMaxTaps * kMaxTileColumns];
    const std::int64_t stored = geometry_.tap_count();
    const float* source = first(part, context);
    for (std::int64_t c = 0; c < part.channels; ++c, source += summed_stride()) {
      transpose_(source, result_stride(), part.results, stored, chunk, columns_);
      for (std::size_t tap = 0; tap < phase.taps.size(); ++tap)
        std::copy_n(chunk + stored_offset(phase.taps[tap]) * columns_, part.results,
                    row_of(part, static_cast<std::int64_t>(tap), c));
    }
  }

  void pack_tap(const ConvPhase& phase, const Part& part, std::int64_t tap,
                const FilterOperand<float>& rows, const KernelContext& context) const {
    float* target = row_of(part, tap, 0);
    if (is_float_ && (result_stride() == 1 || summed_stride() == 1)) {
      const float* source =
          first(part, context) + stored_offset(phase.taps[static_cast<std::size_t>(tap)]);
      if (result_stride() != 1)
        return transpose_(source, result_stride(), part.results, part.channels, target, columns_);
      for (std::int64_t c = 0; c < part.channels; ++c)
        std::copy_n(source + c * summed_stride(), part.results, target + c * columns_);
      return;
    }
    const std::int64_t k = tap * summed() + part.channel;
    if (!source_.along_summed) {
      for (std::int64_t c = 0; c < part.channels; ++c)
        rows.row(part.group, k + c, part.result, part.results, target + c * columns_);
      return;
    }
    alignas(64) float chunk[kMaxTileColumns * kChunk];
    for (std::int64_t n = 0; n < part.results; ++n)
      rows.row(part.group, part.result + n, k, part.channels, chunk + n * kChunk);
    transpose_(chunk, kChunk, part.results, part.channels, target, columns_);
  }

  const ConvGeometry& geometry_;
  bool forward_;
  std::int64_t columns_;
  FilterSource<float> source_;
  bool is_float_;
  bool by_taps_ = false;  // taps are contiguous, channels are not
  View view_;
  TransposeTile transpose_;
};

}  // namespace ashlar::cpu

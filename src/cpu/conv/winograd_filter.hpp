// Filter transform: w to U[panel][point][reduced channel][column of panel].
#pragma once

#include <cstring>

#include "cpu/conv/conv_rows.hpp"
#include "cpu/conv/winograd.hpp"
#include "cpu/kernels/gemm_micro_kernel.hpp"
#include "cpu/kernels/transpose_tile.hpp"
#include "cpu/kernels/winograd.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

class WinogradFilter {
 public:
  WinogradFilter(const PointwiseProgram& program, bool forward, const WinogradShape& shape,
                 const WinogradKernel& kernel)
      : shape_(shape),
        kernel_(kernel),
        transpose_(transpose_tile()),
        forward_(forward),
        panel_(gemm_micro_kernel<float>().columns) {
    if (program.is_plain_load() && program.steps[0].view.dtype == f32) {
      view_ = program.steps[0].view;
      return;
    }
    along_summed_ =
        contiguous_views(program, summed_axis()) > contiguous_views(program, result_axis());
    rows_ = RowProgram<float>(program, along_summed_ ? summed_axis() : result_axis());
  }
  // Floats between points: an odd number of cache lines, so that points map to different cache
  // sets.
  std::int64_t point() const { return shape_.k * panel_ + 16; }
  std::int64_t panel_floats() const { return shape_.points() * point(); }
  std::int64_t panels() const { return divide_up(shape_.results, panel_); }  // per group
  std::int64_t floats() const { return shape_.groups * panels() * panel_floats(); }

  // w bound to the pointers of one run.
  class Bound {
   public:
    Bound(const WinogradFilter& filter, const KernelContext& context) : filter_(filter) {
      if (filter.view_.present())
        memory_ =
            static_cast<const float*>(context.pointer(filter.view_.tensor)) + filter.view_.offset;
      else
        rows_ = filter.rows_.bind(context);
    }
    // Transforms channels [first, first + count) of a panel to u[point][channel - first][column].
    // `panel` counts over all groups.
    void transform(std::int64_t panel, std::int64_t first, std::int64_t count, float* u,
                   std::int64_t point) const {
      for (std::int64_t done = 0; done < count; done += kChunk)
        filter_.transform_chunk(memory_, rows_, panel, first + done, std::min(kChunk, count - done),
                                u + done * filter_.panel_, point);
    }

   private:
    const WinogradFilter& filter_;
    const float* memory_ = nullptr;
    RowProgram<float>::Bound rows_;
  };

  // Transforms all of w to U, on all threads.
  void transform(const KernelContext& context, float* u) const {
    const std::int64_t chunks = divide_up(shape_.k, kChunk);
    const Bound bound(*this, context);
    parallel_for(shape_.groups * panels() * chunks, 2,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t item = begin; item < end; ++item) {
                     const std::int64_t panel = item / chunks, first = item % chunks * kChunk;
                     bound.transform(panel, first, std::min(kChunk, shape_.k - first),
                                     u + panel * panel_floats() + first * panel_, point());
                   }
                 });
  }

 private:
  static constexpr std::int64_t kTaps = 9, kChunk = 16;
  static constexpr std::int64_t kWidest = kPanelColumnMultiple<float>;
  int summed_axis() const { return forward_ ? 1 : 0; }
  int result_axis() const { return forward_ ? 0 : 1; }

  void transform_chunk(const float* memory, const RowProgram<float>::Bound& rows,
                       std::int64_t panel, std::int64_t first, std::int64_t count, float* u,
                       std::int64_t point) const {
    alignas(64) float stage[kChunk * kTaps * kWidest];  // [reduced channel][tap][column]
    const std::int64_t group = panel / panels(), column = panel % panels() * panel_;
    const std::int64_t columns = std::min(panel_, shape_.results - column);
    const std::int64_t sign = shape_.reversed ? -1 : 1;
    if (memory != nullptr && view_.strides[result_axis()] == 1 && columns == panel_) {
      // Whole panel rows are contiguous in memory.
      const Dims& strides = view_.strides;
      const std::int64_t last = shape_.reversed ? 2 * (strides[2] + strides[3]) : 0;
      const float* from = start(memory, group, column, first) + last;
      for (std::int64_t c = 0; c < count; ++c, from += strides[summed_axis()])
        kernel_.filter(from, sign * strides[2], sign * strides[3], panel_, u + c * panel_, point);
      return;
    }
    if (columns < panel_) std::fill_n(stage, count * kTaps * panel_, 0.0f);
    if (memory != nullptr)
      stage_memory(memory, group, column, columns, first, count, stage);
    else
      stage_rows(rows, group, column, columns, first, count, stage);
    for (std::int64_t c = 0; c < count; ++c)
      kernel_.filter(stage + (c * kTaps + (shape_.reversed ? kTaps - 1 : 0)) * panel_,
                     sign * 3 * panel_, sign * panel_, panel_, u + c * panel_, point);
  }

  // Groups are along axis 0: result channels forward, reduced channels backward.
  const float* start(const float* memory, std::int64_t group, std::int64_t column,
                     std::int64_t first) const {
    const Dims& strides = view_.strides;
    return memory + group * (forward_ ? shape_.results : shape_.k) * strides[0] +
           first * strides[summed_axis()] + column * strides[result_axis()];
  }

  void stage_memory(const float* memory, std::int64_t group, std::int64_t column,
                    std::int64_t columns, std::int64_t first, std::int64_t count,
                    float* stage) const {
    const Dims& strides = view_.strides;
    const std::int64_t by_summed = strides[summed_axis()], by_result = strides[result_axis()];
    memory = start(memory, group, column, first);
    const bool taps_together = strides[3] == 1 && strides[2] == 3;
    if (taps_together && by_summed == kTaps)
      return transpose_(memory, by_result, columns, count * kTaps, stage, panel_);
    for (std::int64_t c = 0; c < count; ++c) {
      if (taps_together) {
        transpose_(memory + c * by_summed, by_result, columns, kTaps, stage + c * kTaps * panel_,
                   panel_);
      } else if (by_result == 1 || by_summed != 1) {
        for (std::int64_t tap = 0; tap < kTaps; ++tap) {
          const float* from = memory + c * by_summed + tap / 3 * strides[2] + tap % 3 * strides[3];
          float* to = stage + (c * kTaps + tap) * panel_;
          for (std::int64_t i = 0; i < columns; ++i) to[i] = from[i * by_result];
        }
      }
    }
    if (taps_together || by_result == 1 || by_summed != 1) return;
    for (std::int64_t tap = 0; tap < kTaps; ++tap)
      transpose_(memory + tap / 3 * strides[2] + tap % 3 * strides[3], by_result, columns, count,
                 stage + tap * panel_, kTaps * panel_);
  }

  void stage_rows(const RowProgram<float>::Bound& rows, std::int64_t group, std::int64_t column,
                  std::int64_t columns, std::int64_t first, std::int64_t count,
                  float* stage) const {
    const std::int64_t base = group * (forward_ ? shape_.results : shape_.k);
    const auto load = [&](std::int64_t result, std::int64_t summed, std::int64_t tap,
                          std::int64_t length, float* to) {
      const ConvCoords coords{base + (forward_ ? result : summed), forward_ ? summed : result,
                              tap / 3, tap % 3};
      rows.load(coords.data(), length, to);
    };
    alignas(64) float lines[kWidest * kChunk];
    for (std::int64_t tap = 0; tap < kTaps; ++tap) {
      float* to = stage + tap * panel_;
      if (!along_summed_) {
        for (std::int64_t c = 0; c < count; ++c)
          load(column, first + c, tap, columns, to + c * kTaps * panel_);
        continue;
      }
      for (std::int64_t i = 0; i < columns; ++i)
        load(column + i, first, tap, count, lines + i * kChunk);
      transpose_(lines, kChunk, columns, count, to, kTaps * panel_);
    }
  }

  WinogradShape shape_;
  const WinogradKernel& kernel_;
  TransposeTile transpose_;
  bool forward_, along_summed_ = false;
  std::int64_t panel_;
  View view_;
  RowProgram<float> rows_;
};

}  // namespace ashlar::cpu

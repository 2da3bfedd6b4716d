// Scatter along lines of y: a line, or a bundle of neighbouring lines, is accumulated in scratch
// memory while source and index are read row by row.
#include <cmath>

#include "cpu/engines/scatter.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kLineRow = 2048;          // elements of source at once
constexpr std::int64_t kBundle = 16;             // lines of a bundle
constexpr std::int64_t kLineCapacity = 1 << 18;  // elements accumulated at once

template <class T>
class ScatterLinesKernel final : public Kernel {
 public:
  ScatterLinesKernel(const Region& region, const DeviceProps& device)
      : shape_(region),
        axis_(shape_.axes.axis),
        index_(shape_.axes.index_over(shape_.source, shape_.index)) {
    const PointwiseProgram& source = region.prologues[Scatter::source];
    const PointwiseProgram& base = input_program(region, Scatter::base);
    has_base_ = !base.empty();
    // Rows of source run along the index, in the order of its elements, or across lines of y.
    row_ = axis_ + (shape_.axes.slices ? shape_.axes.index_rank - 1 : 0);
    if (!shape_.axes.slices) {
      PointwiseProgram indices;
      indices.space = shape_.source;
      indices.steps.push_back({.view = index_});
      row_ = choose_row_axis(shape_.source, {&source, &indices});
    }
    across_ = !shape_.axes.slices && row_ != axis_;
    const int y_row = across_ ? row_ : axis_;
    Dims lines = shape_.y, reads = Dims::filled(shape_.source.rank(), 1);
    lines[axis_] = 1;
    lanes_ = across_ ? std::min(kBundle, std::max<std::int64_t>(lines[row_], 1)) : 1;
    lines_ = {lines, y_row, lanes_};
    for (int a = 0; a < reads.rank(); ++a)
      if (shape_.axes.slices ? shape_.axes.is_index_axis(a) : a == axis_)
        reads[a] = shape_.source[a];
    reads_ = {reads, row_, kLineRow};
    length_ = std::max<std::int64_t>(std::min(shape_.extent, kLineCapacity / lanes_), 1);
    parts_ = (shape_.extent + length_ - 1) / length_;

    source_ = RowProgram<T>(source, row_);
    if (has_base_) base_ = RowProgram<T>(base, y_row);
    result_ = RowProgram<T>(region.epilogue, y_row, nullptr, 1, store_to(region.epilogue, device));
    const std::int64_t elements =
        checked_add(element_count(shape_.y), element_count(shape_.source));
    teams_ = std::clamp<std::int64_t>(elements / items_per_thread(1), 1,
                                      std::max(device.compute_units, 1));
    teams_ = std::clamp<std::int64_t>(lines_.count() * parts_, 1, teams_);
    lines_memory_ = scratch_layout_.add(
        "lines", checked_mul(teams_ * length_ * lanes_, static_cast<std::int64_t>(sizeof(T))));
  }

  void run(const KernelContext& context) const override {
    if (element_count(shape_.y) == 0) return;
    Run now{context.pointer(shape_.index.tensor), source_.bind(context), {}, result_.bind(context)};
    if (has_base_) now.base = base_.bind(context);
    T* memory = context.scratch<T>(scratch_layout_, lines_memory_);
    const std::int64_t tasks = lines_.count() * parts_;
    parallel_for(teams_, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t team = begin; team < end; ++team)
        for (std::int64_t task = tasks * team / teams_; task < tasks * (team + 1) / teams_; ++task)
          write_lines(now, task, memory + team * length_ * lanes_);
    });
  }

 private:
  struct Run {
    const void* index;
    typename RowProgram<T>::Bound source, base, result;
  };
  // Elements [low, high) of `width` lines, and their accumulators: [high - low][lanes_].
  struct Lines {
    std::int64_t low, high, width;
    T* sums;
  };

  void write_lines(const Run& now, std::int64_t task, T* sums) const {
    Coords at;
    const std::int64_t width = lines_.locate(task / parts_, at);
    const std::int64_t low = task % parts_ * length_;
    const Lines lines{low, std::min(low + length_, shape_.extent), width, sums};
    std::int64_t& position = at[static_cast<std::size_t>(axis_)];
    const auto for_rows = [&](const auto& body) {
      position = low;
      if (!across_) return body(lines.high - low, sums);
      for (; position < lines.high; ++position) body(width, sums + (position - low) * lanes_);
    };
    if (has_base_)
      for_rows([&](std::int64_t count, T* row) { now.base.load(at.data(), count, row); });
    else
      std::fill(sums, sums + (lines.high - low) * lanes_, T{0});
    add_contributions(now, at, lines);
    for_rows([&](std::int64_t count, T* row) { now.result.store(at.data(), count, row); });
  }

  void add_contributions(const Run& now, const Coords& line, const Lines& lines) const {
    alignas(64) T buffer[kLineRow];
    alignas(64) std::int64_t positions[kLineRow];
    for (std::int64_t row = 0, rows = reads_.count(); row < rows; ++row) {
      Coords at{};
      std::int64_t count = reads_.locate(row, at);
      if (across_) count = lines.width;
      for (int a = 0; a < shape_.y.rank(); ++a)
        if (a != axis_)
          at[static_cast<std::size_t>(shape_.axes.of_selection(a))] =
              line[static_cast<std::size_t>(a)];
      const T* values = now.source.view(at.data(), count, buffer);
      shape_.positions.load(now.index, element_at(index_, at), index_.strides[row_], count,
                            positions);
      combine(values, positions, count, lines);
    }
  }

  void combine(const T* values, const std::int64_t* positions, std::int64_t count,
               const Lines& lines) const {
    const auto each = [&](const auto& combined) {
      const std::int64_t lane = across_ ? 1 : 0;
      for (std::int64_t i = 0; i < count; ++i) {
        if (positions[i] < lines.low || positions[i] >= lines.high) continue;
        T& sum = lines.sums[(positions[i] - lines.low) * lanes_ + i * lane];
        sum = combined(sum, values[i]);
      }
    };
    switch (shape_.op.combine) {
      case ScatterMode::set: return each([](T, T b) { return b; });
      case ScatterMode::add: return each([](T a, T b) { return a + b; });
      case ScatterMode::mul: return each([](T a, T b) { return a * b; });
      case ScatterMode::min: return each([](T a, T b) { return std::isnan(a) || a < b ? a : b; });
      case ScatterMode::max: return each([](T a, T b) { return std::isnan(a) || a > b ? a : b; });
    }
  }

  ScatterShape shape_;
  int axis_, row_ = 0;  // of y; of rows of source
  View index_;          // over source
  bool across_ = false, has_base_ = false;
  RowLoop lines_;  // bundles of lines of y
  RowLoop reads_;  // rows of source that belong to a bundle
  std::int64_t lanes_ = 1, length_ = 1, parts_ = 1, teams_ = 1;
  RowProgram<T> source_, base_, result_;
  int lines_memory_ = -1;
};

}  // namespace

std::unique_ptr<Kernel> build_scatter_lines(const Region& region, const DeviceProps& device) {
  return build_for_precision<ScatterLinesKernel>(region, device);
}

}  // namespace ashlar::cpu

// Nearest and linear resampling, forward and backward. Both directions have the same form: along
// each spatial axis every result is a weighted sum of a few elements; backward uses the transposed
// tap table. Tables are computed at build time.
#include <cmath>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/pooling.hpp"
#include "cpu/kernels/gather.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kResultRow = 1024;  // results at once
constexpr std::int64_t kSegment = 4096;    // maximum source elements of them

// Tap table of an axis: result o sums taps [begin[o], begin[o + 1]).
struct AxisTaps {
  std::vector<std::int64_t> begin = {0};
  std::vector<std::int64_t> source;  // ascending within a result
  std::vector<double> weight;

  std::int64_t results() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::int64_t first(std::int64_t o) const { return begin[static_cast<std::size_t>(o)]; }
  std::int64_t count(std::int64_t o) const { return first(o + 1) - first(o); }
  std::int64_t source_of(std::int64_t tap) const { return source[static_cast<std::size_t>(tap)]; }
  double weight_of(std::int64_t tap) const { return weight[static_cast<std::size_t>(tap)]; }
  void add(std::int64_t from, double by) {
    source.push_back(from);
    weight.push_back(by);
  }
  void end_result() { begin.push_back(static_cast<std::int64_t>(source.size())); }
  // Span of the source elements of a result.
  std::int64_t width(std::int64_t o) const {
    return count(o) == 0 ? 0 : source_of(first(o + 1) - 1) - source_of(first(o)) + 1;
  }
};

// The formulas of docs/ops/resample.md.
AxisTaps forward_taps(const ResampleAttributes& op, std::int64_t in, std::int64_t out) {
  AxisTaps taps;
  const auto last = static_cast<double>(in - 1);
  for (std::int64_t o = 0; o < out; ++o) {
    if (op.mode == ResampleMode::nearest) {
      taps.add(std::min(o * in / out, in - 1), 1.0);
    } else {
      const double ratio = static_cast<double>(in) / static_cast<double>(out);
      const double centre = (static_cast<double>(o) + 0.5) * ratio - 0.5;
      const double corner =
          out == 1 ? 0.0 : static_cast<double>(o) * (last / static_cast<double>(out - 1));
      const double position = op.align_corners ? corner : std::clamp(centre, 0.0, last);
      const auto below = std::min(static_cast<std::int64_t>(position), in - 1);
      const double above = position - static_cast<double>(below);
      taps.add(below, 1.0 - above);
      if (above > 0.0 && below + 1 < in) taps.add(below + 1, above);
    }
    taps.end_result();
  }
  return taps;
}

AxisTaps transposed(const AxisTaps& taps, std::int64_t sources) {
  std::vector<std::vector<std::pair<std::int64_t, double>>> lists(
      static_cast<std::size_t>(sources));
  for (std::int64_t o = 0; o < taps.results(); ++o)
    for (std::int64_t tap = taps.first(o); tap < taps.first(o + 1); ++tap)
      lists[static_cast<std::size_t>(taps.source_of(tap))].emplace_back(o, taps.weight_of(tap));
  AxisTaps result;
  for (const auto& list : lists) {
    for (const auto& [o, by] : list) result.add(o, by);
    result.end_result();
  }
  return result;
}

// The problem in either direction: results are weighted sums of elements of `from`.
struct Interpolated {
  bool forward;
  ResampleAttributes op;
  Dims from, to;
  int axis;  // row axis: 0 or 1 if all elements of a row have the same taps, else the last

  explicit Interpolated(const Region& region)
      : forward(region.anchor_as<ResampleForward>() != nullptr),
        op(forward ? static_cast<const ResampleAttributes&>(*region.anchor_as<ResampleForward>())
                   : *region.anchor_as<ResampleBackward>()),
        from(region.prologues[0].space),
        to(region.epilogue.space) {
    const int best = choose_row_axis(from, {&region.prologues[0]});
    axis = best <= 1 && from[best] >= 8 ? best : from.rank() - 1;
  }
  bool along() const { return axis >= 2; }
  AxisTaps taps(int a) const {
    return forward ? forward_taps(op, from[a], to[a])
                   : transposed(forward_taps(op, to[a], from[a]), to[a]);
  }
};

template <class T>
class InterpolationKernel final : public Kernel {
 public:
  explicit InterpolationKernel(const Region& region)
      : InterpolationKernel(region, Interpolated(region)) {}

  void run(const KernelContext& context) const override {
    const auto from = from_.bind(context), to = to_.bind(context);
    parallel_for(rows_.count(), grain_, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T result[kResultRow];
      for (std::int64_t row = begin; row < end; ++row) {
        Coords at;
        std::int64_t count = rows_.locate(row, at);
        if (along_) {
          const Chunk& chunk = chunks_[static_cast<std::size_t>(at[axis_])];
          at[axis_] = chunk.begin;
          count = chunk.count;
          alignas(64) T segment[kSegment];
          Coords source = at;
          source[axis_] = chunk.first_source;
          const T* values = sum_rows(from, at, source, axis_, chunk.sources, segment);
          gather_(values, index_.data() + chunk.table, weight_.data() + chunk.table, chunk.taps,
                  count, count, result);
          to.store(at.data(), count, result);
        } else {
          sum_rows(from, at, at, axes_.size() + 2, count, result);
          to.store(at.data(), count, result);
        }
      }
    });
  }

 private:
  // Results [begin, begin + count) of the last axis, from `sources` elements.
  struct Chunk {
    std::int64_t begin, count, first_source, sources, taps, table;
  };

  InterpolationKernel(const Region& region, const Interpolated& problem)
      : ops_(row_ops<T>()),
        gather_(gather_sum<T>()),
        along_(problem.along()),
        axis_(static_cast<std::size_t>(problem.axis)),
        rows_{problem.to, problem.axis, kResultRow},
        from_(region.prologues[0], problem.axis),
        to_(region.epilogue, problem.axis) {
    double taps = 1;
    for (int a = 2; a < problem.to.rank(); ++a) {
      axes_.push_back(problem.taps(a));
      taps *= static_cast<double>(axes_.back().source.size()) /
              static_cast<double>(std::max<std::int64_t>(problem.to[a], 1));
    }
    if (along_) make_chunks();
    const std::int64_t row =
        along_ ? problem.to[problem.axis] / std::max<std::int64_t>(rows_.dims[problem.axis], 1)
               : std::min(kResultRow, problem.to[problem.axis]);
    grain_ = items_per_thread(std::max<std::int64_t>(row, 1) * static_cast<std::int64_t>(taps + 1));
  }

  void make_chunks() {
    const AxisTaps& taps = axes_.back();
    for (std::int64_t begin = 0; begin < taps.results();) {
      Chunk chunk{begin, 0, 0, 0, 0, static_cast<std::int64_t>(index_.size())};
      std::int64_t end_source = 0;
      for (std::int64_t o = begin; o < taps.results() && chunk.count < kResultRow;
           ++o, ++chunk.count) {
        if (taps.count(o) == 0) continue;
        const std::int64_t low = taps.source_of(taps.first(o)),
                           high = taps.source_of(taps.first(o + 1) - 1) + 1;
        const bool none_yet = chunk.sources == 0;
        const std::int64_t first = none_yet ? low : std::min(chunk.first_source, low);
        const std::int64_t end = none_yet ? high : std::max(end_source, high);
        if (end - first > kSegment) break;
        chunk.first_source = first;
        end_source = end;
        chunk.sources = end - first;
        chunk.taps = std::max(chunk.taps, taps.count(o));
      }
      for (std::int64_t k = 0; k < chunk.taps; ++k)
        for (std::int64_t o = begin; o < begin + chunk.count; ++o) {
          const bool there = k < taps.count(o);
          const std::int64_t tap = taps.first(o) + k;
          index_.push_back(
              static_cast<GatherIndex<T>>(there ? taps.source_of(tap) - chunk.first_source : 0));
          weight_.push_back(there ? static_cast<T>(taps.weight_of(tap)) : T{0});
        }
      chunks_.push_back(chunk);
      begin += chunk.count;
    }
    // The loop is over chunks of the last axis.
    rows_.dims[static_cast<int>(axis_)] = static_cast<std::int64_t>(chunks_.size());
    rows_.length = 1;
  }

  // The weighted sum of the source rows of result `at`, over the taps of axes [2, axes). Other
  // coordinates are those of `source`. Returns `sums`, or the row itself if it is the sum.
  const T* sum_rows(const typename RowProgram<T>::Bound& from, const Coords& at, Coords source,
                    std::size_t axes, std::int64_t count, T* sums) const {
    std::array<std::int64_t, 3> tap{};
    std::int64_t combinations = 1;
    for (std::size_t a = 2; a < axes; ++a) combinations *= axes_[a - 2].count(at[a]);
    std::fill(sums, sums + count, T{0});
    alignas(64) T row[kSegment];
    for (std::int64_t done = 0; done < combinations; ++done) {
      double weight = 1.0;
      for (std::size_t a = 2; a < axes; ++a) {
        const std::int64_t number = axes_[a - 2].first(at[a]) + tap[a - 2];
        source[a] = axes_[a - 2].source_of(number);
        weight *= axes_[a - 2].weight_of(number);
      }
      const T* values = from.view(source.data(), count, row);
      // A single row of weight 1 is gathered from directly, without a copy.
      if (along_ && combinations == 1 && weight == 1.0 && values != row) return values;
      ops_.axpy(static_cast<T>(weight), values, count, sums);
      for (std::size_t a = axes; a-- > 2;) {
        if (++tap[a - 2] < axes_[a - 2].count(at[a])) break;
        tap[a - 2] = 0;
      }
    }
    return sums;
  }

  const RowOps<T>& ops_;
  GatherSum<T> gather_;
  bool along_;
  std::size_t axis_;
  RowLoop rows_;
  std::int64_t grain_;
  RowProgram<T> from_, to_;
  std::vector<AxisTaps> axes_;  // by spatial axis
  // Tables of the last axis: [tap][result] per chunk.
  std::vector<Chunk> chunks_;
  std::vector<GatherIndex<T>> index_;
  std::vector<T> weight_;
};

class InterpolationEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.interpolation"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "nearest and linear resampling, forward and backward";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<ResampleForward>() && !region.anchor_as<ResampleBackward>())
      return Support::other_operation("the anchor is not a resampling");
    const Interpolated problem(region);
    if (problem.op.mode != ResampleMode::nearest && problem.op.mode != ResampleMode::bilinear)
      return Support::no("a pooling mode; nearest and bilinear are supported");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (problem.op.mode == ResampleMode::bilinear && !is_floating(region.anchor->compute))
      return Support::no(
          "bilinear with an integer compute type: rounding depends on the reference's order");
    if (!problem.along()) return Support::yes();
    const AxisTaps taps = problem.taps(problem.axis);
    for (std::int64_t o = 0; o < taps.results(); ++o)
      if (taps.width(o) > kSegment)
        return Support::no("a result spans {} elements of a row, at most {} are supported",
                           taps.width(o), kSegment);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    const Interpolated problem(region);
    Cost cost = row_cost(region, problem.along() ? 0.2 : 0.4);
    cost.flops =
        4.0 * static_cast<double>(std::max(element_count(problem.from), element_count(problem.to)));
    return {make_config({{"axis", problem.axis}}, cost)};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    return build_for_precision<InterpolationKernel>(region);
  }
};

}  // namespace

const Engine& interpolation_engine() {
  static const InterpolationEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

#include "cuda/engines/sm80/implicit_gemm.hpp"

#include <algorithm>
#include <numeric>

#include "cuda/engines/blended_epilogue.hpp"
#include "cuda/engines/channel_axes.hpp"

namespace ashlar::cuda {

namespace {

std::int64_t at(const Dims& values, int axis, std::int64_t missing) {
  return values.empty() ? missing : values[axis];
}

// Builds the GEMM problem of a convolution, one method per direction.
class Convolution {
 public:
  Convolution(const Region& region, const ConvAttributes& op, const Dims& x, const Dims& w,
              const Dims& y)
      : region_(region),
        op_(op),
        x_(x),
        w_(w),
        y_(y),
        spatial_(w.rank() - 2),
        channels_(w[1]),
        groups_(w[1] == 0 ? 1 : std::max<std::int64_t>(x[1] / w[1], 1)),
        filters_(w[0] / groups_) {}

  // m: pixels of y. n: filters. k: taps and channels.
  GemmProblem forward() {
    GemmProblem problem = start(1);
    const PointwiseProgram& from = input_program(region_, ConvForward::x);
    problem.sub_indices = {std::vector<PerVariant>{{groups_}}, pixels(y_), {{filters_}}, {}};
    const int channel = add_taps(problem, GemmDim::k, taps(), residual(ConvForward::x, channels_),
                                 fast_axis(from) == 1);
    problem.a = operand(from, ConvForward::x);
    problem.a.coordinates = {sub_index(GemmDim::m, 0), sum(sub_index(GemmDim::batch, 0, channels_),
                                                           sub_index(GemmDim::k, channel))};
    for (int axis = 0; axis < spatial_; ++axis)
      problem.a.coordinates.push_back(sum(sub_index(GemmDim::m, 1 + axis, stride(axis)),
                                          tap_offset(axis, tap(GemmDim::k, channel, axis))));
    problem.b = operand(input_program(region_, ConvForward::w), ConvForward::w);
    problem.b.coordinates = filter(GemmDim::n, GemmDim::k, channel);
    problem.d.coordinates = output_pixels(GemmDim::m, GemmDim::n);
    return problem;
  }

  // m: filters. n: weights of a filter. k: pixels of y.
  GemmProblem backward_filter() {
    GemmProblem problem = start(1);
    const PointwiseProgram& from = input_program(region_, ConvBackwardFilter::x);
    problem.sub_indices = {std::vector<PerVariant>{{groups_}},
                           {{residual(ConvBackwardFilter::dy, filters_)}},
                           {},
                           pixels(y_)};
    // Every CTA reads x along all of K and writes weights once: the layout of x decides.
    const int channel =
        add_taps(problem, GemmDim::n, taps(), residual(ConvBackwardFilter::x, channels_),
                 fast_axis(from) == 1 || fast_axis(problem.d.program) == 1);
    problem.a = operand(input_program(region_, ConvBackwardFilter::dy), ConvBackwardFilter::dy);
    problem.a.coordinates = output_pixels(GemmDim::k, GemmDim::m);
    problem.b = operand(from, ConvBackwardFilter::x);
    problem.b.coordinates = {sub_index(GemmDim::k, 0), sum(sub_index(GemmDim::batch, 0, channels_),
                                                           sub_index(GemmDim::n, channel))};
    for (int axis = 0; axis < spatial_; ++axis)
      problem.b.coordinates.push_back(sum(sub_index(GemmDim::k, 1 + axis, stride(axis)),
                                          tap_offset(axis, tap(GemmDim::n, channel, axis))));
    problem.d.coordinates = filter(GemmDim::m, GemmDim::n, channel);
    return problem;
  }

  // Windows tile x without overlap or gaps (patch embedding).
  bool has_patches() const {
    bool result = true;
    for (int axis = 0; axis < spatial_; ++axis)
      result = result && dilation(axis) == 1 && padding(axis) == 0 &&
               w_[2 + axis] == stride(axis) && x_[2 + axis] == y_[2 + axis] * stride(axis);
    return result;
  }
  // Every pixel of x belongs to one window. m: pixels of y. n: weights of a filter. k: filters.
  GemmProblem backward_data_of_patches() {
    GemmProblem problem = start(1);
    problem.sub_indices = {std::vector<PerVariant>{{groups_}},
                           pixels(y_),
                           {},
                           {{residual(ConvBackwardData::dy, filters_)}}};
    const int channel =
        add_taps(problem, GemmDim::n, taps(), residual(ConvBackwardData::w, channels_),
                 fast_axis(problem.d.program) == 1);
    problem.a = operand(input_program(region_, ConvBackwardData::dy), ConvBackwardData::dy);
    problem.a.coordinates = output_pixels(GemmDim::m, GemmDim::k);
    problem.b = operand(input_program(region_, ConvBackwardData::w), ConvBackwardData::w);
    problem.b.coordinates = filter(GemmDim::k, GemmDim::n, channel);
    problem.d.coordinates = {sub_index(GemmDim::m, 0), sum(sub_index(GemmDim::batch, 0, channels_),
                                                           sub_index(GemmDim::n, channel))};
    for (int axis = 0; axis < spatial_; ++axis)
      problem.d.coordinates.push_back(sum(sub_index(GemmDim::m, 1 + axis, stride(axis)),
                                          tap_offset(axis, tap(GemmDim::n, channel, axis))));
    return problem;
  }

  // m: pixels of x of one residue modulo the stride per variant. n: channels. k: taps and filters.
  GemmProblem backward_data() {
    if (has_patches()) return backward_data_of_patches();
    std::size_t variants = 1;
    for (int axis = 0; axis < spatial_; ++axis) variants *= static_cast<std::size_t>(stride(axis));
    GemmProblem problem = start(variants);
    const PointwiseProgram& from = input_program(region_, ConvBackwardData::dy);
    // By axis and variant.
    std::vector<std::vector<Residue>> residues(static_cast<std::size_t>(spatial_));
    std::vector<PerVariant> counts, rows = {same(x_[0])};
    for (int axis = 0; axis < spatial_; ++axis) {
      PerVariant count, extent;
      for (std::size_t variant = 0; variant < variants; ++variant) {
        const Residue residue = residue_of(axis, phase_of(variant, axis));
        residues[static_cast<std::size_t>(axis)].push_back(residue);
        count.push_back(residue.taps);
        extent.push_back(residue.pixels);
      }
      counts.push_back(count);
      rows.push_back(extent);
    }
    problem.sub_indices = {std::vector<PerVariant>{same(groups_)},
                           rows,
                           {same(residual(ConvBackwardData::w, channels_))},
                           {}};
    const int channel = add_taps(problem, GemmDim::k, counts,
                                 residual(ConvBackwardData::dy, filters_), fast_axis(from) == 1);
    problem.a = operand(from, ConvBackwardData::dy);
    problem.b = operand(input_program(region_, ConvBackwardData::w), ConvBackwardData::w);
    problem.a.coordinates = {sub_index(GemmDim::m, 0), sum(sub_index(GemmDim::batch, 0, filters_),
                                                           sub_index(GemmDim::k, channel))};
    problem.b.coordinates = {problem.a.coordinates[1], sub_index(GemmDim::n, 0)};
    problem.d.coordinates = {sub_index(GemmDim::m, 0), sum(sub_index(GemmDim::batch, 0, channels_),
                                                           sub_index(GemmDim::n, 0))};
    for (int axis = 0; axis < spatial_; ++axis) {
      Coordinate out = sub_index(GemmDim::m, 1 + axis), weight,
                 pixel = sub_index(GemmDim::m, 1 + axis);
      IndexTerm earlier{GemmDim::k, tap(GemmDim::k, channel, axis).sub_index, {}}, step = earlier;
      pixel.base.clear();
      pixel.terms[0].factor = same(stride(axis));
      out.base.clear();
      for (std::size_t variant = 0; variant < variants; ++variant) {
        const Residue& residue = residues[static_cast<std::size_t>(axis)][variant];
        out.base.push_back(residue.out);
        earlier.factor.push_back(-residue.out_step);
        const std::int64_t last = w_[2 + axis] - 1;
        weight.base.push_back(flips() ? last - residue.tap : residue.tap);
        step.factor.push_back(flips() ? -residue.tap_step : residue.tap_step);
        pixel.base.push_back(phase_of(variant, axis));
      }
      out.terms.push_back(earlier);
      weight.terms.push_back(step);
      problem.a.coordinates.push_back(out);
      problem.b.coordinates.push_back(weight);
      problem.d.coordinates.push_back(pixel);
    }
    return problem;
  }

 private:
  // Pixels phase, phase + stride, ... of x use the taps tap, tap + tap_step, ...; tap j of pixel i
  // reads output i + out - j * out_step.
  struct Residue {
    std::int64_t pixels, taps, tap, tap_step, out, out_step;
  };
  Residue residue_of(int axis, std::int64_t phase) const {
    const std::int64_t extent = x_[2 + axis], by = stride(axis), reach = dilation(axis);
    Residue result{.pixels = std::max<std::int64_t>((extent - phase + by - 1) / by, 0),
                   .taps = 0,
                   .tap = 0,
                   .tap_step = by / std::gcd(by, reach),
                   .out = 0,
                   .out_step = reach / std::gcd(by, reach)};
    const std::int64_t first = phase + padding(axis);
    while (result.tap < result.tap_step && (first - result.tap * reach) % by != 0) ++result.tap;
    if (result.tap == result.tap_step)
      return {.pixels = result.pixels, .taps = 0, .tap = 0, .tap_step = 1, .out = 0, .out_step = 0};
    result.taps = std::max<std::int64_t>(
        (w_[2 + axis] - result.tap + result.tap_step - 1) / result.tap_step, 0);
    result.out = (first - result.tap * reach) / by;
    return result;
  }
  std::int64_t phase_of(std::size_t variant, int axis) const {
    auto rest = static_cast<std::int64_t>(variant);
    for (int other = spatial_ - 1; other > axis; --other) rest /= stride(other);
    return rest % stride(axis);
  }

  std::int64_t stride(int axis) const { return at(op_.stride, axis, 1); }
  std::int64_t dilation(int axis) const { return at(op_.dilation, axis, 1); }
  std::int64_t padding(int axis) const { return at(op_.padding, axis, 0); }
  bool flips() const { return op_.mode == ConvMode::convolution; }
  PerVariant same(std::int64_t value) const { return PerVariant(variants_, value); }

  GemmProblem start(std::size_t variants) {
    variants_ = variants;
    GemmProblem problem;
    problem.variants = variants;
    problem.d.program = blended_epilogue(region_);
    problem.d.dtype = region_.anchor->outputs[0].dtype;
    return problem;
  }
  ProblemOperand operand(const PointwiseProgram& program, int slot) const {
    return {program, {}, region_.anchor->inputs[static_cast<std::size_t>(slot)].dtype, slot};
  }
  // Channels per group as the input provides them: a repacked input may have more than the
  // operation's `channels` (packed_region.hpp).
  std::int64_t residual(int slot, std::int64_t channels) const {
    return groups_ == 1 ? input_program(region_, slot).space[1] : channels;
  }
  std::vector<PerVariant> pixels(const Dims& dims) const {
    std::vector<PerVariant> result = {same(dims[0])};
    for (int axis = 0; axis < spatial_; ++axis) result.push_back(same(dims[2 + axis]));
    return result;
  }
  std::vector<PerVariant> taps() const {
    std::vector<PerVariant> result;
    result.reserve(static_cast<std::size_t>(spatial_));
    for (int axis = 0; axis < spatial_; ++axis) result.push_back(same(w_[2 + axis]));
    return result;
  }
  // Adds the sub-indices of taps and channel; the contiguous one comes last. Returns the channel's
  // position.
  int add_taps(GemmProblem& problem, GemmDim dim, const std::vector<PerVariant>& taps,
               std::int64_t channels, bool channels_last) const {
    std::vector<PerVariant>& sub_indices = problem.sub_indices[static_cast<std::size_t>(dim)];
    sub_indices = taps;
    sub_indices.insert(channels_last ? sub_indices.end() : sub_indices.begin(), same(channels));
    return channels_last ? spatial_ : 0;
  }
  IndexTerm tap(GemmDim dim, int channel, int axis) const {
    return {dim, channel == 0 ? 1 + axis : axis, same(1)};
  }

  Coordinate sub_index(GemmDim dim, int number, std::int64_t factor = 1) const {
    return {same(0), {{dim, number, same(factor)}}};
  }
  static Coordinate sum(Coordinate a, const Coordinate& b) {
    for (std::size_t i = 0; i < a.base.size(); ++i) a.base[i] += b.base[i];
    a.terms.insert(a.terms.end(), b.terms.begin(), b.terms.end());
    return a;
  }
  // Offset in x, from the origin of an output's window, of the tap of this sub-index.
  Coordinate tap_offset(int axis, IndexTerm term) const {
    const std::int64_t reach = dilation(axis), last = (w_[2 + axis] - 1) * reach;
    term.factor = same(flips() ? -reach : reach);
    return {same((flips() ? last : 0) - padding(axis)), {term}};
  }
  std::vector<Coordinate> filter(GemmDim filters, GemmDim weights, int channel) const {
    std::vector<Coordinate> result = {
        sum(sub_index(GemmDim::batch, 0, filters_), sub_index(filters, 0)),
        sub_index(weights, channel)};
    for (int axis = 0; axis < spatial_; ++axis)
      result.push_back({same(0), {tap(weights, channel, axis)}});
    return result;
  }
  std::vector<Coordinate> output_pixels(GemmDim pixels, GemmDim filters) const {
    std::vector<Coordinate> result = {
        sub_index(pixels, 0), sum(sub_index(GemmDim::batch, 0, filters_), sub_index(filters, 0))};
    for (int axis = 0; axis < spatial_; ++axis) result.push_back(sub_index(pixels, 1 + axis));
    return result;
  }

  const Region& region_;
  const ConvAttributes& op_;
  const Dims &x_, &w_, &y_;
  int spatial_;
  std::int64_t channels_, groups_, filters_;  // of one group
  std::size_t variants_ = 1;
};

}  // namespace

GemmProblem implicit_gemm(const Region& region) {
  const auto& inputs = region.anchor->inputs;
  const Dims& result = region.anchor->outputs[0].dims;
  if (const auto* forward = region.anchor_as<ConvForward>())
    return Convolution(region, *forward, inputs[ConvForward::x].dims, inputs[ConvForward::w].dims,
                       result)
        .forward();
  if (const auto* data = region.anchor_as<ConvBackwardData>())
    return Convolution(region, *data, result, inputs[ConvBackwardData::w].dims,
                       inputs[ConvBackwardData::dy].dims)
        .backward_data();
  return Convolution(region, *region.anchor_as<ConvBackwardFilter>(),
                     inputs[ConvBackwardFilter::x].dims, result,
                     inputs[ConvBackwardFilter::dy].dims)
      .backward_filter();
}

}  // namespace ashlar::cuda

// The operations a random graph is made of.
#include <algorithm>
#include <array>

#include "graph/norm_shapes.hpp"
#include "graph/pointwise_traits.hpp"
#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

namespace {

constexpr std::int64_t kMaxProducts = 60000;

}  // namespace

void GraphMaker::add_pointwise() {
  const auto mode = static_cast<PointwiseMode>(below(kPointwiseModeCount));
  if (is_bitwise(mode)) return add_bitwise(mode);
  Value x = old([](const Tensor&) { return true; });
  if (!x || chance(0.15))
    x = input(dims(1 + static_cast<int>(below(5))), chance(0.05) ? boolean : arithmetic());
  Pointwise attributes;
  if (chance(0.2)) attributes.alpha1 = 0.5 * static_cast<double>(below(7) - 3);
  if (chance(0.1)) attributes.alpha2 = 0.5 * static_cast<double>(below(7) - 3);
  if (chance(0.2)) attributes.relu_lower_slope = 0.125;
  if (chance(0.2)) attributes.relu_upper_clip = 0.5;
  if (chance(0.2)) attributes.swish_beta = 2.0;
  attributes.axis = below(x.dims().rank());
  std::vector<Value> operands = {x};
  if (operand_count(mode) > 1) operands.push_back(broadcastable(x.dims(), x.dtype(), true));
  if (operand_count(mode) > 2) operands.push_back(broadcastable(x.dims(), boolean, true));
  if (operands.size() == 2 && chance(0.3)) std::swap(operands[0], operands[1]);
  OutputSpec result = spec();
  const bool may_expand = mode == PointwiseMode::identity || mode == PointwiseMode::gen_index;
  if (may_expand && chance(0.7)) {
    Dims larger;
    for (std::int64_t count = 1; larger.rank() < 2 && x.dims().rank() < 5 && chance(0.2);)
      larger.push_back(count++);
    for (const std::int64_t value : x.dims())
      larger.push_back(value == 1 && element_count(x.dims()) < 300 ? 1 + below(6) : value);
    result.dims = larger;
  }
  keep(graph_.pointwise(mode, operands, attributes, result));
}

void GraphMaker::add_bitwise(PointwiseMode mode) {
  constexpr std::array kTypes = {i64, i32, u32, i8, u8, i4, u4, boolean};
  const auto is_usable = [&](DType dtype) {
    return is_integer(dtype) || (dtype == boolean && !is_shift(mode));
  };
  Value x = old([&](const Tensor& t) { return is_usable(t.dtype); });
  if (!x || chance(0.3)) {
    const DType dtype = one_of(kTypes);
    x = input(dims(1 + static_cast<int>(below(4))), is_usable(dtype) ? dtype : u8);
  }
  std::vector<Value> operands = {x};
  if (operand_count(mode) > 1) {
    const DType wanted = is_shift(mode) ? one_of(std::array{i32, u8, i64}) : x.dtype();
    const Value b = broadcastable(x.dims(), wanted, true);
    const bool fits = is_shift(mode) ? is_integer(b.dtype()) : b.dtype() == x.dtype();
    operands.push_back(fits ? b : like(x.dims(), wanted));
  }
  keep(graph_.pointwise(mode, operands, {}, spec()));
}

void GraphMaker::add_matmul() {
  const Value a = arithmetic_value(2, 4);
  const int rank = a.dims().rank();
  Dims b = a.dims();
  b[rank - 2] = a.dims()[rank - 1];
  b[rank - 1] = extent();
  for (int axis = 0; axis < rank - 2; ++axis)
    if (chance(0.3)) b[axis] = 1;
  if (element_count(a.dims()) * b[rank - 1] > kMaxProducts) return;
  keep(graph_.matmul(a, like(b, a.dtype()), spec()));
}

ConvAttributes GraphMaker::convolution_attributes(const Dims& x, const Dims& filter) {
  ConvAttributes attributes;
  const int spatial = x.rank() - 2;
  Dims after;
  for (int axis = 0; axis < spatial; ++axis) {
    attributes.padding.push_back(below(3));
    after.push_back(chance(0.7) ? attributes.padding[axis] : below(3));
    attributes.stride.push_back(chance(0.6) ? 1 : 1 + below(3));
    const std::int64_t padded = x[axis + 2] + attributes.padding[axis] + after[axis];
    const bool room = (filter[axis + 2] - 1) * 2 + 1 <= padded;
    attributes.dilation.push_back(room && chance(0.2) ? 2 : 1);
  }
  attributes.post_padding = after;
  if (chance(0.15)) attributes.mode = ConvMode::convolution;
  return attributes;
}

void GraphMaker::add_convolution() {
  const Value x = arithmetic_value(3, 5);
  const std::int64_t channels = x.dims()[1];
  if (channels == 0) return;
  const bool grouped = chance(0.3);
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= channels; ++d)
    if (channels % d == 0) divisors.push_back(d);
  const std::int64_t groups = grouped ? one_of(divisors) : 1;
  Dims w = {groups * (1 + below(4)), channels / groups};
  for (int axis = 2; axis < x.dims().rank(); ++axis) w.push_back(1 + below(3));
  if (element_count(x.dims()) * element_count(w) / w[1] > kMaxProducts) return;
  const ConvAttributes attributes = convolution_attributes(x.dims(), w);
  keep(graph_.conv(x, like(w, x.dtype()), attributes, spec()));
}

void GraphMaker::add_convolution_gradient() {
  Dims x = dims(3 + static_cast<int>(below(2)));
  for (std::int64_t& value : x) value = std::max<std::int64_t>(1, std::min<std::int64_t>(value, 9));
  Dims w = {1 + below(6), x[1]};
  for (int axis = 2; axis < x.rank(); ++axis) w.push_back(1 + below(3));
  const ConvAttributes attributes = convolution_attributes(x, w);
  const DType dtype = floating();
  Graph trial;
  const Dims y = trial.conv(trial.input("x", x, f32), trial.input("w", w, f32), attributes).dims();
  if (element_count(y) * element_count(w) / w[0] > kMaxProducts) return;
  const Value dy = like(y, dtype);
  if (chance(0.5))
    keep(graph_.conv_backward_data(dy, like(w, dtype), attributes, {.dims = x}));
  else
    keep(graph_.conv_backward_filter(like(x, dtype), dy, attributes, {.dims = w}));
}

void GraphMaker::add_reduction() {
  Value x = arithmetic_value(1, 5);
  const Value flags =
      chance(0.1) ? old([](const Tensor& t) { return t.dtype == boolean; }) : Value();
  if (flags) x = flags;
  Dims axes;
  for (int axis = 0; axis < x.dims().rank(); ++axis)
    if (chance(0.5)) axes.push_back(axis);
  auto mode = chance(0.4) ? ReductionMode::add : static_cast<ReductionMode>(below(9));
  constexpr std::array kOfBooleans = {ReductionMode::min, ReductionMode::max, ReductionMode::amax,
                                      ReductionMode::add, ReductionMode::avg};
  if (x.dtype() == boolean) mode = one_of(kOfBooleans);
  keep(graph_.reduce(x, mode, axes, spec()));
}

ResampleAttributes GraphMaker::pooling_attributes(const Dims& x) {
  ResampleAttributes attributes;
  attributes.mode = static_cast<ResampleMode>(2 + below(3));
  for (int axis = 2; axis < x.rank(); ++axis) {
    const std::int64_t window =
        1 + below(std::min<std::int64_t>(3, std::max<std::int64_t>(1, x[axis])));
    attributes.window.push_back(window);
    attributes.stride.push_back(1 + below(3));
    attributes.padding.push_back(below(window));
  }
  if (chance(0.2)) attributes.padding_mode = static_cast<PaddingMode>(below(3));
  return attributes;
}

void GraphMaker::add_pooling() {
  const Value x = arithmetic_value(3, 5);
  const ResampleAttributes attributes = pooling_attributes(x.dims());
  if (attributes.mode != ResampleMode::maxpool || chance(0.5))
    return keep(graph_.resample(x, attributes, spec()));
  const auto [y, index] = graph_.resample_with_index(x, attributes, chance(0.5) ? i32 : i64);
  keep(y);
  // Its gradient, which needs valid indices into the windows.
  if (chance(0.6)) {
    const Value dy = like(y.dims(), floating());
    const Dims extents = x.dims();
    keep(graph_.resample_backward(dy, attributes, {.dims = extents}, {}, index));
  }
}

void GraphMaker::add_interpolation() {
  const Value x = arithmetic_value(3, 5);
  ResampleAttributes attributes;
  attributes.mode = chance(0.5) ? ResampleMode::nearest : ResampleMode::bilinear;
  attributes.align_corners = chance(0.4);
  std::int64_t count = x.dims()[0] * x.dims()[1];
  for (int axis = 2; axis < x.dims().rank(); ++axis) {
    const std::int64_t size = 1 + below(9);
    attributes.size.push_back(size);
    count *= size;
  }
  if (count <= 4000) keep(graph_.resample(x, attributes, spec()));
}

void GraphMaker::add_resample_gradient() {
  Dims x = dims(3 + static_cast<int>(below(2)));
  for (int axis = 2; axis < x.rank(); ++axis) x[axis] = std::max<std::int64_t>(1, x[axis]);
  ResampleAttributes attributes = pooling_attributes(x);
  if (chance(0.4)) {
    attributes = {.mode = chance(0.5) ? ResampleMode::nearest : ResampleMode::bilinear,
                  .align_corners = chance(0.5)};
    for (int axis = 2; axis < x.rank(); ++axis) attributes.size.push_back(1 + below(7));
  }
  Graph trial;
  const Dims y = trial.resample(trial.input("x", x, f32), attributes).dims();
  const DType dtype = floating();
  const Value given = attributes.mode == ResampleMode::maxpool ? like(x, dtype) : Value();
  keep(graph_.resample_backward(like(y, dtype), attributes, {.dims = x}, given));
}

void GraphMaker::add_norm() {
  const Value x = floating_value(2, 5);
  NormForward op;
  op.mode = static_cast<NormMode>(below(6));
  op.phase = chance(0.5) ? NormPhase::training : NormPhase::inference;
  op.epsilon = 0x1p-7;
  const Dims extents = x.dims();
  const bool adaptive = op.mode == NormMode::ada_layer;
  if (op.mode == NormMode::layer || op.mode == NormMode::rms || adaptive)
    for (int axis =
             static_cast<int>(adaptive ? 1 + below(extents.rank() - 1) : below(extents.rank()));
         axis < extents.rank(); ++axis)
      op.axes.push_back(axis);
  if (op.mode == NormMode::group)
    op.groups = extents[1] % 2 == 0 && extents[1] > 0 && chance(0.5) ? 2 : 1;
  const NormShapes shapes = norm_shapes(op.mode, extents, op.axes, op.groups);
  const DType parameters = chance(0.7) ? f32 : floating();
  const Value scale = chance(0.8) ? like(shapes.parameters, parameters) : Value();
  const Value bias = scale && chance(0.7) ? like(shapes.parameters, parameters) : Value();
  Value mean, variance;
  const bool batch = op.mode == NormMode::batch;
  if (batch && (op.phase == NormPhase::inference || chance(0.5))) {
    mean = graph_.input(name("m"), shapes.statistics, f32);
    variance = graph_.input(name("v"), shapes.statistics, f32);
  }
  const bool given = batch && op.phase == NormPhase::inference && chance(0.5);
  const NormResults results =
      given ? graph_.norm(x, op,
                          {.scale = scale, .bias = bias, .mean = mean, .inv_variance = variance},
                          spec())
            : graph_.norm(
                  x, op,
                  {.scale = scale, .bias = bias, .running_mean = mean, .running_var = variance},
                  spec());
  keep(results.y);
  for (Value statistic :
       {results.mean, results.inv_variance, results.next_running_mean, results.next_running_var})
    if (statistic && chance(0.5)) keep(statistic);
}

void GraphMaker::add_norm_gradient() {
  const Value x = floating_value(2, 4);
  NormBackward op;
  op.mode = static_cast<NormMode>(below(6));
  op.epsilon = 0x1p-7;
  const Dims extents = x.dims();
  if (op.mode == NormMode::layer || op.mode == NormMode::rms || op.mode == NormMode::ada_layer)
    op.axes.push_back(extents.rank() - 1);
  const NormShapes shapes = norm_shapes(op.mode, extents, op.axes, op.groups);
  const Value dy = like(extents, x.dtype());
  const Value scale = chance(0.8) ? like(shapes.parameters, f32) : Value();
  Value mean, inv_variance;
  if (chance(0.5)) {
    inv_variance = graph_.input(name("v"), shapes.statistics, f32);
    if (op.mode != NormMode::rms) mean = graph_.input(name("m"), shapes.statistics, f32);
  }
  const NormGradients results =
      graph_.norm_backward(x, dy, op, {.scale = scale, .mean = mean, .inv_variance = inv_variance});
  keep(results.dx);
  keep(results.dscale);
  keep(results.dbias);
}

void GraphMaker::add_softmax() {
  const Value x = floating_value(1, 4);
  const SoftmaxAttributes attributes{.axis = below(x.dims().rank()), .log = chance(0.3)};
  const Value y = graph_.softmax(x, attributes, spec());
  keep(y);
  if (chance(0.3)) keep(graph_.softmax_backward(y, like(y.dims(), y.dtype()), attributes));
}

void GraphMaker::add_rng() {
  const Rng attributes{.distribution = static_cast<RngDistribution>(below(3)),
                       .probability = 0.4,
                       .seed = below(1000),
                       .offset = below(50)};
  const Value seed = chance(0.3) ? graph_.scalar(name("seed"), i64, 1) : Value();
  keep(graph_.rng(dims(1 + static_cast<int>(below(4))), attributes, spec(), seed));
}

}  // namespace ashlar::random_graphs

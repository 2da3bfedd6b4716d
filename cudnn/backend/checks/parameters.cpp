// Checks of the descriptors that hold an operation's parameters.
#include <limits>

#include "backend/attribute_table.hpp"
#include "backend/checks/operand.hpp"
#include "backend/checks/window.hpp"
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

namespace {

// Larger than any real use; sums and products of two fit into 64 bits.
constexpr std::int64_t kMaxStep = std::numeric_limits<std::int32_t>::max();
constexpr int kMaxSpatialDims = CUDNN_DIM_MAX - 2;

void check_fractions(const Record& resample, cudnnBackendAttributeName_t name, std::int64_t spatial,
                     std::int64_t min) {
  const auto fractions = resample.fractions(name);
  require_count(fractions.size(), name, spatial, "CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS");
  for (const cudnnFraction_t& f : fractions)
    if (f.denominator < 1 || f.denominator > kMaxStep || f.numerator < min ||
        f.numerator > kMaxStep)
      fail_bound(name, fmt::format("{}/{}", f.numerator, f.denominator),
                 fmt::format("{} to {} over 1 to {}", min, kMaxStep, kMaxStep));
}

void require_interval(const Record& record, cudnnBackendAttributeName_t min,
                      cudnnBackendAttributeName_t max) {
  // Written so that NaN fails.
  if (!(record.number(min) <= record.number(max)))
    fail_bound(
        max, fmt::format("{}", record.number(max)),
        fmt::format("at least {}, the value of {}", record.number(min), attribute_name(min)));
}

}  // namespace

FinishedRef finalize_pointwise(const Record& pointwise) {
  require_set(pointwise, {CUDNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MATH_PREC});
  const std::int64_t mode = pointwise.integer(CUDNN_ATTR_POINTWISE_MODE);
  if (mode == CUDNN_POINTWISE_GEN_INDEX) {
    if (!pointwise.has(CUDNN_ATTR_POINTWISE_AXIS))
      fail(CUDNN_STATUS_BAD_PARAM,
           "CUDNN_ATTR_POINTWISE_AXIS: not set, expected an axis for "
           "CUDNN_POINTWISE_GEN_INDEX");
    require_within(pointwise, CUDNN_ATTR_POINTWISE_AXIS, 0, CUDNN_DIM_MAX - 1);
  }
  if (mode == CUDNN_POINTWISE_RELU_FWD || mode == CUDNN_POINTWISE_RELU_BWD)
    require_interval(pointwise, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP,
                     CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP);
  return attributes_only();
}

FinishedRef finalize_convolution(const Record& convolution) {
  require_set(convolution, {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                            CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS});
  require_within(convolution, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 1, kMaxSpatialDims);
  const std::int64_t spatial = convolution.integer(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  for (const auto& [name, min] : {std::pair{CUDNN_ATTR_CONVOLUTION_DILATIONS, 1},
                                  {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1},
                                  {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0},
                                  {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0}}) {
    require_set(convolution, {name});
    require_count(convolution.integers(name).size(), name, spatial,
                  "CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS");
    require_within(convolution, name, min, kMaxStep);
  }
  return attributes_only();
}

FinishedRef finalize_matmul(const Record& matmul) {
  require_set(matmul, {CUDNN_ATTR_MATMUL_COMP_TYPE});
  return attributes_only();
}

FinishedRef finalize_reduction(const Record& reduction) {
  require_set(reduction, {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_ATTR_REDUCTION_COMP_TYPE});
  return attributes_only();
}

FinishedRef finalize_resample(const Record& resample) {
  require_set(resample, {CUDNN_ATTR_RESAMPLE_MODE, CUDNN_ATTR_RESAMPLE_COMP_TYPE,
                         CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS});
  require_within(resample, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, 1, kMaxSpatialDims);
  const std::int64_t spatial = resample.integer(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS);
  const std::int64_t mode = resample.integer(CUDNN_ATTR_RESAMPLE_MODE);
  for (const auto& [name, min] : {std::pair{CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, 1},
                                  {CUDNN_ATTR_RESAMPLE_STRIDES, 1},
                                  {CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, 0},
                                  {CUDNN_ATTR_RESAMPLE_POST_PADDINGS, 0}}) {
    // Interpolation is defined by the shapes of its tensors.
    if (!is_pooling(mode) && !resample.has(name)) continue;
    require_set(resample, {name});
    check_fractions(resample, name, spatial, is_pooling(mode) ? min : 0);
    if (!is_pooling(mode)) continue;
    for (const cudnnFraction_t& f : resample.fractions(name))
      if (f.numerator % f.denominator != 0)
        fail_bound(name, fmt::format("{}/{}", f.numerator, f.denominator),
                   "an integer for pooling");
  }
  return attributes_only();
}

// Only the parameters of the chosen distribution count: cudnn-frontend before 1.18 sets all others
// to -1.
FinishedRef finalize_rng(const Record& rng) {
  switch (rng.integer(CUDNN_ATTR_RNG_DISTRIBUTION)) {
    case CUDNN_RNG_DISTRIBUTION_BERNOULLI: {
      const double probability = rng.number(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY);
      if (!(probability >= 0.0 && probability <= 1.0))
        fail_bound(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, fmt::format("{}", probability),
                   "a value from 0 to 1");
      break;
    }
    case CUDNN_RNG_DISTRIBUTION_NORMAL: {
      const double deviation = rng.number(CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION);
      if (!(deviation >= 0.0))
        fail_bound(CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION, fmt::format("{}", deviation),
                   "at least 0");
      break;
    }
    case CUDNN_RNG_DISTRIBUTION_UNIFORM:
      require_interval(rng, CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM,
                       CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM);
      break;
    default: break;  // the attribute table has refused other values
  }
  return attributes_only();
}

FinishedRef finalize_knob_choice(const Record& choice) {
  require_set(choice, {CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE});
  return attributes_only();
}

}  // namespace ashlar::cudnn

// Tensors, operation parameters and variant packs that finalize rejects.
#include <cmath>
#include <limits>

#include "cudnn/bad_calls.hpp"
#include "cudnn/scoped_descriptor.hpp"

namespace ashlar::cudnn::test {

namespace {

using Attribute = ScopedDescriptor::Attribute;
using Call = std::function<cudnnStatus_t()>;
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

// Sets the good attributes, then the bad ones, and finalizes.
Call finalize(cudnnBackendDescriptorType_t type, std::vector<Attribute> good,
              std::vector<Attribute> bad) {
  return [=] {
    const ScopedDescriptor descriptor(type);
    for (const auto* attributes : {&good, &bad})
      for (const auto& [name, values] : *attributes)
        if (const cudnnStatus_t status = descriptor.set(name, values)) return status;
    return descriptor.finalize();
  };
}

// A valid 2 x 3 tensor with one bad attribute.
Call tensor_with(std::vector<Attribute> bad) {
  return finalize(CUDNN_BACKEND_TENSOR_DESCRIPTOR,
                  {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT},
                   {CUDNN_ATTR_TENSOR_DIMENSIONS, {2, 3}},
                   {CUDNN_ATTR_TENSOR_STRIDES, {3, 1}},
                   {CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{1}}},
                  std::move(bad));
}
Call convolution_with(std::vector<Attribute> bad) {
  return finalize(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                  {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT},
                   {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION},
                   {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2}},
                   {CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1}},
                   {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {1, 1}},
                   {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {0, 0}},
                   {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {0, 0}}},
                  std::move(bad));
}
Call resample_with(std::vector<Attribute> bad) {
  return finalize(
      CUDNN_BACKEND_RESAMPLE_DESCRIPTOR,
      {{CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT},
       {CUDNN_ATTR_RESAMPLE_MODE, CUDNN_RESAMPLE_MAXPOOL},
       {CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, std::int64_t{1}},
       {CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, std::initializer_list<cudnnFraction_t>{{2, 1}}},
       {CUDNN_ATTR_RESAMPLE_STRIDES, std::initializer_list<cudnnFraction_t>{{2, 1}}},
       {CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, std::initializer_list<cudnnFraction_t>{{0, 1}}},
       {CUDNN_ATTR_RESAMPLE_POST_PADDINGS, std::initializer_list<cudnnFraction_t>{{0, 1}}}},
      std::move(bad));
}
Values fractions(std::initializer_list<cudnnFraction_t> values) { return values; }

Call rng_with(std::vector<Attribute> bad) {
  return finalize(CUDNN_BACKEND_RNG_DESCRIPTOR, {}, std::move(bad));
}
Call pack_with(std::vector<Attribute> bad) {
  return finalize(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, {}, std::move(bad));
}

// A variant pack with shape overrides.
Call override_with(std::vector<std::int64_t> uids, std::vector<std::vector<std::int64_t>> shapes,
                   std::vector<std::vector<std::int64_t>> strides) {
  return [=]() mutable {
    const ScopedDescriptor pack(
        CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
        {{CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, uids},
         {CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, Values::pointers({&shapes})},
         {CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, Values::pointers({&strides})}});
    return pack.finalize();
  };
}

BadCalls tensor_calls() {
  return {
      {"tensor: empty", finalize(CUDNN_BACKEND_TENSOR_DESCRIPTOR, {}, {})},
      {"tensor: no dims", finalize(CUDNN_BACKEND_TENSOR_DESCRIPTOR, {},
                                   {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT}})},
      {"tensor: no strides", finalize(CUDNN_BACKEND_TENSOR_DESCRIPTOR, {},
                                      {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT},
                                       {CUDNN_ATTR_TENSOR_DIMENSIONS, {2, 3}}})},
      {"tensor: no id", finalize(CUDNN_BACKEND_TENSOR_DESCRIPTOR, {},
                                 {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT},
                                  {CUDNN_ATTR_TENSOR_DIMENSIONS, {2, 3}},
                                  {CUDNN_ATTR_TENSOR_STRIDES, {3, 1}}})},
      {"tensor: extent 0", tensor_with({{CUDNN_ATTR_TENSOR_DIMENSIONS, {2, 0}}})},
      {"tensor: extent -3", tensor_with({{CUDNN_ATTR_TENSOR_DIMENSIONS, {2, -3}}})},
      {"tensor: stride -1", tensor_with({{CUDNN_ATTR_TENSOR_STRIDES, {3, -1}}})},
      {"tensor: three strides", tensor_with({{CUDNN_ATTR_TENSOR_STRIDES, {6, 3, 1}}})},
      {"tensor: more elements than can be counted",
       tensor_with({{CUDNN_ATTR_TENSOR_DIMENSIONS, {kHuge, kHuge}}})},
      {"tensor: strides past the end of memory",
       tensor_with({{CUDNN_ATTR_TENSOR_STRIDES, {kHuge, kHuge}}})},
      {"tensor: a type to compute in",
       tensor_with({{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FAST_FLOAT_FOR_FP8}})},
      {"tensor: alignment 0", tensor_with({{CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{0}}})},
      {"tensor: alignment 12", tensor_with({{CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{12}}})},
      {"tensor: alignment -16",
       tensor_with({{CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{-16}}})},
      {"tensor: vectors of 0", tensor_with({{CUDNN_ATTR_TENSOR_VECTOR_COUNT, std::int64_t{0}}})},
      {"tensor: vectors without an axis",
       tensor_with({{CUDNN_ATTR_TENSOR_VECTOR_COUNT, std::int64_t{4}}})},
      {"tensor: vectors on axis 2",
       tensor_with({{CUDNN_ATTR_TENSOR_VECTOR_COUNT, std::int64_t{4}},
                    {CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, std::int64_t{2}}})},
      {"tensor: by value with 6 elements", tensor_with({{CUDNN_ATTR_TENSOR_IS_BY_VALUE, true}})},
      {"tensor: by value and virtual",
       tensor_with({{CUDNN_ATTR_TENSOR_IS_BY_VALUE, true}, {CUDNN_ATTR_TENSOR_IS_VIRTUAL, true}})},
      {"tensor: offsets of floats",
       [] {
         const ScopedDescriptor offsets = tensor(2, {3});
         return tensor_with({{CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, offsets}})();
       }},
  };
}

BadCalls resample_calls() {
  return {
      {"resample: empty", finalize(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, {}, {})},
      {"resample: no window", finalize(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, {},
                                       {{CUDNN_ATTR_RESAMPLE_MODE, CUDNN_RESAMPLE_AVGPOOL},
                                        {CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT},
                                        {CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, std::int64_t{2}}})},
      {"resample: 7 spatial axes",
       resample_with({{CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, std::int64_t{7}}})},
      {"resample: 2 spatial axes, 1 window",
       resample_with({{CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, std::int64_t{2}}})},
      {"resample: denominator 0",
       resample_with({{CUDNN_ATTR_RESAMPLE_STRIDES, fractions({{1, 0}})}})},
      {"resample: window 0",
       resample_with({{CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, fractions({{0, 1}})}})},
      {"resample: padding -1",
       resample_with({{CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, fractions({{-1, 1}})}})},
      {"resample: half a stride",
       resample_with({{CUDNN_ATTR_RESAMPLE_STRIDES, fractions({{1, 2}})}})},
      {"resample: a huge window",
       resample_with({{CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, fractions({{kHuge, 1}})}})},
      {"rng: probability 1.5", rng_with({{CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, 1.5}})},
      {"rng: probability NaN", rng_with({{CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY,
                                          std::numeric_limits<double>::quiet_NaN()}})},
      {"rng: deviation -1", rng_with({{CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_RNG_DISTRIBUTION_NORMAL},
                                      {CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION, -1.0}})},
      {"rng: maximum below minimum",
       rng_with({{CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_RNG_DISTRIBUTION_UNIFORM},
                 {CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM, 2.0},
                 {CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM, 1.0}})},
  };
}

BadCalls pack_calls() {
  return {
      {"knob choice: empty", finalize(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, {}, {})},
      {"knob choice: no value",
       finalize(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, {},
                {{CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_KNOB_TYPE_TILE_SIZE}})},
      {"variant pack: ids without pointers",
       pack_with({{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {1, 2}}})},
      {"variant pack: fewer pointers than ids",
       pack_with({{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {1, 2}},
                  {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, Values::pointers({nullptr})}})},
      {"variant pack: an id twice", pack_with({{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {5, 6, 5}},
                                               {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                                Values::pointers({nullptr, nullptr, nullptr})}})},
      {"overrides: ids without shapes",
       pack_with({{CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, {1}}})},
      {"overrides: fewer shapes than ids", override_with({1, 2}, {{2, 2}}, {{2, 1}, {2, 1}})},
      {"overrides: fewer strides than ids", override_with({1, 2}, {{2, 2}, {2, 2}}, {{2, 1}})},
      {"overrides: an id twice", override_with({1, 1}, {{2}, {2}}, {{1}, {1}})},
      {"overrides: shape and strides of two ranks", override_with({1}, {{2, 2}}, {{1}})},
      {"overrides: an empty shape", override_with({1}, {{}}, {{}})},
      {"overrides: extent 0", override_with({1}, {{2, 0}}, {{2, 1}})},
      {"overrides: stride -1", override_with({1}, {{2, 2}}, {{2, -1}})},
  };
}

}  // namespace

BadCalls bad_parameter_calls() {
  BadCalls calls = {
      {"pointwise: empty", finalize(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, {}, {})},
      {"pointwise: no precision", finalize(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, {},
                                           {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD}})},
      {"pointwise: index without axis",
       finalize(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, {},
                {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_GEN_INDEX},
                 {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_INT32}})},
      {"pointwise: index of axis -1",
       finalize(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, {},
                {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_GEN_INDEX},
                 {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_INT32},
                 {CUDNN_ATTR_POINTWISE_AXIS, std::int64_t{-1}}})},
      {"pointwise: upper clip below lower clip",
       finalize(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, {},
                {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_RELU_FWD},
                 {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT},
                 {CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 3.0},
                 {CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, 1.0}})},
      {"convolution: empty", finalize(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, {}, {})},
      {"convolution: no dilations",
       finalize(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, {},
                {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT},
                 {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CONVOLUTION},
                 {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2}}})},
      {"convolution: 0 spatial axes",
       convolution_with({{CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{0}}})},
      {"convolution: 3 spatial axes, 2 strides",
       convolution_with({{CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{3}}})},
      {"convolution: stride 0",
       convolution_with({{CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {1, 0}}})},
      {"convolution: dilation 0", convolution_with({{CUDNN_ATTR_CONVOLUTION_DILATIONS, {0, 1}}})},
      {"convolution: padding -1",
       convolution_with({{CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {0, -1}}})},
      {"convolution: a huge padding",
       convolution_with({{CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {kHuge, 0}}})},
      {"convolution: a huge dilation",
       convolution_with({{CUDNN_ATTR_CONVOLUTION_DILATIONS, {kHuge, 1}}})},
      {"convolution: three paddings",
       convolution_with({{CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {0, 0, 0}}})},
      {"matmul: empty", finalize(CUDNN_BACKEND_MATMUL_DESCRIPTOR, {}, {})},
      {"reduction: empty", finalize(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, {}, {})},
      {"reduction: no type", finalize(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, {},
                                      {{CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_REDUCE_TENSOR_ADD}})},
  };
  for (const auto& more : {tensor_calls, resample_calls, pack_calls})
    for (BadCall& call : more()) calls.push_back(std::move(call));
  return calls;
}

}  // namespace ashlar::cudnn::test

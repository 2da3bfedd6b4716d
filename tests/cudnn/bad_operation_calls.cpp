// Operations with inconsistent tensors: convolutions, matmuls, pointwise, reductions, pooling and
// data movement.
#include <map>

#include "cudnn/bad_calls.hpp"
#include "cudnn/bad_operation.hpp"

namespace ashlar::cudnn::test {

namespace {

using Dims = std::vector<std::int64_t>;

ScopedDescriptor convolution_parameters(std::int64_t spatial) {
  const Dims ones(static_cast<std::size_t>(spatial), 1);
  return ScopedDescriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                          {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT},
                           {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION},
                           {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, spatial},
                           {CUDNN_ATTR_CONVOLUTION_DILATIONS, ones},
                           {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, ones},
                           {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, ones},
                           {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, ones}})
      .done();
}

Call convolution(const Dims& x, const Dims& w, const Dims& y) {
  return operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                   {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x},
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w},
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y}},
                   {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                     [] { return convolution_parameters(2); }}});
}
Call backward_data(const Dims& dx, const Dims& w, const Dims& dy) {
  return operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                   {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, dx},
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w},
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, dy}},
                   {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                     [] { return convolution_parameters(2); }}});
}
Call backward_filter(const Dims& x, const Dims& dw, const Dims& dy) {
  return operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                   {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x},
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, dw},
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, dy}},
                   {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                     [] { return convolution_parameters(2); }}});
}

Call pointwise(cudnnPointwiseMode_t mode, Tensors tensors) {
  return operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, std::move(tensors),
                   {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, [mode] {
                       return ScopedDescriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
                                               {{CUDNN_ATTR_POINTWISE_MODE, mode},
                                                {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT},
                                                {CUDNN_ATTR_POINTWISE_AXIS, std::int64_t{3}}})
                           .done();
                     }}});
}

Call matmul(Tensors tensors) {
  return operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, std::move(tensors),
                   {{CUDNN_ATTR_OPERATION_MATMUL_DESC, [] {
                       return ScopedDescriptor(CUDNN_BACKEND_MATMUL_DESCRIPTOR,
                                               {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT}})
                           .done();
                     }}});
}
Call matmul(const Dims& a, const Dims& b, const Dims& c) {
  return matmul({{CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
                 {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
                 {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c}});
}

Call reduction(Tensors tensors) {
  return operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, std::move(tensors),
                   {{CUDNN_ATTR_OPERATION_REDUCTION_DESC, [] {
                       return ScopedDescriptor(
                                  CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
                                  {{CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_REDUCE_TENSOR_ADD},
                                   {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT}})
                           .done();
                     }}});
}

Call concat(std::int64_t axis, std::int64_t in_place_index, std::vector<Dims> inputs, Dims output) {
  return [=] {
    std::vector<ScopedDescriptor> tensors;
    const ScopedDescriptor op(CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR,
                              {{CUDNN_ATTR_OPERATION_CONCAT_AXIS, axis},
                               {CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX, in_place_index},
                               {CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC, tensor(9, output)}});
    std::vector<cudnnBackendDescriptor_t> descriptors;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      tensors.push_back(tensor(static_cast<std::int64_t>(i), inputs[i]));
      descriptors.push_back(tensors.back());
    }
    if (!descriptors.empty())
      cudnnBackendSetAttribute(op, CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR,
                               static_cast<std::int64_t>(descriptors.size()), descriptors.data());
    return op.finalize();
  };
}

ScopedDescriptor pooling(cudnnResampleMode_t mode) {
  using Fractions = std::initializer_list<cudnnFraction_t>;
  return ScopedDescriptor(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR,
                          {{CUDNN_ATTR_RESAMPLE_MODE, mode},
                           {CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT},
                           {CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, std::int64_t{1}},
                           {CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, Fractions{{2, 1}}},
                           {CUDNN_ATTR_RESAMPLE_STRIDES, Fractions{{2, 1}}},
                           {CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, Fractions{{0, 1}}},
                           {CUDNN_ATTR_RESAMPLE_POST_PADDINGS, Fractions{{0, 1}}}})
      .done();
}
Call pool(cudnnResampleMode_t mode, Tensors tensors) {
  return operation(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, std::move(tensors),
                   {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, [mode] { return pooling(mode); }}});
}
Call unpool(cudnnResampleMode_t mode, Tensors tensors) {
  return operation(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, std::move(tensors),
                   {{CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, [mode] { return pooling(mode); }}});
}

constexpr auto kX = CUDNN_ATTR_OPERATION_POINTWISE_XDESC;
constexpr auto kB = CUDNN_ATTR_OPERATION_POINTWISE_BDESC;
constexpr auto kY = CUDNN_ATTR_OPERATION_POINTWISE_YDESC;
constexpr auto kT = CUDNN_ATTR_OPERATION_POINTWISE_TDESC;
constexpr auto kDx = CUDNN_ATTR_OPERATION_POINTWISE_DXDESC;
constexpr auto kDy = CUDNN_ATTR_OPERATION_POINTWISE_DYDESC;

BadCalls convolution_calls() {
  return {
      {"convolution operation: empty",
       operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, {}, {})},
      {"convolution operation: no filter",
       operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                 {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, Dims{1, 4, 8, 8}}},
                 {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                   [] { return convolution_parameters(2); }}})},
      {"convolution operation: x of rank 3", convolution({1, 4, 8}, {4, 4, 3, 3}, {1, 4, 8, 8})},
      {"convolution operation: w of rank 5",
       convolution({1, 4, 8, 8}, {4, 4, 1, 3, 3}, {1, 4, 8, 8})},
      {"convolution operation: batch", convolution({2, 4, 8, 8}, {4, 4, 3, 3}, {1, 4, 8, 8})},
      {"convolution operation: channels of w",
       convolution({1, 4, 8, 8}, {4, 3, 3, 3}, {1, 4, 8, 8})},
      {"convolution operation: groups", convolution({1, 4, 8, 8}, {3, 2, 3, 3}, {1, 3, 8, 8})},
      {"convolution operation: channels of y",
       convolution({1, 4, 8, 8}, {6, 4, 3, 3}, {1, 4, 8, 8})},
      {"convolution operation: height of y", convolution({1, 4, 8, 8}, {4, 4, 3, 3}, {1, 4, 7, 8})},
      {"convolution operation: a filter larger than the input",
       convolution({1, 4, 2, 2}, {4, 4, 7, 7}, {1, 4, 1, 1})},
      {"convolution operation: a filter past 31 bits",
       convolution({1, 1, 2, 2}, {1, 1, std::int64_t{1} << 33, 1}, {1, 1, 2, 2})},
      {"backward data: empty",
       operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, {}, {})},
      {"backward data: width of dy", backward_data({1, 4, 8, 8}, {4, 4, 3, 3}, {1, 4, 8, 9})},
      {"backward data: channels of dx", backward_data({1, 5, 8, 8}, {4, 4, 3, 3}, {1, 4, 8, 8})},
      {"backward filter: empty",
       operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, {}, {})},
      {"backward filter: extent of dw", backward_filter({1, 4, 8, 8}, {4, 4, 5, 3}, {1, 4, 8, 8})},
      {"backward filter: batch of dy", backward_filter({1, 4, 8, 8}, {4, 4, 3, 3}, {2, 4, 8, 8})},
  };
}

BadCalls pointwise_calls() {
  const Dims a = {2, 3};
  return {
      {"pointwise operation: empty",
       operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, {}, {})},
      {"pointwise operation: no x", pointwise(CUDNN_POINTWISE_EXP, {{kY, a}})},
      {"pointwise operation: no y", pointwise(CUDNN_POINTWISE_EXP, {{kX, a}})},
      {"pointwise operation: sum without b", pointwise(CUDNN_POINTWISE_ADD, {{kX, a}, {kY, a}})},
      {"pointwise operation: b does not broadcast",
       pointwise(CUDNN_POINTWISE_ADD, {{kX, a}, {kB, Dims{2, 2}}, {kY, a}})},
      {"pointwise operation: b of another rank",
       pointwise(CUDNN_POINTWISE_MUL, {{kX, a}, {kB, Dims{3}}, {kY, a}})},
      {"pointwise operation: y larger than its operands",
       pointwise(CUDNN_POINTWISE_MUL, {{kX, Dims{1, 3}}, {kB, Dims{1, 3}}, {kY, a}})},
      {"pointwise operation: y smaller than x",
       pointwise(CUDNN_POINTWISE_NEG, {{kX, a}, {kY, Dims{1, 3}}})},
      {"pointwise operation: choice without predicate",
       pointwise(CUDNN_POINTWISE_BINARY_SELECT, {{kX, a}, {kB, a}, {kY, a}})},
      {"pointwise operation: predicate of another shape",
       pointwise(CUDNN_POINTWISE_BINARY_SELECT, {{kX, a}, {kB, a}, {kY, a}, {kT, Dims{3, 2}}})},
      {"pointwise operation: gradient without dy",
       pointwise(CUDNN_POINTWISE_RELU_BWD, {{kX, a}, {kDx, a}})},
      {"pointwise operation: gradient without x or y",
       pointwise(CUDNN_POINTWISE_TANH_BWD, {{kDy, a}, {kDx, a}})},
      {"pointwise operation: gradient without dx",
       pointwise(CUDNN_POINTWISE_GELU_BWD, {{kDy, a}, {kX, a}})},
      {"pointwise operation: dx of another shape",
       pointwise(CUDNN_POINTWISE_GELU_BWD, {{kDy, a}, {kX, a}, {kDx, Dims{3, 3}}})},
      {"pointwise operation: index of an axis that y has not",
       pointwise(CUDNN_POINTWISE_GEN_INDEX, {{kX, a}, {kY, a}})},
  };
}

BadCalls product_calls() {
  return {
      {"matmul operation: empty", operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, {}, {})},
      {"matmul operation: no a", matmul(Tensors{})},
      {"matmul operation: a vector", matmul({4}, {4}, {1})},
      {"matmul operation: b of another rank", matmul({2, 4, 5}, {5, 3}, {2, 4, 3})},
      {"matmul operation: k", matmul({2, 4, 5}, {2, 6, 3}, {2, 4, 3})},
      {"matmul operation: m", matmul({2, 4, 5}, {2, 5, 3}, {2, 7, 3})},
      {"matmul operation: n", matmul({2, 4, 5}, {2, 5, 3}, {2, 4, 2})},
      {"matmul operation: batches", matmul({4, 4, 5}, {3, 5, 3}, {4, 4, 3})},
      {"matmul operation: batch of c", matmul({4, 4, 5}, {2, 5, 3}, {2, 4, 3})},
      {"matmul operation: lengths in floats",
       matmul({{CUDNN_ATTR_OPERATION_MATMUL_ADESC, Dims{2, 4, 5}},
               {CUDNN_ATTR_OPERATION_MATMUL_BDESC, Dims{2, 5, 3}},
               {CUDNN_ATTR_OPERATION_MATMUL_CDESC, Dims{2, 4, 3}},
               {CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, Dims{2, 1, 1}}})},
      {"reduction operation: empty",
       operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, {}, {})},
      {"reduction operation: no x", reduction({{CUDNN_ATTR_OPERATION_REDUCTION_YDESC, Dims{2}}})},
      {"reduction operation: no y", reduction({{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, Dims{2}}})},
      {"reduction operation: y of another rank",
       reduction({{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, Dims{2, 3}},
                  {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, Dims{2}}})},
      {"reduction operation: y larger than x",
       reduction({{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, Dims{2, 1}},
                  {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, Dims{2, 3}}})},
      {"reduction operation: y is no part of x",
       reduction({{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, Dims{2, 4}},
                  {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, Dims{2, 3}}})},
  };
}

BadCalls movement_calls() {
  return {
      {"reshape operation: empty", operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, {}, {})},
      {"reshape operation: another number of elements",
       operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                 {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, Dims{2, 3}},
                  {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, Dims{7}}},
                 {})},
      {"concat operation: empty", operation(CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR, {}, {})},
      {"concat operation: no inputs", concat(0, -1, {}, {4, 2})},
      {"concat operation: axis 2", concat(2, -1, {{2, 2}, {2, 2}}, {4, 2})},
      {"concat operation: axis -1", concat(-1, -1, {{2, 2}, {2, 2}}, {4, 2})},
      {"concat operation: the sum", concat(0, -1, {{2, 2}, {3, 2}}, {4, 2})},
      {"concat operation: another axis", concat(0, -1, {{2, 2}, {2, 3}}, {4, 2})},
      {"concat operation: another rank", concat(0, -1, {{2, 2}, {2}}, {4, 2})},
      {"concat operation: in place of input 2", concat(0, 2, {{2, 2}, {2, 2}}, {4, 2})},
      {"signal operation: empty", operation(CUDNN_BACKEND_OPERATION_SIGNAL_DESCRIPTOR, {}, {})},
      {"rng operation: empty", operation(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, {}, {})},
      {"rng operation: seed in floats",
       operation(
           CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
           {{CUDNN_ATTR_OPERATION_RNG_YDESC, Dims{4}}, {CUDNN_ATTR_OPERATION_RNG_SEED, Dims{1}}},
           {{CUDNN_ATTR_OPERATION_RNG_DESC,
             [] { return ScopedDescriptor(CUDNN_BACKEND_RNG_DESCRIPTOR).done(); }}})},
      {"rng operation: three seeds",
       operation(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
                 {{CUDNN_ATTR_OPERATION_RNG_YDESC, Dims{4}},
                  {CUDNN_ATTR_OPERATION_RNG_SEED, {Dims{3}, CUDNN_DATA_INT64}}},
                 {{CUDNN_ATTR_OPERATION_RNG_DESC,
                   [] { return ScopedDescriptor(CUDNN_BACKEND_RNG_DESCRIPTOR).done(); }}})},
      {"pooling: empty", operation(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, {}, {})},
      {"pooling: rank",
       pool(CUDNN_RESAMPLE_MAXPOOL, {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, Dims{1, 2, 8, 8}},
                                     {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, Dims{1, 2, 4}}})},
      {"pooling: length of y",
       pool(CUDNN_RESAMPLE_MAXPOOL, {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, Dims{1, 2, 8}},
                                     {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, Dims{1, 2, 5}}})},
      {"pooling: channels of y",
       pool(CUDNN_RESAMPLE_AVGPOOL, {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, Dims{1, 2, 8}},
                                     {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, Dims{1, 3, 4}}})},
      {"pooling: index of a mean",
       pool(CUDNN_RESAMPLE_AVGPOOL,
            {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, Dims{1, 2, 8}},
             {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, Dims{1, 2, 4}},
             {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, {Dims{1, 2, 4}, CUDNN_DATA_INT8}}})},
      {"pooling: index in floats",
       pool(CUDNN_RESAMPLE_MAXPOOL, {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, Dims{1, 2, 8}},
                                     {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, Dims{1, 2, 4}},
                                     {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, Dims{1, 2, 4}}})},
      {"pooling backward: no index and no x",
       unpool(CUDNN_RESAMPLE_MAXPOOL, {{CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, Dims{1, 2, 8}},
                                       {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, Dims{1, 2, 4}}})},
      {"pooling backward: shape of dy",
       unpool(CUDNN_RESAMPLE_AVGPOOL, {{CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, Dims{1, 2, 8}},
                                       {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, Dims{1, 2, 8}}})},
  };
}

}  // namespace

BadCalls bad_operation_calls() {
  BadCalls calls;
  for (const auto& group : {convolution_calls, pointwise_calls, product_calls, movement_calls})
    for (BadCall& call : group()) calls.push_back(std::move(call));
  return calls;
}

}  // namespace ashlar::cudnn::test

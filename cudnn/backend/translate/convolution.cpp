#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

void read_attributes(ConvAttributes& op, const Record& descriptor) {
  op.padding = Dims(descriptor.integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS));
  if (descriptor.has(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS))
    op.post_padding = Dims(descriptor.integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS));
  op.stride = Dims(descriptor.integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES));
  op.dilation = Dims(descriptor.integers(CUDNN_ATTR_CONVOLUTION_DILATIONS));
  op.mode = descriptor.integer_or(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION) ==
                    CUDNN_CONVOLUTION
                ? ConvMode::convolution
                : ConvMode::cross_correlation;
}

// Attribute names, which differ between the three convolution operations.
struct Names {
  cudnnBackendAttributeName_t descriptor, alpha, beta, first, second, result;
};

template <class Op>
void translate(Translation& translation, const Record& operation, const Names& names) {
  const Record& descriptor = operation.record(names.descriptor);
  Op op;
  read_attributes(op, descriptor);
  op.alpha = operation.number_or(names.alpha, 1.0);
  op.beta = operation.number_or(names.beta, 0.0);
  const TensorId first = translation.operand(operation, names.first),
                 second = translation.operand(operation, names.second);
  const TensorId z = op.beta == 0.0 ? kNoTensor : translation.previous(operation, names.result);
  const auto requested = static_cast<cudnnDataType_t>(
      descriptor.integer_or(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT));
  const DType compute = compute_of(translation, requested, std::array{first, second});
  // A virtual gradient in a graph with overridden shapes keeps its extents except for the batch.
  std::optional<Dims> dims;
  const TensorFacts result = translation.facts(operation, names.result);
  if constexpr (std::is_same_v<Op, ConvBackwardData>)
    if (result.has_inferred_dims) {
      dims = result.dims;
      (*dims)[0] = translation.dims(first)[0];
    }
  if constexpr (std::is_same_v<Op, ConvBackwardFilter>)
    if (result.has_inferred_dims) dims = result.dims;
  translation.add(op, {first, second, z}, {translation.result(operation, names.result, dims)},
                  compute);
}

}  // namespace

void translate_convolution_forward(Translation& translation, const Record& operation) {
  translate<ConvForward>(
      translation, operation,
      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y});
}

void translate_convolution_backward_data(Translation& translation, const Record& operation) {
  translate<ConvBackwardData>(
      translation, operation,
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX});
}

void translate_convolution_backward_filter(Translation& translation, const Record& operation) {
  translate<ConvBackwardFilter>(translation, operation,
                                {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW});
}

}  // namespace ashlar::cudnn

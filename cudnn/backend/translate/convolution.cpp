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
// The axes of a group dimension, where the tensors have one: in front of the channels of x and y,
// in front of the output channels of w.
struct GroupAxes {
  int first, second, result;
};

Dims without_groups(const Dims& dims, int axis) {
  Dims result;
  for (int i = 0; i < dims.rank(); ++i)
    if (i != axis + 1) result.push_back(i == axis ? dims[i] * dims[i + 1] : dims[i]);
  return result;
}
Dims with_groups(const Dims& dims, int axis, std::int64_t groups) {
  Dims result;
  for (int i = 0; i < dims.rank(); ++i) {
    if (i == axis) result.push_back(groups);
    result.push_back(i == axis ? dims[i] / groups : dims[i]);
  }
  return result;
}

template <class Op>
class ConvolutionTranslation {
 public:
  ConvolutionTranslation(Translation& translation, const Record& operation, const Names& names,
                         const GroupAxes& axes)
      : translation_(translation),
        operation_(operation),
        names_(names),
        axes_(axes),
        descriptor_(operation.record(names.descriptor)),
        facts_(translation.facts(operation, names.result)),
        rank_(static_cast<int>(descriptor_.integer(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)) + 2) {}

  void run() {
    Op op;
    read_attributes(op, descriptor_);
    op.alpha = operation_.number_or(names_.alpha, 1.0);
    op.beta = operation_.number_or(names_.beta, 0.0);
    const TensorId first = plain(translation_.operand(operation_, names_.first), axes_.first),
                   second = plain(translation_.operand(operation_, names_.second), axes_.second);
    const TensorId z = op.beta == 0.0
                           ? kNoTensor
                           : plain(translation_.previous(operation_, names_.result), axes_.result);
    const auto requested = static_cast<cudnnDataType_t>(
        descriptor_.integer_or(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT));
    const DType compute = compute_of(translation_, requested, std::array{first, second});
    const std::optional<Dims> dims = inferred_dims(first);
    if (!has_groups(facts_.dims)) {
      translation_.add(op, {first, second, z},
                       {translation_.result(operation_, names_.result, dims)}, compute);
      return;
    }
    const bool is_open = facts_.has_inferred_dims && !dims;
    const TensorId y = translation_.value(
        op, {first, second, z}, facts_.dtype, compute,
        is_open ? Dims() : without_groups(dims.value_or(facts_.dims), axes_.result));
    const std::int64_t groups = facts_.dims[axes_.result];
    translation_.add(Reshape{with_groups(translation_.dims(y), axes_.result, groups)}, {y},
                     {translation_.result(operation_, names_.result, dims)});
  }

 private:
  bool has_groups(const Dims& dims) const { return dims.rank() > rank_; }
  // Without the group dimension.
  TensorId plain(TensorId id, int axis) {
    const Dims dims = translation_.dims(id);
    if (!has_groups(dims)) return id;
    return translation_.value(Reshape{without_groups(dims, axis)}, {id},
                              translation_.tensor(id).dtype);
  }

  // A virtual gradient in a graph with overridden shapes keeps its extents except for the batch.
  std::optional<Dims> inferred_dims(TensorId first) const {
    if (!facts_.has_inferred_dims || std::is_same_v<Op, ConvForward>) return {};
    Dims dims = facts_.dims;
    if constexpr (std::is_same_v<Op, ConvBackwardData>) dims[0] = translation_.dims(first)[0];
    return dims;
  }

  Translation& translation_;
  const Record& operation_;
  const Names names_;
  const GroupAxes axes_;
  const Record& descriptor_;
  const TensorFacts facts_;
  const int rank_;  // of tensors without a group dimension
};

}  // namespace

void translate_convolution_forward(Translation& translation, const Record& operation) {
  ConvolutionTranslation<ConvForward>(
      translation, operation,
      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
      {.first = 1, .second = 0, .result = 1})
      .run();
}

void translate_convolution_backward_data(Translation& translation, const Record& operation) {
  ConvolutionTranslation<ConvBackwardData>(
      translation, operation,
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX},
      {.first = 1, .second = 0, .result = 1})
      .run();
}

void translate_convolution_backward_filter(Translation& translation, const Record& operation) {
  ConvolutionTranslation<ConvBackwardFilter>(translation, operation,
                                             {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
                                             {.first = 1, .second = 1, .result = 0})
      .run();
}

}  // namespace ashlar::cudnn

// Copies between layouts, with padding and with blocks of places folded into channels.
#include <array>

#include "core/data_type.hpp"
#include "legacy/call.hpp"
#include "legacy/filter_descriptor.hpp"
#include "legacy/graph_parts.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

struct cudnnTensorTransformStruct {
  static constexpr const char* kTypeName = "cudnnTensorTransformDescriptor_t";
  bool is_set = false;
  cudnnTensorFormat_t to_format = CUDNN_TENSOR_NCHW;
  ashlar::TensorTransform op = {};  // pads for every axis, folds for every spatial one
};

using namespace ashlar::cudnn;
using ashlar::Dims;
using ashlar::Graph;
using ashlar::PointwiseMode;
using ashlar::TensorTransform;
using ashlar::Value;

namespace {

using Transform = cudnnTensorTransformStruct;

// The extents after the transform; throws Failure for ones it cannot take.
Dims transformed_dims(const TensorTransform& op, const Dims& from) {
  if (op.pad_before.rank() != from.rank())
    fail(CUDNN_STATUS_BAD_PARAM, "transformDesc.nbDims: got {}, expected {} as srcDesc has",
         op.pad_before.rank(), from.rank());
  Dims dims = from;
  const auto pad = [&](int axis) { return op.pad_before[axis] + op.pad_after[axis]; };
  const std::int64_t block = element_count(op.fold);
  if (op.unfold) {
    if (dims[1] % block != 0)
      fail(CUDNN_STATUS_BAD_PARAM, "srcDesc.dims[1]: got {} channels, expected a multiple of {}",
           dims[1], block);
    dims[1] /= block;
    for (int axis = 0; axis < op.fold.rank(); ++axis) dims[axis + 2] *= op.fold[axis];
    for (int axis = 0; axis < dims.rank(); ++axis) dims[axis] -= pad(axis);
  } else {
    for (int axis = 0; axis < dims.rank(); ++axis) dims[axis] += pad(axis);
    for (int axis = 0; axis < op.fold.rank(); ++axis) {
      if (dims[axis + 2] % op.fold[axis] != 0)
        fail(CUDNN_STATUS_BAD_PARAM,
             "foldA[{}]: got {}, expected a divisor of {}, the padded extent", axis, op.fold[axis],
             dims[axis + 2]);
      dims[axis + 2] /= op.fold[axis];
    }
    dims[1] *= block;
  }
  for (int axis = 0; axis < dims.rank(); ++axis)
    if (dims[axis] < 1)
      fail(CUDNN_STATUS_BAD_PARAM,
           "padBeforeA and padAfterA of axis {}: got {} in all, expected less than {}", axis,
           pad(axis), dims[axis] + pad(axis));
  return dims;
}

// The type of a tensor in the format asked for: channels in vectors, or not.
cudnnDataType_t type_in_format(cudnnDataType_t type, cudnnTensorFormat_t format,
                               std::int64_t channels) {
  const bool is_vector = vector_width(type) > 1;
  if (is_vector == (format == CUDNN_TENSOR_NCHW_VECT_C)) return type;
  if (is_vector) return type == CUDNN_DATA_UINT8x4 ? CUDNN_DATA_UINT8 : CUDNN_DATA_INT8;
  if (type == CUDNN_DATA_UINT8) return CUDNN_DATA_UINT8x4;
  if (type == CUDNN_DATA_INT8) return channels % 32 == 0 ? CUDNN_DATA_INT8x32 : CUDNN_DATA_INT8x4;
  return type;  // refused by packed_spec, by name
}

Dims pads_of(const int32_t values[], int rank, const char* parameter) {
  Dims pads = Dims::filled(rank, 0);
  for (int axis = 0; values != nullptr && axis < rank; ++axis) {
    if (values[axis] < 0)
      fail(CUDNN_STATUS_BAD_PARAM, "{}[{}]: got {}, expected at least 0", parameter, axis,
           values[axis]);
    pads[axis] = values[axis];
  }
  return pads;
}

Dims folds_of(const uint32_t values[], int rank) {
  Dims folds = Dims::filled(rank - 2, 1);
  for (int axis = 0; values != nullptr && axis < rank - 2; ++axis) {
    if (values[axis] == 0)
      fail(CUDNN_STATUS_BAD_PARAM, "foldA[{}]: got 0, expected at least 1", axis);
    folds[axis] = values[axis];
  }
  element_count(folds);  // throws when it is past 64 bits
  return folds;
}

template <class T>
void copy_if_wanted(const Dims& values, uint32_t count, T into[]) {
  for (int axis = 0; into != nullptr && axis < values.rank(); ++axis)
    if (static_cast<uint32_t>(axis) < count) into[axis] = static_cast<T>(values[axis]);
}

// to = alpha * transformed(from) + beta * to
void run_transform(Call& call, const TensorTransform& op, const void* alpha, const TensorSpec& from,
                   const void* from_memory, const void* beta, const TensorSpec& to,
                   void* to_memory) {
  const Dims expected = transformed_dims(op, from.dims);
  if (to.dims != expected)
    fail(CUDNN_STATUS_BAD_PARAM, "destDesc.dims: got {}, expected {}", to_string(to.dims),
         to_string(expected));
  required(from_memory, "srcData");
  required(to_memory, "destData");
  call.key(op.pad_before).key(op.pad_after).key(op.fold).key(op.unfold).key(from).key(to);
  call.blend(alpha, beta, to.dtype);
  call.compile([&](Graph& graph) {
    const Value source = add_input(graph, "from", from);
    const auto moved =
        graph.apply(op, {{TensorTransform::x, source}}, {TensorTransform::y})[TensorTransform::y];
    call.output(graph, "to", moved, to);
  });
  call.bind("from", from_memory).bind("to", to_memory).run();
}

}  // namespace

cudnnStatus_t cudnnCreateTensorTransformDescriptor(cudnnTensorTransformDescriptor_t* transform) {
  return answer_older(__func__, [&] { create_object(transform, "transformDesc"); });
}

cudnnStatus_t cudnnSetTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transform,
                                                uint32_t rank, cudnnTensorFormat_t to_format,
                                                const int32_t pads_before[],
                                                const int32_t pads_after[], const uint32_t folds[],
                                                cudnnFoldingDirection_t direction) {
  return answer_older(__func__, [&] {
    auto& descriptor = object(transform, "transformDesc");
    if (rank < 3 || rank > CUDNN_DIM_MAX)
      fail(CUDNN_STATUS_BAD_PARAM, "nbDims: got {}, expected 3 to {}", rank, CUDNN_DIM_MAX);
    require_enum(to_format, CUDNN_TENSOR_NCHW_VECT_C, "destFormat");
    require_enum(direction, CUDNN_TRANSFORM_UNFOLD, "direction");
    const int axes = static_cast<int>(rank);
    TensorTransform op;
    op.pad_before = pads_of(pads_before, axes, "padBeforeA");
    op.pad_after = pads_of(pads_after, axes, "padAfterA");
    op.fold = folds_of(folds, axes);
    op.unfold = direction == CUDNN_TRANSFORM_UNFOLD;
    descriptor = {true, to_format, op};
  });
}

cudnnStatus_t cudnnGetTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transform,
                                                uint32_t capacity, cudnnTensorFormat_t* to_format,
                                                int32_t pads_before[], int32_t pads_after[],
                                                uint32_t folds[],
                                                cudnnFoldingDirection_t* direction) {
  return answer_older(__func__, [&] {
    const Transform& known = set_object(transform, "transformDesc");
    if (to_format != nullptr) *to_format = known.to_format;
    copy_if_wanted(known.op.pad_before, capacity, pads_before);
    copy_if_wanted(known.op.pad_after, capacity, pads_after);
    copy_if_wanted(known.op.fold, capacity, folds);
    if (direction != nullptr)
      *direction = known.op.unfold ? CUDNN_TRANSFORM_UNFOLD : CUDNN_TRANSFORM_FOLD;
  });
}

cudnnStatus_t cudnnDestroyTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transform) {
  return answer_older(__func__, [&] { destroy_object(transform, "transformDesc"); });
}

cudnnStatus_t cudnnInitTransformDest(cudnnTensorTransformDescriptor_t transform,
                                     cudnnTensorDescriptor_t from_desc,
                                     cudnnTensorDescriptor_t to_desc, size_t* to_bytes) {
  return answer_older(__func__, [&] {
    const Transform& how = set_object(transform, "transformDesc");
    const TensorSpec from = spec_of(from_desc, "srcDesc");
    auto& to = object(to_desc, "destDesc");
    required(to_bytes, "destSizeInBytes");
    const Dims dims = transformed_dims(how.op, from.dims);
    const cudnnDataType_t type = type_in_format(from_desc->type, how.to_format, dims[1]);
    set(to, type, packed_spec(type, how.to_format, dims));
    *to_bytes = static_cast<size_t>(byte_size(to.spec));
  });
}

// y = alpha * x + beta * y, of any layouts
cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void* alpha,
                                   cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                   cudnnTensorDescriptor_t y_desc, void* y) {
  return answer_older(__func__, [&] {
    Call call(handle, "transform_tensor");
    const TensorSpec x_spec = spec_of(x_desc, "xDesc"), y_spec = spec_of(y_desc, "yDesc");
    require_same_dims(x_spec, "xDesc", y_spec, "yDesc");
    required(x, "x");
    required(y, "y");
    call.key(x_spec).key(y_spec).blend(alpha, beta, y_spec.dtype);
    call.compile([&](Graph& graph) {
      const Value input = add_input(graph, "x", x_spec);
      call.output(graph, "y", graph.pointwise(PointwiseMode::identity, std::array{input}), y_spec);
    });
    call.bind("x", x).bind("y", y).run();
  });
}

cudnnStatus_t cudnnTransformTensorEx(cudnnHandle_t handle,
                                     cudnnTensorTransformDescriptor_t transform, const void* alpha,
                                     cudnnTensorDescriptor_t from_desc, const void* from,
                                     const void* beta, cudnnTensorDescriptor_t to_desc, void* to) {
  return answer_older(__func__, [&] {
    Call call(handle, "transform_tensor_ex");
    const Transform how = set_object(transform, "transformDesc");
    run_transform(call, how.op, alpha, spec_of(from_desc, "srcDesc"), from, beta,
                  spec_of(to_desc, "destDesc"), to);
  });
}

cudnnStatus_t cudnnTransformFilter(cudnnHandle_t handle, cudnnTensorTransformDescriptor_t transform,
                                   const void* alpha, cudnnFilterDescriptor_t from_desc,
                                   const void* from, const void* beta,
                                   cudnnFilterDescriptor_t to_desc, void* to) {
  return answer_older(__func__, [&] {
    Call call(handle, "transform_filter");
    const Transform how = set_object(transform, "transformDesc");
    run_transform(call, how.op, alpha, spec_of(from_desc, "srcDesc"), from, beta,
                  spec_of(to_desc, "destDesc"), to);
  });
}

// cudnnTransformTensor*: copies between layouts, with padding and with pixel blocks folded into
// channels.
#include <algorithm>
#include <array>

#include "core/data_type.hpp"
#include "legacy/call.hpp"
#include "legacy/filter_descriptor.hpp"
#include "legacy/graph_helpers.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

struct cudnnTensorTransformStruct {
  static constexpr const char* kTypeName = "cudnnTensorTransformDescriptor_t";
  bool is_set = false;
  cudnnTensorFormat_t to_format = CUDNN_TENSOR_NCHW;
  // Padding per axis, applied before folding or after unfolding; negative padding crops.
  ashlar::Dims pads_before = {}, pads_after = {};
  ashlar::Dims folds = {};  // per spatial axis
  bool unfolds = false;
};

using namespace ashlar::cudnn;
using ashlar::Dims;
using ashlar::Graph;
using ashlar::PointwiseMode;
using ashlar::TensorTransform;
using ashlar::Value;

namespace {

using Transform = cudnnTensorTransformStruct;

bool is_any_set(const Dims& pads) {
  return std::any_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad != 0; });
}

// max(pads * factor, 0) per axis: the padding (factor 1) or the cropping (factor -1).
Dims above_zero(Dims pads, std::int64_t factor) {
  for (std::int64_t& pad : pads) pad = std::max<std::int64_t>(pad * factor, 0);
  return pads;
}

// A transform has at most two steps: unfold and crop, or pad and fold.
struct Steps {
  TensorTransform crop, pad;
  bool crops = false, pads = false;  // whether there is something to do
  Dims dims;                         // after both steps
};

// Throws Failure for extents that the transform does not accept.
Steps steps_of(const Transform& how, const Dims& from) {
  if (how.pads_before.rank() != from.rank())
    fail(CUDNN_STATUS_BAD_PARAM, "transformDesc.nbDims: got {}, expected {} as srcDesc has",
         how.pads_before.rank(), from.rank());
  Steps steps;
  Dims& dims = steps.dims = from;
  const std::int64_t block = element_count(how.folds);
  steps.crop.unfold = true;
  steps.crop.pad_before = above_zero(how.pads_before, -1);
  steps.crop.pad_after = above_zero(how.pads_after, -1);
  steps.pad.pad_before = above_zero(how.pads_before, 1);
  steps.pad.pad_after = above_zero(how.pads_after, 1);
  if (how.unfolds) {
    steps.crop.fold = how.folds;
    if (dims[1] % block != 0)
      fail(CUDNN_STATUS_BAD_PARAM, "srcDesc.dims[1]: got {} channels, expected a multiple of {}",
           dims[1], block);
    dims[1] /= block;
    for (int axis = 0; axis < how.folds.rank(); ++axis) dims[axis + 2] *= how.folds[axis];
  }
  for (int axis = 0; axis < dims.rank(); ++axis) {
    const std::int64_t pad = how.pads_before[axis] + how.pads_after[axis];
    const std::int64_t cropped = steps.crop.pad_before[axis] + steps.crop.pad_after[axis];
    if (cropped >= dims[axis])
      fail(CUDNN_STATUS_BAD_PARAM,
           "padBeforeA and padAfterA of axis {}: got {} to crop, expected less than {}", axis,
           cropped, dims[axis]);
    dims[axis] += pad;
  }
  if (!how.unfolds) {
    steps.pad.fold = how.folds;
    for (int axis = 0; axis < how.folds.rank(); ++axis) {  // the last block is zero-padded
      std::int64_t& extent = dims[axis + 2];
      const std::int64_t blocks = (extent + how.folds[axis] - 1) / how.folds[axis];
      steps.pad.pad_after[axis + 2] += blocks * how.folds[axis] - extent;
      extent = blocks;
    }
    dims[1] *= block;
  }
  steps.crops = is_any_set(steps.crop.pad_before) || is_any_set(steps.crop.pad_after) ||
                (how.unfolds && block > 1);
  steps.pads = is_any_set(steps.pad.pad_before) || is_any_set(steps.pad.pad_after) ||
               (!how.unfolds && block > 1);
  return steps;
}

// The data type for the requested format: with or without channel vectors.
cudnnDataType_t type_in_format(cudnnDataType_t type, cudnnTensorFormat_t format,
                               std::int64_t channels) {
  const bool is_vector = vector_width(type) > 1;
  if (is_vector == (format == CUDNN_TENSOR_NCHW_VECT_C)) return type;
  if (is_vector) return type == CUDNN_DATA_UINT8x4 ? CUDNN_DATA_UINT8 : CUDNN_DATA_INT8;
  if (type == CUDNN_DATA_UINT8) return CUDNN_DATA_UINT8x4;
  if (type == CUDNN_DATA_INT8) return channels % 32 == 0 ? CUDNN_DATA_INT8x32 : CUDNN_DATA_INT8x4;
  return type;  // packed_spec rejects it with its name
}

Dims pads_of(const int32_t values[], int rank) {
  Dims pads = Dims::filled(rank, 0);
  for (int axis = 0; values != nullptr && axis < rank; ++axis) pads[axis] = values[axis];
  return pads;
}

Dims folds_of(const uint32_t values[], int rank) {
  Dims folds = Dims::filled(rank - 2, 1);
  for (int axis = 0; values != nullptr && axis < rank - 2; ++axis) {
    if (values[axis] == 0)
      fail(CUDNN_STATUS_BAD_PARAM, "foldA[{}]: got 0, expected at least 1", axis);
    folds[axis] = values[axis];
  }
  element_count(folds);  // throws on 64-bit overflow
  return folds;
}

template <class T>
void copy_if_wanted(const Dims& values, uint32_t count, T into[]) {
  for (int axis = 0; into != nullptr && axis < values.rank(); ++axis)
    if (static_cast<uint32_t>(axis) < count) into[axis] = static_cast<T>(values[axis]);
}

// to = alpha * transformed(from) + beta * to
void run_transform(Call& call, const Transform& how, const void* alpha, const TensorSpec& from,
                   const void* from_memory, const void* beta, const TensorSpec& to,
                   void* to_memory) {
  const Steps steps = steps_of(how, from.dims);
  if (to.dims != steps.dims)
    fail(CUDNN_STATUS_BAD_PARAM, "destDesc.dims: got {}, expected {}", to_string(to.dims),
         to_string(steps.dims));
  required(from_memory, "srcData");
  required(to_memory, "destData");
  call.key(how.pads_before).key(how.pads_after).key(how.folds).key(how.unfolds).key(from).key(to);
  call.blend(alpha, beta, to.dtype);
  call.compile([&](Graph& graph) {
    Value moved = add_input(graph, "from", from);
    const auto take = [&](const TensorTransform& step) {
      moved = graph.apply(step, {{TensorTransform::x, moved}},
                          {TensorTransform::y})[TensorTransform::y];
    };
    if (steps.crops) take(steps.crop);
    if (steps.pads || !steps.crops) take(steps.pad);
    call.output(graph, "to", moved, to);
  });
  call.bind("from", from_memory).bind("to", to_memory).run();
}

}  // namespace

cudnnStatus_t cudnnCreateTensorTransformDescriptor(cudnnTensorTransformDescriptor_t* transform) {
  return guarded_legacy(__func__, [&] { create_object(transform, "transformDesc"); });
}

cudnnStatus_t cudnnSetTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transform,
                                                uint32_t rank, cudnnTensorFormat_t to_format,
                                                const int32_t pads_before[],
                                                const int32_t pads_after[], const uint32_t folds[],
                                                cudnnFoldingDirection_t direction) {
  return guarded_legacy(__func__, [&] {
    auto& descriptor = object(transform, "transformDesc");
    if (rank < 3 || rank > CUDNN_DIM_MAX)
      fail(CUDNN_STATUS_BAD_PARAM, "nbDims: got {}, expected 3 to {}", rank, CUDNN_DIM_MAX);
    require_enum(to_format, CUDNN_TENSOR_NCHW_VECT_C, "destFormat");
    require_enum(direction, CUDNN_TRANSFORM_UNFOLD, "direction");
    const int axes = static_cast<int>(rank);
    descriptor = {true,
                  to_format,
                  pads_of(pads_before, axes),
                  pads_of(pads_after, axes),
                  folds_of(folds, axes),
                  direction == CUDNN_TRANSFORM_UNFOLD};
  });
}

cudnnStatus_t cudnnGetTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transform,
                                                uint32_t capacity, cudnnTensorFormat_t* to_format,
                                                int32_t pads_before[], int32_t pads_after[],
                                                uint32_t folds[],
                                                cudnnFoldingDirection_t* direction) {
  return guarded_legacy(__func__, [&] {
    const Transform& fields = set_object(transform, "transformDesc");
    if (to_format != nullptr) *to_format = fields.to_format;
    copy_if_wanted(fields.pads_before, capacity, pads_before);
    copy_if_wanted(fields.pads_after, capacity, pads_after);
    copy_if_wanted(fields.folds, capacity, folds);
    if (direction != nullptr)
      *direction = fields.unfolds ? CUDNN_TRANSFORM_UNFOLD : CUDNN_TRANSFORM_FOLD;
  });
}

cudnnStatus_t cudnnDestroyTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transform) {
  return guarded_legacy(__func__, [&] { destroy_object(transform, "transformDesc"); });
}

cudnnStatus_t cudnnInitTransformDest(cudnnTensorTransformDescriptor_t transform,
                                     cudnnTensorDescriptor_t from_desc,
                                     cudnnTensorDescriptor_t to_desc, size_t* to_bytes) {
  return guarded_legacy(__func__, [&] {
    const Transform& how = set_object(transform, "transformDesc");
    const TensorSpec from = spec_of(from_desc, "srcDesc");
    auto& to = object(to_desc, "destDesc");
    required(to_bytes, "destSizeInBytes");
    const Dims dims = steps_of(how, from.dims).dims;
    const cudnnDataType_t type = type_in_format(from_desc->type, how.to_format, dims[1]);
    set(to, type, packed_spec(type, how.to_format, dims));
    *to_bytes = static_cast<size_t>(byte_size(to.spec));
  });
}

// y = alpha * x + beta * y, between any layouts
cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void* alpha,
                                   cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                   cudnnTensorDescriptor_t y_desc, void* y) {
  return guarded_legacy(__func__, [&] {
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
  return guarded_legacy(__func__, [&] {
    Call call(handle, "transform_tensor_ex");
    const Transform how = set_object(transform, "transformDesc");
    run_transform(call, how, alpha, spec_of(from_desc, "srcDesc"), from, beta,
                  spec_of(to_desc, "destDesc"), to);
  });
}

cudnnStatus_t cudnnTransformFilter(cudnnHandle_t handle, cudnnTensorTransformDescriptor_t transform,
                                   const void* alpha, cudnnFilterDescriptor_t from_desc,
                                   const void* from, const void* beta,
                                   cudnnFilterDescriptor_t to_desc, void* to) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "transform_filter");
    const Transform how = set_object(transform, "transformDesc");
    run_transform(call, how, alpha, spec_of(from_desc, "srcDesc"), from, beta,
                  spec_of(to_desc, "destDesc"), to);
  });
}

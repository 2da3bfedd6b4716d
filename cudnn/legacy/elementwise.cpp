// Element-wise calls: cudnnOpTensor, cudnnAddTensor, cudnnSetTensor and cudnnScaleTensor.
#include <array>
#include <cstring>

#include "core/data_type.hpp"
#include "legacy/call.hpp"
#include "legacy/graph_helpers.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

struct cudnnOpTensorStruct {
  static constexpr const char* kTypeName = "cudnnOpTensorDescriptor_t";
  bool is_set = false;
  cudnnOpTensorOp_t op = CUDNN_OP_TENSOR_ADD;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
};

using namespace ashlar::cudnn;
using ashlar::Dims;
using ashlar::DType;
using ashlar::f32;
using ashlar::f64;
using ashlar::Graph;
using ashlar::PointwiseMode;
using ashlar::Value;

namespace {

using OpTensor = cudnnOpTensorStruct;

bool is_unary(cudnnOpTensorOp_t op) {
  return op == CUDNN_OP_TENSOR_SQRT || op == CUDNN_OP_TENSOR_NOT;
}

// op(a, b) of the scaled operands; b is empty for unary operations.
Value combined(Graph& graph, const OpTensor& how, Value a, Value b, DType type) {
  switch (how.op) {
    case CUDNN_OP_TENSOR_ADD: return binary(graph, PointwiseMode::add, a, b, type);
    case CUDNN_OP_TENSOR_MUL: return binary(graph, PointwiseMode::mul, a, b, type);
    case CUDNN_OP_TENSOR_MIN:
    case CUDNN_OP_TENSOR_MAX: {
      const auto mode = how.op == CUDNN_OP_TENSOR_MIN ? PointwiseMode::min : PointwiseMode::max;
      if (how.nan == CUDNN_PROPAGATE_NAN) return binary(graph, mode, a, b, type);
      return binary(graph, mode, without_nan(graph, a, b, type), without_nan(graph, b, a, type),
                    type);
    }
    case CUDNN_OP_TENSOR_SQRT: return unary(graph, PointwiseMode::sqrt, a, type);
    case CUDNN_OP_TENSOR_NOT:
      return binary(graph, PointwiseMode::sub, constant_like(graph, 1.0, a, type), a, type);
  }
  return a;
}

// A scale factor: float, or double for f64 compute; null means 1.
const void* factor_or_one(const void* factor, DType type) {
  static constexpr float kOne = 1.0F;
  static constexpr double kDoubleOne = 1.0;
  if (factor != nullptr) return factor;
  return type == f64 ? static_cast<const void*>(&kDoubleOne) : &kOne;
}

Value scaled(Graph& graph, Value value, const char* factor, DType type) {
  const int rank = value.dims().rank();
  return binary(graph, PointwiseMode::mul, value, graph.scalar(factor, type, rank), type);
}

DType operand_typedef(DType data) { return data == f64 ? f64 : f32; }

// A tensor as cudnnSetTensor writes it. Elements that a scalar input cannot carry exactly (vectors
// of x4 and x32 types, 64-bit integers) are `count` 32-bit words on a new last axis.
struct Words {
  TensorSpec spec;
  std::int64_t count = 1;
  explicit Words(const TensorSpec& tensor) : spec(tensor) {
    if (tensor.vector == 1 && tensor.dtype != ashlar::i64) return;
    const std::int64_t word_elements = tensor.vector == 1 ? 1 : 4;
    count = tensor.vector == 1 ? 2 : tensor.vector / word_elements;
    spec.dtype = ashlar::i32;
    spec.vector = 1;
    if (tensor.vector > 1) spec.dims[tensor.vector_axis] /= tensor.vector;
    for (std::int64_t& stride : spec.strides)
      stride = tensor.vector == 1 ? stride * count : stride / word_elements;
    if (count == 1) return;
    spec.dims.push_back(count);
    spec.strides.push_back(1);
  }
};

}  // namespace

cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t* op_tensor) {
  return guarded_legacy(__func__, [&] { create_object(op_tensor, "opTensorDesc"); });
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t op_tensor, cudnnOpTensorOp_t op,
                                         cudnnDataType_t compute, cudnnNanPropagation_t nan) {
  return guarded_legacy(__func__, [&] {
    auto& descriptor = object(op_tensor, "opTensorDesc");
    require_enum(op, CUDNN_OP_TENSOR_NOT, "opTensorOp");
    require_enum(nan, CUDNN_PROPAGATE_NAN, "opTensorNanOpt");
    require_dtype(compute, "opTensorCompType");
    descriptor = {true, op, compute, nan};
  });
}

cudnnStatus_t cudnnGetOpTensorDescriptor(cudnnOpTensorDescriptor_t op_tensor, cudnnOpTensorOp_t* op,
                                         cudnnDataType_t* compute, cudnnNanPropagation_t* nan) {
  return guarded_legacy(__func__, [&] {
    const OpTensor& fields = set_object(op_tensor, "opTensorDesc");
    *required(op, "opTensorOp") = fields.op;
    *required(compute, "opTensorCompType") = fields.compute;
    *required(nan, "opTensorNanOpt") = fields.nan;
  });
}

cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t op_tensor) {
  return guarded_legacy(__func__, [&] { destroy_object(op_tensor, "opTensorDesc"); });
}

// c = op(alpha1 * a, alpha2 * b) + beta * c
cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, cudnnOpTensorDescriptor_t op_tensor,
                            const void* alpha1, cudnnTensorDescriptor_t a_desc, const void* a,
                            const void* alpha2, cudnnTensorDescriptor_t b_desc, const void* b,
                            const void* beta, cudnnTensorDescriptor_t c_desc, void* c) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "op_tensor");
    const OpTensor how = set_object(op_tensor, "opTensorDesc");
    const TensorSpec a_spec = spec_of(a_desc, "aDesc"), c_spec = spec_of(c_desc, "cDesc");
    require_same_dims(c_spec, "cDesc", a_spec, "aDesc");
    TensorSpec b_spec;
    if (!is_unary(how.op)) b_spec = broadcast_spec(spec_of(b_desc, "bDesc"), c_spec.dims, "bDesc");
    required(a, "A");
    required(c, "C");
    if (!is_unary(how.op)) required(b, "B");
    const DType type = operand_typedef(require_dtype(how.compute, "opTensorCompType"));
    call.key(how.op).key(how.nan).key(type).key(a_spec).key(b_spec).key(c_spec);
    call.blend(nullptr, beta, type);
    call.compile([&](Graph& graph) {
      const Value left = scaled(graph, add_input(graph, "a", a_spec), "alpha1", type);
      Value right;
      if (!is_unary(how.op)) right = scaled(graph, add_input(graph, "b", b_spec), "alpha2", type);
      call.output(graph, "c", combined(graph, how, left, right, type), c_spec);
    });
    call.bind("alpha1", factor_or_one(alpha1, type)).bind("a", a).bind("c", c);
    if (!is_unary(how.op)) call.bind("alpha2", factor_or_one(alpha2, type)).bind("b", b);
    call.run();
  });
}

// c = alpha * a + beta * c
cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha,
                             cudnnTensorDescriptor_t a_desc, const void* a, const void* beta,
                             cudnnTensorDescriptor_t c_desc, void* c) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "add_tensor");
    const TensorSpec c_spec = spec_of(c_desc, "cDesc");
    const TensorSpec a_spec = broadcast_spec(spec_of(a_desc, "aDesc"), c_spec.dims, "aDesc");
    required(a, "A");
    required(c, "C");
    call.key(a_spec).key(c_spec).blend(alpha, beta, c_spec.dtype);
    call.compile([&](Graph& graph) {
      const Value addend = add_input(graph, "a", a_spec);
      call.output(graph, "c", graph.pointwise(PointwiseMode::identity, std::array{addend}), c_spec);
    });
    call.bind("a", a).bind("c", c).run();
  });
}

// y = value. As in NVIDIA's library, the value is a float for INT8 and for all floating types but
// DOUBLE. For the other types, which that library does not support, it has the type of y.
cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, cudnnTensorDescriptor_t y_desc, void* y,
                             const void* value) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "set_tensor");
    const Words to(spec_of(y_desc, "yDesc"));
    required(y, "y");
    required(value, "valuePtr");
    const DType type = is_floating(to.spec.dtype) || to.spec.dtype == ashlar::i8
                           ? operand_typedef(to.spec.dtype)
                           : to.spec.dtype;
    call.key(to.spec);
    call.compile([&](Graph& graph) {
      const int rank = to.spec.dims.rank();
      std::vector<Value> words;
      for (std::int64_t word = 0; word < to.count; ++word)
        words.push_back(graph.scalar(fmt::format("value{}", word), type, rank));
      // The old contents are an input only to provide the extents.
      const Value before = add_input(graph, "before", to.spec);
      Value filling = words.front();
      if (to.count > 1) {
        for (Value& word : words) word = graph.pointwise(PointwiseMode::identity, std::array{word});
        filling = graph.concat(words, rank - 1);
      }
      ashlar::OutputSpec same_type;
      same_type.dtype = to.spec.dtype;
      add_output(graph, "y", filled_like(graph, before, filling, same_type), to.spec);
    });
    // The words may be unaligned.
    std::array<std::array<std::byte, 16>, 8> words{};
    const auto bytes = static_cast<std::size_t>(std::max(bit_width(type) / 8, 1));
    for (std::size_t word = 0; word < static_cast<std::size_t>(to.count); ++word) {
      std::memcpy(words[word].data(), static_cast<const std::byte*>(value) + word * bytes, bytes);
      call.bind(fmt::format("value{}", word), words[word].data());
    }
    call.bind("before", y).bind("y", y).run();
  });
}

// y = alpha * y
cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, cudnnTensorDescriptor_t y_desc, void* y,
                               const void* alpha) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "scale_tensor");
    const TensorSpec spec = spec_of(y_desc, "yDesc");
    required(y, "y");
    required(alpha, "alpha");
    const DType type = operand_typedef(spec.dtype);
    call.key(spec).compile([&](Graph& graph) {
      add_output(graph, "y", scaled(graph, add_input(graph, "before", spec), "alpha", type), spec);
    });
    call.bind("alpha", alpha).bind("before", y).bind("y", y).run();
  });
}

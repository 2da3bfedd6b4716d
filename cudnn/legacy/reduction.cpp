// cudnnReduceTensor(): reductions to the dims of c, optionally with the indices of minima and
// maxima.
#include <array>
#include <limits>

#include "core/data_type.hpp"
#include "legacy/call.hpp"
#include "legacy/graph_helpers.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

struct cudnnReduceTensorStruct {
  static constexpr const char* kTypeName = "cudnnReduceTensorDescriptor_t";
  bool is_set = false;
  cudnnReduceTensorOp_t op = CUDNN_REDUCE_TENSOR_ADD;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  cudnnReduceTensorIndices_t indices = CUDNN_REDUCE_TENSOR_NO_INDICES;
  cudnnIndicesType_t indices_type = CUDNN_32BIT_INDICES;
};

using namespace ashlar::cudnn;
using ashlar::Dims;
using ashlar::DType;
using ashlar::Graph;
using ashlar::OutputSpec;
using ashlar::PointwiseMode;
using ashlar::Reduction;
using ashlar::ReductionMode;
using ashlar::Value;

namespace {

using Reduce = cudnnReduceTensorStruct;

ReductionMode mode_of(cudnnReduceTensorOp_t op) {
  switch (op) {
    case CUDNN_REDUCE_TENSOR_ADD: return ReductionMode::add;
    case CUDNN_REDUCE_TENSOR_MUL: return ReductionMode::mul;
    case CUDNN_REDUCE_TENSOR_MIN: return ReductionMode::min;
    case CUDNN_REDUCE_TENSOR_MAX: return ReductionMode::max;
    case CUDNN_REDUCE_TENSOR_AMAX: return ReductionMode::amax;
    case CUDNN_REDUCE_TENSOR_AVG: return ReductionMode::avg;
    case CUDNN_REDUCE_TENSOR_NORM1: return ReductionMode::norm1;
    case CUDNN_REDUCE_TENSOR_NORM2: return ReductionMode::norm2;
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS: return ReductionMode::mul_no_zeros;
  }
  return ReductionMode::add;
}

bool picks_element(cudnnReduceTensorOp_t op) {
  return op == CUDNN_REDUCE_TENSOR_MIN || op == CUDNN_REDUCE_TENSOR_MAX ||
         op == CUDNN_REDUCE_TENSOR_AMAX;
}

bool gives_indices(const Reduce& how) {
  return picks_element(how.op) && how.indices == CUDNN_REDUCE_TENSOR_FLATTENED_INDICES;
}

std::int64_t index_bytes(cudnnIndicesType_t type) {
  switch (type) {
    case CUDNN_32BIT_INDICES: return 4;
    case CUDNN_64BIT_INDICES: return 8;
    case CUDNN_16BIT_INDICES: return 2;
    case CUDNN_8BIT_INDICES: return 1;
  }
  return 4;
}

std::int64_t indices_size(const Reduce& how, const TensorSpec& c) {
  return gives_indices(how) ? element_count(c.dims) * index_bytes(how.indices_type) : 0;
}

void require_reducible(const TensorSpec& a, const TensorSpec& c) {
  bool fits = a.dims.rank() == c.dims.rank();
  for (int axis = 0; fits && axis < a.dims.rank(); ++axis)
    fits = c.dims[axis] == a.dims[axis] || c.dims[axis] == 1;
  if (!fits)
    fail(CUDNN_STATUS_BAD_PARAM, "cDesc.dims: got {}, expected extents of 1 or those of aDesc {}",
         to_string(c.dims), to_string(a.dims));
}

// The value that replaces NaN in a minimum or maximum that ignores it.
double neutral_of(cudnnReduceTensorOp_t op) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (op == CUDNN_REDUCE_TENSOR_MIN) return kInfinity;
  return op == CUDNN_REDUCE_TENSOR_MAX ? -kInfinity : 0.0;
}

// Contiguous indices in the requested width; narrow types keep the low bits.
void output_indices(Graph& graph, Value index, const Reduce& how) {
  const std::int64_t count = element_count(index.dims());
  if (how.indices_type == CUDNN_32BIT_INDICES || how.indices_type == CUDNN_64BIT_INDICES) {
    OutputSpec packed;
    packed.layout = ashlar::row_major;
    graph.output("indices", index, packed);
    return;
  }
  const Value list = graph.reshape(index, {count, 1});
  const Value base = constant_like(graph, 256.0, list, ashlar::i32);
  OutputSpec byte = in(ashlar::i32);
  byte.dtype = ashlar::u8;
  const auto low_byte = [&](Value number) {
    return graph.pointwise(PointwiseMode::mod, std::array{number, base}, {}, byte);
  };
  Value bytes = low_byte(list);
  if (how.indices_type == CUDNN_16BIT_INDICES) {
    const Value rest = binary(graph, PointwiseMode::div, list, base, ashlar::i32);
    bytes = graph.concat(std::array{bytes, low_byte(rest)}, 1);
  }
  graph.output("indices", bytes);
}

void build_reduction(Call& call, Graph& graph, const Reduce& how, const TensorSpec& a,
                     const TensorSpec& c) {
  const DType type = how.compute == CUDNN_DATA_DOUBLE ? ashlar::f64 : compute_of(a.dtype);
  Value x = add_input(graph, "a", a);
  if (picks_element(how.op) && how.nan == CUDNN_NOT_PROPAGATE_NAN)
    x = without_nan(graph, x, constant_like(graph, neutral_of(how.op), x, type), type);
  Reduction reduction;
  reduction.mode = mode_of(how.op);
  OutputSpec result = in(type);
  result.dims = c.dims;
  std::vector<ashlar::Wanted<Reduction>> wanted = {Reduction::y};
  if (gives_indices(how)) {
    const bool is_wide = how.indices_type == CUDNN_64BIT_INDICES;
    wanted.emplace_back(Reduction::index, is_wide ? ashlar::i64 : ashlar::i32);
  }
  const auto results = graph.apply(reduction, {{Reduction::x, x}}, wanted, result);
  call.output(graph, "c", results[Reduction::y], c);
  if (gives_indices(how)) output_indices(graph, results[Reduction::index], how);
}

}  // namespace

cudnnStatus_t cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t* reduction) {
  return guarded_legacy(__func__, [&] { create_object(reduction, "reduceTensorDesc"); });
}

cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduction,
                                             cudnnReduceTensorOp_t op, cudnnDataType_t compute,
                                             cudnnNanPropagation_t nan,
                                             cudnnReduceTensorIndices_t indices,
                                             cudnnIndicesType_t indices_type) {
  return guarded_legacy(__func__, [&] {
    auto& descriptor = object(reduction, "reduceTensorDesc");
    require_enum(op, CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS, "reduceTensorOp");
    require_dtype(compute, "reduceTensorCompType");
    require_enum(nan, CUDNN_PROPAGATE_NAN, "reduceTensorNanOpt");
    require_enum(indices, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES, "reduceTensorIndices");
    require_enum(indices_type, CUDNN_8BIT_INDICES, "reduceTensorIndicesType");
    descriptor = {true, op, compute, nan, indices, indices_type};
  });
}

cudnnStatus_t cudnnGetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduction,
                                             cudnnReduceTensorOp_t* op, cudnnDataType_t* compute,
                                             cudnnNanPropagation_t* nan,
                                             cudnnReduceTensorIndices_t* indices,
                                             cudnnIndicesType_t* indices_type) {
  return guarded_legacy(__func__, [&] {
    const Reduce& fields = set_object(reduction, "reduceTensorDesc");
    *required(op, "reduceTensorOp") = fields.op;
    *required(compute, "reduceTensorCompType") = fields.compute;
    *required(nan, "reduceTensorNanOpt") = fields.nan;
    *required(indices, "reduceTensorIndices") = fields.indices;
    *required(indices_type, "reduceTensorIndicesType") = fields.indices_type;
  });
}

cudnnStatus_t cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduction) {
  return guarded_legacy(__func__, [&] { destroy_object(reduction, "reduceTensorDesc"); });
}

cudnnStatus_t cudnnGetReductionIndicesSize(cudnnHandle_t handle,
                                           cudnnReduceTensorDescriptor_t reduction,
                                           cudnnTensorDescriptor_t a_desc,
                                           cudnnTensorDescriptor_t c_desc, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const Reduce& how = set_object(reduction, "reduceTensorDesc");
    const TensorSpec c = spec_of(c_desc, "cDesc");
    require_reducible(spec_of(a_desc, "aDesc"), c);
    *required(bytes, "sizeInBytes") = static_cast<size_t>(indices_size(how, c));
  });
}

// 0: the plan owns its scratch memory, because it depends on alpha and beta, which this query does
// not get.
cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t handle,
                                             cudnnReduceTensorDescriptor_t reduction,
                                             cudnnTensorDescriptor_t a_desc,
                                             cudnnTensorDescriptor_t c_desc, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    set_object(reduction, "reduceTensorDesc");
    require_reducible(spec_of(a_desc, "aDesc"), spec_of(c_desc, "cDesc"));
    *required(bytes, "sizeInBytes") = 0;
  });
}

// c = alpha * reduction(a) + beta * c
cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle, cudnnReduceTensorDescriptor_t reduction,
                                void* indices, size_t indices_bytes, void*, size_t,
                                const void* alpha, cudnnTensorDescriptor_t a_desc, const void* a,
                                const void* beta, cudnnTensorDescriptor_t c_desc, void* c) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "reduce_tensor");
    const Reduce how = set_object(reduction, "reduceTensorDesc");
    const TensorSpec a_spec = spec_of(a_desc, "aDesc"), c_spec = spec_of(c_desc, "cDesc");
    require_reducible(a_spec, c_spec);
    required(a, "A");
    required(c, "C");
    const auto needed = static_cast<size_t>(indices_size(how, c_spec));
    if (needed > 0) required(indices, "indices");
    if (needed > indices_bytes)
      fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "indicesSizeInBytes: got {}, expected {}",
           indices_bytes, needed);
    call.key(how.op).key(how.compute).key(how.nan).key(how.indices).key(how.indices_type);
    call.key(a_spec).key(c_spec).blend(alpha, beta, c_spec.dtype);
    call.compile([&](Graph& graph) { build_reduction(call, graph, how, a_spec, c_spec); });
    call.bind("a", a).bind("c", c);
    if (needed > 0) call.bind("indices", indices);
    call.run();
  });
}

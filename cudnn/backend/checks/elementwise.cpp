// Checks of pointwise operations, reductions, matmuls, random numbers, reshapes, concatenation and
// signals.
#include <algorithm>
#include <functional>
#include <numeric>

#include "backend/attribute_table.hpp"
#include "backend/checks/operand.hpp"
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

namespace {

enum class Arity { unary, binary, backward, select };

Arity arity_of(std::int64_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_SQRT:
    case CUDNN_POINTWISE_ABS:
    case CUDNN_POINTWISE_CEIL:
    case CUDNN_POINTWISE_COS:
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_FLOOR:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_NEG:
    case CUDNN_POINTWISE_RSQRT:
    case CUDNN_POINTWISE_SIN:
    case CUDNN_POINTWISE_TAN:
    case CUDNN_POINTWISE_ERF:
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_RECIPROCAL:
    case CUDNN_POINTWISE_LOGICAL_NOT:
    case CUDNN_POINTWISE_GEN_INDEX: return Arity::unary;
    case CUDNN_POINTWISE_BINARY_SELECT: return Arity::select;
    default: break;
  }
  if (mode >= CUDNN_POINTWISE_RELU_FWD && mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_FWD)
    return Arity::unary;
  if (mode >= CUDNN_POINTWISE_RELU_BWD && mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_BWD)
    return Arity::backward;
  return Arity::binary;
}

// The dims that the operands broadcast to. Clients are careless about the extents of virtual
// tensors: a virtual operand that is too large on an axis where the result has extent 1 stands for
// its reduction.
Extents broadcast(std::span<const Operand> operands, const Operand& result) {
  Extents whole(result.dims().size(), 1);
  for (const Operand& operand : operands) {
    Extents dims(operand.dims().begin(), operand.dims().end());
    if (operand.is_virtual() && dims.size() == whole.size())
      for (std::size_t axis = 0; axis < whole.size(); ++axis)
        if (result.dims()[axis] == 1) dims[axis] = 1;
    operand.require_broadcastable(result.dims(), dims);
    if (dims.size() == whole.size())
      std::ranges::transform(whole, dims, whole.begin(),
                             [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  }
  return whole;
}

void check_pointwise(std::initializer_list<Operand> operands, const Operand& result) {
  result.require_set();
  for (const Operand& operand : operands) operand.require_set();
  result.require_dims(broadcast({operands.begin(), operands.size()}, result),
                      ", the broadcast of the operands");
}

std::int64_t element_count(const Operand& tensor) {
  return std::reduce(tensor.dims().begin(), tensor.dims().end(), std::int64_t{1},
                     std::multiplies<>());
}

}  // namespace

FinishedRef finalize_pointwise_operation(const Record& operation) {
  const Record& parameters = operation.record(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const std::int64_t mode = parameters.integer(CUDNN_ATTR_POINTWISE_MODE);
  const Operand x(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  const Operand b(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  const Operand y(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  const Operand dx(operation, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC);
  const Operand dy(operation, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC);
  const Operand t(operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
  switch (arity_of(mode)) {
    case Arity::unary: check_pointwise({x}, y); break;
    case Arity::binary: check_pointwise({x, b}, y); break;
    case Arity::select: check_pointwise({x, b, t}, y); break;
    // The backward of an activation reads its input x or its output y.
    case Arity::backward: check_pointwise({dy, x.is_set() || !y.is_set() ? x : y}, dx); break;
  }
  const std::int64_t axis = parameters.integer(CUDNN_ATTR_POINTWISE_AXIS);
  if (mode == CUDNN_POINTWISE_GEN_INDEX && axis >= y.rank())
    fail_bound(CUDNN_ATTR_POINTWISE_AXIS, std::to_string(axis),
               fmt::format("an axis of the result, below {}", y.rank()));
  return attributes_only();
}

FinishedRef finalize_reduction_operation(const Record& operation) {
  require_set(operation, {CUDNN_ATTR_OPERATION_REDUCTION_DESC});
  const Operand x(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  const Operand y(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  x.require_set();
  // An axis may be reduced to groups: the key heads that several query heads share (GQA).
  y.require_set().require_divisor(x.dims());
  return attributes_only();
}

FinishedRef finalize_matmul_operation(const Record& operation) {
  require_set(operation, {CUDNN_ATTR_OPERATION_MATMUL_DESC});
  const Operand a(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  const Operand b(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  const Operand c(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  a.require_set().require_rank(2);
  const int rank = a.rank();
  b.require_set().require_rank(rank, rank);
  c.require_set().require_rank(rank, rank);
  if (b.extent(rank - 2) != a.extent(rank - 1))
    b.fail_shape(
        fmt::format("{} rows", b.extent(rank - 2)),
        fmt::format("{}, the columns of CUDNN_ATTR_OPERATION_MATMUL_ADESC", a.extent(rank - 1)));
  Extents expected;
  for (int axis = 0; axis < rank - 2; ++axis) {
    // Several matrices of one operand may share a matrix of the other (GQA).
    const std::int64_t batch = std::max(a.extent(axis), b.extent(axis));
    if (batch % a.extent(axis) != 0 || batch % b.extent(axis) != 0)
      b.fail_shape(fmt::format("{} on batch axis {}", b.extent(axis), axis),
                   fmt::format("a divisor or a multiple of {}", a.extent(axis)));
    expected.push_back(batch);
  }
  expected.push_back(a.extent(rank - 2));
  expected.push_back(b.extent(rank - 1));
  c.require_dims(expected, ", the dims of A * B");
  for (const auto name : {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
                          CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
                          CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC})
    Operand(operation, name).require_integer();
  return attributes_only();
}

FinishedRef finalize_reshape(const Record& operation) {
  const Operand x(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
  const Operand y(operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  if (element_count(y.require_set()) != element_count(x.require_set()))
    y.fail_shape("dims " + text_of(y.dims()),
                 fmt::format("{} elements, as x {} has", element_count(x), text_of(x.dims())));
  return attributes_only();
}

FinishedRef finalize_concat(const Record& operation) {
  const auto inputs = operation.records(CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS);
  const Operand output(operation, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC);
  output.require_set();
  const std::int64_t axis = operation.integer(CUDNN_ATTR_OPERATION_CONCAT_AXIS);
  if (axis < 0 || axis >= output.rank())
    fail_bound(CUDNN_ATTR_OPERATION_CONCAT_AXIS, std::to_string(axis),
               fmt::format("an axis of the result, below {}", output.rank()));
  if (inputs.empty())
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "{}: got 0 tensors, expected at least 1",
         attribute_name(CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS));
  require_within(operation, CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX, -1,
                 static_cast<std::int64_t>(inputs.size()) - 1);
  const auto along = static_cast<std::size_t>(axis);
  Extents sum(output.dims().begin(), output.dims().end());
  sum[along] = 0;
  for (const RecordRef& tensor : inputs) {
    const Operand input(tensor.get(), CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS);
    input.require_rank(output.rank(), output.rank());
    Extents expected(output.dims().begin(), output.dims().end());
    expected[along] = input.dims()[along];
    input.require_dims(expected, ", the dims of the result except on the axis");
    if (__builtin_add_overflow(sum[along], expected[along], &sum[along]))
      input.fail_shape("dims " + text_of(input.dims()), "extents whose sum fits into 63 bits");
  }
  output.require_dims(sum, ", the concatenated dims of the inputs");
  return attributes_only();
}

FinishedRef finalize_rng_operation(const Record& operation) {
  require_set(operation, {CUDNN_ATTR_OPERATION_RNG_DESC, CUDNN_ATTR_OPERATION_RNG_SEED});
  Operand(operation, CUDNN_ATTR_OPERATION_RNG_YDESC).require_set();
  for (const auto name : {CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC})
    Operand(operation, name).require_one_element().require_integer();
  return attributes_only();
}

FinishedRef finalize_signal(const Record& operation) {
  require_set(operation, {CUDNN_ATTR_OPERATION_SIGNAL_MODE, CUDNN_ATTR_OPERATION_SIGNAL_VALUE});
  Operand(operation, CUDNN_ATTR_OPERATION_SIGNAL_FLAGDESC).require_set().require_one_element();
  const Operand x(operation, CUDNN_ATTR_OPERATION_SIGNAL_XDESC);
  const Operand y(operation, CUDNN_ATTR_OPERATION_SIGNAL_YDESC);
  if (x.is_set() != y.is_set()) (x.is_set() ? y : x).require_set();
  if (x.is_set()) y.require_dims(x.dims(), ", the dims of CUDNN_ATTR_OPERATION_SIGNAL_XDESC");
  return attributes_only();
}

}  // namespace ashlar::cudnn

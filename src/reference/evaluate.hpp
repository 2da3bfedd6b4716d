// The reference loop nests, one per operation. Each is a template over the operands: MemoryOperands
// (double, the last-resort engine) or DenseOperands (values with error bounds, the oracle). An
// operands object provides
//   has_input(i), input(i), has_output(i), output(i)  views with dims(), dtype(), load(index),
//                                                     store(index, x); line(index, axis)[i] loads
//                                                     the element i further along that axis
//   integer(i)                                        a single 64-bit integer
//   compute()                                         the node's compute type
// A complex tensor has an additional last axis for its two parts, and complex() is true.
// load() broadcasts: on an axis of extent 1 every coordinate maps to 0.
#pragma once

#include <ashlar/ops.hpp>
#include <functional>

#include "reference/accumulator.hpp"
#include "reference/dense_operands.hpp"
#include "reference/loops.hpp"
#include "reference/memory_operands.hpp"
#include "reference/scratch.hpp"

namespace ashlar::reference {

// Evaluates an operation: a specialisation for each, by ASHLAR_REFERENCE in the file of its loop
// nest. The linker reports a missing one.
template <class OpType, class Operands>
void evaluate_op(const OpType& op, const Operands& operands);

// The scratch memory of its loop nest.
using InputDims = std::function<Dims(int slot)>;
template <class OpType>
ScratchNeed scratch_need(const OpType& op, const InputDims& dims);

template <class OpType>
ScratchNeed no_scratch(const OpType&, const InputDims&) {
  return {};
}

// Integer compute types truncate as C does, and define division by zero as 0.
template <class Scalar>
Scalar quotient(DType compute, Scalar a, Scalar b) {
  if (is_floating(compute)) return a / b;
  return truncated_quotient(a, b);
}

// An empty attribute means `missing` on every axis.
inline std::int64_t per_axis(const Dims& values, int axis, std::int64_t missing) {
  return values.empty() ? missing : values[axis];
}

}  // namespace ashlar::reference

// Makes the function evaluate(op, operands) above the reference of an operation, for all kinds of
// operands; need(op, dims) is its scratch memory.
#define ASHLAR_REFERENCE_WITH_SCRATCH(OpType, need)                                        \
  template <>                                                                              \
  ScratchNeed scratch_need(const OpType& op, const InputDims& dims) {                      \
    return need(op, dims);                                                                 \
  }                                                                                        \
  template <>                                                                              \
  void evaluate_op(const OpType& op, const MemoryOperands& operands) {                     \
    evaluate(op, operands);                                                                \
  }                                                                                        \
  template <>                                                                              \
  void evaluate_op(const OpType& op, const DenseOperands<Arithmetic::f32>& operands) {     \
    evaluate(op, operands);                                                                \
  }                                                                                        \
  template <>                                                                              \
  void evaluate_op(const OpType& op, const DenseOperands<Arithmetic::f64>& operands) {     \
    evaluate(op, operands);                                                                \
  }                                                                                        \
  template <>                                                                              \
  void evaluate_op(const OpType& op, const DenseOperands<Arithmetic::integer>& operands) { \
    evaluate(op, operands);                                                                \
  }                                                                                        \
  static_assert(true)
#define ASHLAR_REFERENCE(OpType) ASHLAR_REFERENCE_WITH_SCRATCH(OpType, no_scratch)

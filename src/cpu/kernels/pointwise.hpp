// Pointwise operations on rows of float or double.
#pragma once

#include <ashlar/ops.hpp>
#include <cstdint>

namespace ashlar::cpu {

// y[i] = op(x[i], b[i], predicate[i]), without alpha1 and alpha2. Unused operands are null; y may
// be any of the operands.
template <class T>
using PointwiseRow = void (*)(const Pointwise& op, const T* x, const T* b, const T* predicate,
                              std::int64_t count, T* y);

// The best for this processor. `integer`: the compute type is an integer, so that quotients are
// whole numbers. gen_index is the caller's: it depends on coordinates.
template <class T>
PointwiseRow<T> pointwise_row(PointwiseMode mode, bool integer);

// y[i] = factor * x[i]
template <class T>
void scale_row(T factor, const T* x, std::int64_t count, T* y);

}  // namespace ashlar::cpu

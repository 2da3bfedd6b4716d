// Pointwise operations through the C library: accurate, one element at a time.
#pragma once

#include "cpu/kernels/pointwise.hpp"

namespace ashlar::cpu {

template <class T>
PointwiseRow<T> libm_row(PointwiseMode mode, bool integer);

}  // namespace ashlar::cpu

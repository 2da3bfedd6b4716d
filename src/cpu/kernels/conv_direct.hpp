// Row operations of direct convolution: linear combinations and dot products.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

template <class T>
struct ConvDirect {
  // out[i] = sum over t of weights[t] * rows[t * stride + i]
  void (*combine)(std::int64_t count, std::int64_t terms, const T* rows, std::int64_t stride,
                  const T* weights, T* out);
  // sum over i of a[i] * b[i]
  T (*dot)(std::int64_t count, const T* a, const T* b);
};

// The best implementation for this CPU.
template <class T>
ConvDirect<T> conv_direct();

}  // namespace ashlar::cpu

// Rotary position embedding of one row, and its cosines and sines.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

template <class T>
struct RotateRows {
  // cos[i] and sin[i] of position * frequencies[i], times `scale`; angles are computed and reduced
  // to an eighth of a turn in double precision.
  void (*angles)(double position, const double* frequencies, std::int64_t n, double scale, T* cos,
                 T* sin);
  // Rotates pairs i and i + n, or 2 i and 2 i + 1; y may be x. `stream`: non-temporal stores, if y
  // is aligned.
  void (*halves)(const T* x, const T* cos, const T* sin, std::int64_t n, T* y, bool stream);
  void (*interleaved)(const T* x, const T* cos, const T* sin, std::int64_t n, T* y, bool stream);
};

// The best implementation for this CPU.
template <class T>
const RotateRows<T>& rotate_rows();

}  // namespace ashlar::cpu

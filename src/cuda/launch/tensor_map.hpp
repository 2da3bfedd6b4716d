// TMA descriptors (CUtensorMap, sm_90 on): described here, encoded by the driver, read by
// lib/ptx_tma.cuh.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/view.hpp"

namespace ashlar::cuda {

// Whether the elements along an axis are contiguous, as one axis of every map must be.
inline bool is_contiguous(const View& view, int axis) {
  return view.strides[axis] == 1 || view.dims[axis] == 1;
}

// Elements in 16 bytes, the granularity of TMA strides and addresses.
inline std::int64_t elements_per_16_bytes(DType dtype) { return 128 / bit_width(dtype); }

// Whether a tensor map of the view may have `axis` as its contiguous axis: lines along it start at
// multiples of 16 bytes.
inline bool is_tma_aligned(const View& view, int axis) {
  const std::int64_t piece = elements_per_16_bytes(view.dtype);
  bool result = is_contiguous(view, axis) && view.offset % piece == 0;
  for (int other = 0; other < view.dims.rank(); ++other)
    if (other != axis && view.dims[other] > 1) result = result && view.strides[other] % piece == 0;
  return result;
}

struct TensorMapAxis {
  std::int64_t extent = 1;
  std::int64_t stride = 1;  // in elements; 1 for the first, contiguous axis
  std::int64_t box = 1;     // box extent; im2col: of channels only
  std::int64_t step = 1;    // element stride (traversal stride)
  // im2col: corners of the bounding box, relative to 0 and extent - 1.
  std::int64_t lower = 0, upper = 0;
};

struct TensorMapForm {
  DType dtype = f32;
  bool rounds_to_tf32 = false;           // TMA rounds f32 elements to tf32
  int swizzle = 128;                     // bytes: 0, 32, 64, 128
  std::vector<TensorMapAxis> axes = {};  // 2 to 5, the contiguous one first
  // Not 0: im2col mode, pixels per copy; axes are channels, 1 to 3 spatial ones, images.
  std::int64_t pixels = 0;
};

// Why TMA does not support the form, or null. Addresses must be multiples of 16 bytes.
const char* refusal(const TensorMapForm& form);

inline constexpr int kTensorMapWords = 16;
struct alignas(64) TensorMapWords {
  std::array<std::uint64_t, kTensorMapWords> words;
};
// Encodes a descriptor with a placeholder address. Needs a driver.
TensorMapWords encode(const TensorMapForm& form);
// `map` is aligned to 64 bytes, the address a multiple of 16.
void replace_address(std::uint64_t* map, std::uint64_t address);

}  // namespace ashlar::cuda

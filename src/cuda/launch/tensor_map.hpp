// How the copy engine (TMA, sm_90 on) is to see a tensor: lib/ptx_tma.cuh's TensorMap, described
// here and encoded by the driver.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/view.hpp"

namespace ashlar::cuda {

// Whether the elements along an axis lie together, as one of every map must.
inline bool is_contiguous(const View& view, int axis) {
  return view.strides[axis] == 1 || view.dims[axis] == 1;
}

// Elements of 16 bytes, in whose multiples the copy engine counts distances.
inline std::int64_t elements_per_16_bytes(DType dtype) { return 128 / bit_width(dtype); }

// Whether a map of the view may have `axis` as its contiguous one: lines along it begin at
// multiples of 16 bytes of the tensor.
inline bool is_tma_aligned(const View& view, int axis) {
  const std::int64_t piece = elements_per_16_bytes(view.dtype);
  bool result = is_contiguous(view, axis) && view.offset % piece == 0;
  for (int other = 0; other < view.dims.rank(); ++other)
    if (other != axis && view.dims[other] > 1) result = result && view.strides[other] % piece == 0;
  return result;
}

struct TensorMapAxis {
  std::int64_t extent = 1;
  std::int64_t stride = 1;  // in elements; 1 for the first axis, whose elements lie together
  std::int64_t box = 1;     // elements that a copy takes; images: of channels only
  std::int64_t step = 1;    // from one that it takes to the next
  // Images: the first and the last position of a window's corner, past 0 and extent - 1.
  std::int64_t lower = 0, upper = 0;
};

struct TensorMapForm {
  DType dtype = f32;
  bool rounds_to_tf32 = false;           // f32 elements are on the way
  int swizzle = 128;                     // bytes: 0, 32, 64, 128
  std::vector<TensorMapAxis> axes = {};  // 2 to 5, the contiguous one first
  // Not 0: pixels per copy of an image whose axes are channels, 1 to 3 spatial ones, images.
  std::int64_t pixels = 0;
};

// Why the copy engine cannot take it, or null. A null address: of any that is a multiple of 16.
const char* refusal(const TensorMapForm& form);

inline constexpr int kTensorMapWords = 16;
struct alignas(64) TensorMapWords {
  std::array<std::uint64_t, kTensorMapWords> words;
};
// Of a tensor at an address that does not matter yet. Needs a driver.
TensorMapWords encode(const TensorMapForm& form);
// `map` is aligned to 64 bytes, the address a multiple of 16.
void replace_address(std::uint64_t* map, std::uint64_t address);

}  // namespace ashlar::cuda

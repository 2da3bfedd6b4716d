// The decoded form of a tensor map of the emulated driver; its 128 bytes are opaque elsewhere.
#pragma once

#include <array>
#include <cstdint>

namespace emulated {

constexpr int kMostRank = 5, kMostSpatial = 3;

// CUtensorMapDataType
enum class TensorType : std::uint8_t {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f64,
  bf16,
  f32_ftz,
  tf32,
  tf32_ftz
};
unsigned bytes_of(TensorType type);

// Axes from the innermost on.
struct TensorMap {
  TensorType type;
  bool is_im2col;
  int rank;
  int swizzle;  // 0: none, else rows of 16 << swizzle bytes
  std::uint64_t address;
  std::array<std::uint64_t, kMostRank> dims;
  std::array<std::uint64_t, kMostRank> strides;  // bytes; [0] is the element's size
  std::array<unsigned, kMostRank> element_strides;
  std::array<unsigned, kMostRank> box;         // tiled: elements along each axis
  std::array<int, kMostSpatial> lower, upper;  // im2col: W, H, D
  unsigned channels, pixels;                   // im2col

  // Elements of a box along an axis in shared memory.
  unsigned box_elements(int axis) const {
    const auto a = static_cast<std::size_t>(axis);
    return axis == 0 ? box[a] : (box[a] + element_strides[a] - 1) / element_strides[a];
  }
  unsigned row_bytes() const { return (is_im2col ? channels : box[0]) * bytes_of(type); }
};

// False for invalid or damaged tensor maps.
bool read_tensor_map(const void* map, TensorMap& result);

}  // namespace emulated

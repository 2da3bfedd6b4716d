// Tensor maps of the emulated driver: encoding, and the documented restrictions.
#include "tensor_map.hpp"

#include <cstring>

#include "objects.hpp"
#include "options.hpp"

namespace emulated {

namespace {

// 64-bit words marked in their upper byte, so that only the address word looks like an address.
using Words = std::array<std::uint64_t, 16>;
constexpr std::uint64_t kMark = 0xa7ull << 56;
constexpr std::size_t kAddress = 1, kDims = 2, kStrides = 7, kCorners = 12, kPixels = 15;

Words pack(const TensorMap& map) {
  Words words{};
  words[0] = kMark | 0x5e50a9ull << 32 | static_cast<std::uint64_t>(map.swizzle) << 16 |
             static_cast<std::uint64_t>(map.rank) << 12 |
             static_cast<std::uint64_t>(map.is_im2col) << 8 | static_cast<std::uint64_t>(map.type);
  words[kAddress] = map.address;
  for (std::size_t i = 0; i < kMostRank; ++i) {
    words[kDims + i] = kMark | ((map.dims[i] - 1) & 0xffffffffu) | std::uint64_t{map.box[i]} << 32 |
                       std::uint64_t{map.element_strides[i]} << 48;
    words[kStrides + i] = kMark | map.strides[i];
  }
  for (std::size_t i = 0; i < kMostSpatial; ++i)
    words[kCorners + i] = kMark | static_cast<std::uint16_t>(map.lower[i]) |
                          static_cast<std::uint64_t>(static_cast<std::uint16_t>(map.upper[i]))
                              << 16;
  words[kPixels] = kMark | map.channels | std::uint64_t{map.pixels} << 16;
  return words;
}

struct Request {
  void* map;
  int type;
  unsigned rank;
  std::uint64_t address;
  const std::uint64_t *dims, *strides;
  const unsigned* element_strides;
  int interleave, swizzle, promotion, fill;
};

bool is_tensor_float(int type) { return type >= 6 && type <= 12; }

// Checks and reads what tiled and im2col maps share; false: invalid.
bool read_request(const Request& request, unsigned min_rank, TensorMap& map) {
  constexpr std::uint64_t kMaxElements = 1ull << 32, kStrideEnd = 1ull << 40;
  if (reinterpret_cast<std::uintptr_t>(request.map) % 64 != 0) return false;
  if (request.type < 0 || request.type > 12) return false;
  if (request.rank < min_rank || request.rank > kMostRank) return false;
  if (request.address == 0 || request.address % 16 != 0) return false;
  if (request.swizzle < 0 || request.swizzle > 3 || request.promotion < 0 ||
      request.promotion > 3 || request.fill < 0 || request.fill > 1)
    return false;
  if (request.fill == 1 && !is_tensor_float(request.type)) return false;
  map = {};
  map.type = static_cast<TensorType>(request.type);
  map.rank = static_cast<int>(request.rank);
  map.swizzle = request.swizzle;
  map.address = request.address;
  map.dims.fill(1);
  map.element_strides.fill(1);
  map.box.fill(1);
  map.strides[0] = bytes_of(map.type);
  for (std::size_t i = 0; i < request.rank; ++i) {
    if (request.dims[i] == 0 || request.dims[i] > kMaxElements) return false;
    map.dims[i] = request.dims[i];
    if (request.element_strides[i] == 0 || request.element_strides[i] > 8) return false;
    // The innermost element stride is ignored.
    map.element_strides[i] = i == 0 ? 1 : request.element_strides[i];
    if (i == 0) continue;
    const std::uint64_t stride = request.strides[i - 1];
    if (stride % 16 != 0 || stride >= kStrideEnd) return false;
    map.strides[i] = stride;
  }
  return true;
}

// Checks the row length of a box in shared memory.
bool is_row_allowed(const TensorMap& map) {
  return map.row_bytes() % 16 == 0 && (map.swizzle == 0 || map.row_bytes() <= 16u << map.swizzle);
}

Result give(const TensorMap& map, void* to) {
  const Words words = pack(map);
  std::memcpy(to, words.data(), sizeof words);
  return Result::success;
}

}  // namespace

unsigned bytes_of(TensorType type) {
  constexpr std::array<unsigned, 13> kBytes = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return kBytes[static_cast<std::size_t>(type)];
}

bool read_tensor_map(const void* from, TensorMap& map) {
  Words words;
  std::memcpy(words.data(), from, sizeof words);
  map = {.type = static_cast<TensorType>(words[0] & 15),
         .is_im2col = (words[0] >> 8 & 1) != 0,
         .rank = static_cast<int>(words[0] >> 12 & 7),
         .swizzle = static_cast<int>(words[0] >> 16 & 3),
         .address = words[kAddress],
         .dims = {},
         .strides = {},
         .element_strides = {},
         .box = {},
         .lower = {},
         .upper = {},
         .channels = static_cast<unsigned>(words[kPixels] & 0xffff),
         .pixels = static_cast<unsigned>(words[kPixels] >> 16 & 0xffff)};
  for (std::size_t i = 0; i < kMostRank; ++i) {
    map.dims[i] = (words[kDims + i] & 0xffffffffu) + 1;
    map.box[i] = static_cast<unsigned>(words[kDims + i] >> 32 & 0xffff);
    map.element_strides[i] = static_cast<unsigned>(words[kDims + i] >> 48 & 0xff);
    map.strides[i] = words[kStrides + i] & ~kMark;
  }
  for (std::size_t i = 0; i < kMostSpatial; ++i) {
    map.lower[i] = static_cast<std::int16_t>(words[kCorners + i]);
    map.upper[i] = static_cast<std::int16_t>(words[kCorners + i] >> 16);
  }
  return static_cast<int>(map.type) <= 12 && pack(map) == words;
}

}  // namespace emulated

using namespace emulated;

extern "C" {

Result cuTensorMapEncodeTiled(void* to, TensorMapType type, unsigned rank, void* address,
                              const std::uint64_t* dims, const std::uint64_t* strides,
                              const unsigned* box, const unsigned* element_strides, int interleave,
                              TensorMapSwizzle swizzle, int promotion, int fill) {
  TensorMap map;
  if (!read_request(
          {to, static_cast<int>(type), rank, reinterpret_cast<std::uint64_t>(address), dims,
           strides, element_strides, interleave, static_cast<int>(swizzle), promotion, fill},
          1, map))
    return Result::invalid_value;
  for (std::size_t i = 0; i < rank; ++i) {
    if (box[i] == 0 || box[i] > 256) return Result::invalid_value;
    map.box[i] = box[i];
  }
  if (!is_row_allowed(map)) return Result::invalid_value;
  if (options().capability < 90 || interleave != 0 || fill != 0) return kNotSupported;
  return give(map, to);
}

Result cuTensorMapEncodeIm2col(void* to, TensorMapType type, unsigned rank, void* address,
                               const std::uint64_t* dims, const std::uint64_t* strides,
                               const int* lower, const int* upper, unsigned channels,
                               unsigned pixels, const unsigned* element_strides, int interleave,
                               TensorMapSwizzle swizzle, int promotion, int fill) {
  TensorMap map;
  if (!read_request(
          {to, static_cast<int>(type), rank, reinterpret_cast<std::uint64_t>(address), dims,
           strides, element_strides, interleave, static_cast<int>(swizzle), promotion, fill},
          3, map))
    return Result::invalid_value;
  map.is_im2col = true;
  // The corners share 16 bits: 16, 8 or 5 bits per spatial axis.
  const int limit = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (lower[i] < -limit || lower[i] >= limit || upper[i] < -limit || upper[i] >= limit)
      return Result::invalid_value;
    // The bounding box must not be empty.
    if (static_cast<std::int64_t>(map.dims[i + 1]) + upper[i] <= lower[i])
      return Result::invalid_value;
    map.lower[i] = lower[i];
    map.upper[i] = upper[i];
  }
  if (channels == 0 || channels > 256 || pixels == 0 || pixels > 1024) return Result::invalid_value;
  map.channels = channels;
  map.pixels = pixels;
  if (!is_row_allowed(map)) return Result::invalid_value;
  if (options().capability < 90 || interleave != 0 || fill != 0) return kNotSupported;
  return give(map, to);
}

Result cuTensorMapReplaceAddress(void* to, void* address) {
  TensorMap map;
  const auto number = reinterpret_cast<std::uint64_t>(address);
  if (number == 0 || number % 16 != 0 || !read_tensor_map(to, map)) return Result::invalid_value;
  map.address = number;
  return give(map, to);
}

}  // extern "C"

EMULATES(cuTensorMapEncodeTiled, encode_tiled);
EMULATES(cuTensorMapEncodeIm2col, encode_im2col);
EMULATES(cuTensorMapReplaceAddress, replace_address);

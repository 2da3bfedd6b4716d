#include "cuda/launch/tensor_map.hpp"

#include "base/fail.hpp"
#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::size_t kMaxAxes = 5;

TensorMapType type_of(const TensorMapForm& form) {
  switch (form.dtype) {
    case DType::f64: return TensorMapType::f64;
    case DType::f32: return form.rounds_to_tf32 ? TensorMapType::tf32 : TensorMapType::f32;
    case DType::f16: return TensorMapType::f16;
    case DType::bf16: return TensorMapType::bf16;
    default: return TensorMapType::u8;
  }
}

}  // namespace

const char* refusal(const TensorMapForm& form) {
  const std::size_t rank = form.axes.size();
  const std::int64_t bytes = bit_width(form.dtype) / 8;
  if (bytes == 0) return "sub-byte elements";
  if (rank < 2 || rank > kMaxAxes || (form.pixels > 0 && rank < 3))
    return "an unsupported number of axes";
  if (form.axes[0].stride != 1) return "a first axis that is not contiguous";
  if (form.pixels > 1024) return "more than 1024 pixels per copy";
  // Range of the im2col bounding-box corners, by rank.
  constexpr std::array<std::int64_t, 3> kReach = {1 << 15, 1 << 7, 1 << 4};
  for (std::size_t i = 0; i < rank; ++i) {
    const TensorMapAxis& axis = form.axes[i];
    if (axis.extent < 1 || axis.extent > std::int64_t{1} << 32) return "an extent past 2^32";
    if (axis.box < 1 || axis.box > 256) return "a box longer than 256 elements";
    if (axis.step < 1 || axis.step > 8) return "an element stride past 8";
    if (i == 0) continue;
    if (axis.stride < 0 || axis.stride * bytes % 16 != 0)
      return "a stride that is not a multiple of 16 bytes";
    if (axis.stride * bytes >= std::int64_t{1} << 40) return "a stride past 2^40 bytes";
    if (form.pixels == 0 || i + 1 == rank) continue;
    const std::int64_t reach = kReach[rank - 3];
    for (const std::int64_t corner : {axis.lower, axis.upper})
      if (corner < -reach || corner >= reach) return "a bounding box past the limits of im2col";
  }
  if (form.swizzle > 0 && form.axes[0].box * bytes > form.swizzle)
    return "box rows longer than the swizzle";
  if (form.axes[0].box * bytes % 16 != 0) return "box rows that are not a multiple of 16 bytes";
  return nullptr;
}

TensorMapWords encode(const TensorMapForm& form) {
  if (const char* reason = refusal(form))
    fail(ErrorCode::internal, "cuda: cannot encode a tensor map with {}", reason);
  const auto rank = static_cast<unsigned>(form.axes.size());
  std::array<std::uint64_t, kMaxAxes> extents{}, strides{};
  std::array<std::uint32_t, kMaxAxes> box{}, steps{};
  std::array<int, kMaxAxes> lower{}, upper{};
  for (unsigned i = 0; i < rank; ++i) {
    const TensorMapAxis& axis = form.axes[i];
    extents[i] = static_cast<std::uint64_t>(axis.extent);
    box[i] = static_cast<std::uint32_t>(axis.box);
    steps[i] = static_cast<std::uint32_t>(axis.step);
    if (i == 0) continue;
    // The stride of an axis of extent 1 is irrelevant, but must be valid.
    strides[i - 1] = static_cast<std::uint64_t>(std::max<std::int64_t>(axis.stride, 0)) *
                     static_cast<std::uint64_t>(bit_width(form.dtype) / 8);
    if (axis.extent == 1 && strides[i - 1] == 0) strides[i - 1] = 16;
    if (i + 1 == rank) continue;
    lower[i - 1] = static_cast<int>(axis.lower);
    upper[i - 1] = static_cast<int>(axis.upper);
  }
  const TensorMapSwizzle swizzle = form.swizzle == 128  ? TensorMapSwizzle::bytes_128
                                   : form.swizzle == 64 ? TensorMapSwizzle::bytes_64
                                   : form.swizzle == 32 ? TensorMapSwizzle::bytes_32
                                                        : TensorMapSwizzle::none;
  constexpr int kNoInterleave = 0, kPromoteTo256Bytes = 3, kFillWithZeros = 0;
  // Placeholder: never dereferenced; the driver only checks its alignment.
  void* anywhere = reinterpret_cast<void*>(std::uintptr_t{1} << 32);
  const DriverApi& api = driver_api();
  TensorMapWords map{};
  if (api.encode_tiled == nullptr)
    fail(ErrorCode::device, "cuda: the driver does not support tensor maps (TMA)");
  check(form.pixels == 0
            ? api.encode_tiled(map.words.data(), type_of(form), rank, anywhere, extents.data(),
                               strides.data(), box.data(), steps.data(), kNoInterleave, swizzle,
                               kPromoteTo256Bytes, kFillWithZeros)
            : api.encode_im2col(map.words.data(), type_of(form), rank, anywhere, extents.data(),
                                strides.data(), lower.data(), upper.data(), box[0],
                                static_cast<std::uint32_t>(form.pixels), steps.data(),
                                kNoInterleave, swizzle, kPromoteTo256Bytes, kFillWithZeros),
        "encoding a TMA tensor map");
  return map;
}

void replace_address(std::uint64_t* map, std::uint64_t address) {
  check(driver_api().replace_address(map, reinterpret_cast<void*>(address)),
        "replacing the address of a TMA tensor map");
}

}  // namespace ashlar::cuda

// cudnnDropoutDescriptor_t, and the random generator in its `states`.
#pragma once

#include <cudnn.h>

#include <cstdint>

struct cudnnDropoutStruct {
  static constexpr const char* kTypeName = "cudnnDropoutDescriptor_t";
  bool is_set = false;
  float probability = 0.0F;  // that an element is dropped
  void* states = nullptr;    // device memory of kDropoutStatesBytes; null: nothing is drawn
  unsigned long long seed = 0;
};

namespace ashlar::cudnn {

// The state of the generator in device memory, both i64: the seed, and the offset of the next draw.
// It is stored in the caller's memory only, so that a restored descriptor continues where the
// original stopped.
struct DropoutState {
  const void* seed;
  void* offset;
};
inline constexpr std::size_t kDropoutStatesBytes = 2 * sizeof(std::int64_t);

// Throws Failure for a descriptor that was never set.
const cudnnDropoutStruct& dropout_of(cudnnDropoutDescriptor_t descriptor, const char* parameter);
// Whether random numbers are drawn: not when all elements are kept or all are dropped.
bool draws(const cudnnDropoutStruct& dropout);
// Throws Failure when there are no states.
DropoutState state_of(const cudnnDropoutStruct& dropout);
// Advances the offset by `elements` draws (one Philox counter yields four), in stream order.
void advance(cudnnHandle_t handle, const cudnnDropoutStruct& dropout, std::int64_t elements);

}  // namespace ashlar::cudnn

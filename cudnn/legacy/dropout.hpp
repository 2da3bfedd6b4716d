// Dropout descriptors, and the random numbers that their `states` stand for.
#pragma once

#include <cudnn.h>

#include <cstdint>

struct cudnnDropoutStruct {
  static constexpr const char* kTypeName = "cudnnDropoutDescriptor_t";
  bool is_set = false;
  float probability = 0.0F;  // that an element is dropped
  void* states = nullptr;    // device memory of kDropoutStatesBytes; null: nothing is ever drawn
  unsigned long long seed = 0;
};

namespace ashlar::cudnn {

// The whole state of the generator, i64 numbers in device memory: its seed, and the offset at which
// the next draw begins. It lives in the caller's memory alone, so that a descriptor restored from
// it goes on where another one stopped.
struct DropoutState {
  const void* seed;
  const void* offset;
};
inline constexpr std::size_t kDropoutStatesBytes = 2 * sizeof(std::int64_t);

// Throws Failure for a descriptor that was never set.
const cudnnDropoutStruct& dropout_of(cudnnDropoutDescriptor_t descriptor, const char* parameter);
// Whether elements are decided by drawing: not when all are kept or all dropped.
bool draws(const cudnnDropoutStruct& dropout);
// Throws Failure when there are no states.
DropoutState state_of(const cudnnDropoutStruct& dropout);
// Moves the offset past `elements` draws (four share one), after the work that is in the handle's
// stream.
void advance(cudnnHandle_t handle, const cudnnDropoutStruct& dropout, std::int64_t elements);

}  // namespace ashlar::cudnn

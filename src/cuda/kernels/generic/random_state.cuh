#include "lib/philox.cuh"

// Seed and offset: tensors of one element where they are given, else attributes.
template <int kRank>
struct Origin {
  Index at[kRank > 0 ? kRank : 1] = {};
};
__device__ inline uint64 seed_of(const Args& args) {
  if (kHas_seed_tensor) return (uint64)integer_seed_tensor(args, Origin<kRank_seed_tensor>().at);
  return (uint64)args.seed;
}
__device__ inline uint64 offset_of(const Args& args) {
  if (kHas_offset_tensor)
    return (uint64)integer_offset_tensor(args, Origin<kRank_offset_tensor>().at);
  return (uint64)args.offset;
}

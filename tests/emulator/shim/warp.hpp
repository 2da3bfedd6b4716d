// Synchronisation and communication of threads: barriers, warp collectives, atomics. Threads only
// switch inside the calls below, so that atomics are plain code.
#pragma once

#include "language.hpp"

namespace {

inline void __syncthreads() { emulated_state.barrier(0, 0, 0, true); }
inline int __syncthreads_count(int predicate) {
  return emulated_state.barrier(0, 0, predicate, true);
}
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return __syncthreads_count(!predicate) == 0; }
// For the PTX wrappers of bar.sync and bar.arrive.
inline void emulated_barrier_sync(int id, int threads) {
  emulated_state.barrier(id, threads, 0, true);
}
inline void emulated_barrier_arrive(int id, int threads) {
  emulated_state.barrier(id, threads, 0, false);
}
// For the PTX wrappers of barrier.cluster and mapa.
inline void emulated_cluster_barrier() { emulated_cluster_state.barrier(); }
template <class T>
inline T* emulated_cluster_address(T* address, unsigned rank) {
  return (T*)emulated_cluster_state.address((void*)address, rank);
}
inline void emulated_yield() { emulated_state.yield(); }
inline void __nanosleep(unsigned) { emulated_state.yield(); }

inline void __syncwarp(unsigned mask = ~0u) {
  emulated_state.warp_sync(emulated::WarpOp::sync, mask, 0);
}
inline unsigned __activemask() { return emulated_state.live_lanes(); }

template <class T>
inline unsigned long long emulated_pack(T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "lanes exchange 4 or 8 bytes");
  unsigned long long word = 0;
  __builtin_memcpy(&word, &value, sizeof(T));
  return word;
}
template <class T>
inline T emulated_unpack(unsigned long long word) {
  T value;
  __builtin_memcpy(&value, &word, sizeof(T));
  return value;
}
// The value of lane `from`; all ones (poison) for a lane that does not participate.
template <class T>
inline T emulated_shuffle(unsigned mask, T value, int from, bool inside) {
  const emulated::WarpValues exchanged =
      emulated_state.warp_sync(emulated::WarpOp::shuffle, mask, emulated_pack(value));
  if (!inside) return value;
  return emulated_unpack<T>(exchanged.lanes >> from & 1 ? exchanged.values[from] : ~0ull);
}
template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const int first = emulated_state.lane & ~(width - 1);
  return emulated_shuffle(mask, value, first + (source & (width - 1)), true);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32) {
  const int from = emulated_state.lane ^ with;
  return emulated_shuffle(mask, value, from, from <= (emulated_state.lane | (width - 1)));
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int from = emulated_state.lane - (int)by;
  return emulated_shuffle(mask, value, from & 31, from >= (emulated_state.lane & ~(width - 1)));
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int from = emulated_state.lane + (int)by;
  return emulated_shuffle(mask, value, from & 31, from <= (emulated_state.lane | (width - 1)));
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const emulated::WarpValues exchanged =
      emulated_state.warp_sync(emulated::WarpOp::vote, mask, predicate != 0);
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (exchanged.lanes >> lane & 1) ballot |= (unsigned)exchanged.values[lane] << lane;
  return ballot;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value) {
  const unsigned long long own = emulated_pack(value);
  const emulated::WarpValues exchanged =
      emulated_state.warp_sync(emulated::WarpOp::match, mask, own);
  unsigned equal = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (exchanged.lanes >> lane & 1) equal |= (unsigned)(exchanged.values[lane] == own) << lane;
  return equal;
}
template <class T, class Join>
inline T emulated_reduce(unsigned mask, T value, Join join) {
  const emulated::WarpValues exchanged =
      emulated_state.warp_sync(emulated::WarpOp::reduce, mask, emulated_pack(value));
  bool is_first = true;
  T all = value;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(exchanged.lanes >> lane & 1)) continue;
    const T next = emulated_unpack<T>(exchanged.values[lane]);
    all = is_first ? next : join(all, next);
    is_first = false;
  }
  return all;
}
#define EMULATED_REDUCE(type)                                                          \
  inline type __reduce_add_sync(unsigned mask, type value) {                           \
    return emulated_reduce(mask, value, [](type a, type b) { return a + b; });         \
  }                                                                                    \
  inline type __reduce_min_sync(unsigned mask, type value) {                           \
    return emulated_reduce(mask, value, [](type a, type b) { return a < b ? a : b; }); \
  }                                                                                    \
  inline type __reduce_max_sync(unsigned mask, type value) {                           \
    return emulated_reduce(mask, value, [](type a, type b) { return a > b ? a : b; }); \
  }
EMULATED_REDUCE(int)
EMULATED_REDUCE(unsigned)
#undef EMULATED_REDUCE
inline unsigned __reduce_and_sync(unsigned mask, unsigned value) {
  return emulated_reduce(mask, value, [](unsigned a, unsigned b) { return a & b; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  return emulated_reduce(mask, value, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
  return emulated_reduce(mask, value, [](unsigned a, unsigned b) { return a ^ b; });
}

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __trap() { emulated_state.trap("__trap()"); }

#define EMULATED_ATOMIC(name, type, result)     \
  inline type name(type* address, type value) { \
    const type old = *address;                  \
    *address = result;                          \
    return old;                                 \
  }
#define EMULATED_ATOMICS(type)                                     \
  EMULATED_ATOMIC(atomicAdd, type, old + value)                    \
  EMULATED_ATOMIC(atomicExch, type, value)                         \
  EMULATED_ATOMIC(atomicMin, type, value < old ? value : old)      \
  EMULATED_ATOMIC(atomicMax, type, value > old ? value : old)      \
  EMULATED_ATOMIC(atomicAnd, type, old& value)                     \
  EMULATED_ATOMIC(atomicOr, type, old | value)                     \
  EMULATED_ATOMIC(atomicXor, type, old ^ value)                    \
  inline type atomicCAS(type* address, type compare, type value) { \
    const type old = *address;                                     \
    if (old == compare) *address = value;                          \
    return old;                                                    \
  }
EMULATED_ATOMICS(int)
EMULATED_ATOMICS(unsigned)
EMULATED_ATOMICS(unsigned long long)
EMULATED_ATOMIC(atomicMin, long long, value < old ? value : old)
EMULATED_ATOMIC(atomicMax, long long, value > old ? value : old)
EMULATED_ATOMIC(atomicSub, int, old - value)
EMULATED_ATOMIC(atomicSub, unsigned, old - value)
EMULATED_ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
EMULATED_ATOMIC(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)
EMULATED_ATOMIC(atomicAdd, float, old + value)
EMULATED_ATOMIC(atomicAdd, double, old + value)
EMULATED_ATOMIC(atomicExch, float, value)
#undef EMULATED_ATOMICS
#undef EMULATED_ATOMIC

template <class T>
inline T __ldg(const T* address) {
  return *address;
}
template <class T>
inline T __ldcg(const T* address) {
  return *address;
}
template <class T>
inline T __ldcs(const T* address) {
  return *address;
}
template <class T>
inline void __stcs(T* address, T value) {
  *address = value;
}
template <class T>
inline void __stcg(T* address, T value) {
  *address = value;
}

}  // namespace

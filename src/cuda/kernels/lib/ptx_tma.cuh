// TMA (sm_90 on): bulk and tensor copies between global and shared memory.
#pragma once

#include "lib/ptx_mbarrier.cuh"

// TMA descriptor (CUtensorMap), encoded by the driver from launch/tensor_map.hpp. Always a
// __grid_constant__ kernel argument.
struct alignas(64) TensorMap {
  uint64 words[16];
};

// Bulk copy of contiguous bytes: size and both addresses are multiples of 16; the bytes count on
// `barrier`. Called by all lanes of a warp with equal arguments; one elected lane issues it.
__device__ inline void load_bytes(void* to, const void* from, int bytes, Mbarrier* barrier) {
#if !defined(__CUDA_ARCH__)
  if (threadIdx.x % 32 == 0) emulated_bulk_load(to, from, (unsigned)bytes, barrier);
#elif __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred one;\n"
      "elect.sync _|one, 0xffffffff;\n"
      "@one cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];\n}" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
#endif
}

// TMA load of a box of a tensor of kRank axes with origin `at` (contiguous axis first); its bytes
// count on `barrier`. Elements outside of the tensor are zero.
template <int kRank>
__device__ inline void load_box(void* to, const TensorMap& map, Mbarrier* barrier,
                                const int (&at)[kRank]) {
#if !defined(__CUDA_ARCH__)
  emulated_tma_load(to, &map, barrier, at, kRank, nullptr, 0);
#elif __CUDA_ARCH__ >= 900
  const uint32 box = shared_address(to), signal = shared_address(barrier);
  if constexpr (kRank == 2)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(box),
        "l"(&map), "r"(signal), "r"(at[0]), "r"(at[1])
        : "memory");
  if constexpr (kRank == 3)
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(box),
        "l"(&map), "r"(signal), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
  if constexpr (kRank == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(box),
        "l"(&map), "r"(signal), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  if constexpr (kRank == 5)
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(box),
        "l"(&map), "r"(signal), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
#endif
}

// The same with multicast to every CTA in the mask `blocks`: to the same offset of its shared
// memory, and its own mbarrier counts the bytes.
template <int kRank>
__device__ inline void load_box_multicast(void* to, const TensorMap& map, Mbarrier* barrier,
                                          const int (&at)[kRank], uint16 blocks) {
#if !defined(__CUDA_ARCH__)
  emulated_tma_load(to, &map, barrier, at, kRank, nullptr, blocks);
#elif __CUDA_ARCH__ >= 900
  const uint32 box = shared_address(to), signal = shared_address(barrier);
  if constexpr (kRank == 2)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(box),
        "l"(&map), "r"(signal), "h"(blocks), "r"(at[0]), "r"(at[1])
        : "memory");
  if constexpr (kRank == 3)
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(box),
        "l"(&map), "r"(signal), "h"(blocks), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
  if constexpr (kRank == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(box),
        "l"(&map), "r"(signal), "h"(blocks), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
#endif
}

// Prefetches a box to L2.
template <int kRank>
__device__ inline void prefetch_box(const TensorMap& map, const int (&at)[kRank]) {
  static_assert(kRank == 2);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(&map),
               "r"(at[0]), "r"(at[1])
               : "memory");
#endif
}

// TMA im2col load of pixels of an image with kRank - 2 spatial axes: `at` is {channel, w, (h, (d,))
// n} of the first, `tap` the im2col offsets {w, (h, (d))}. The following pixels are traversed row
// by row within the map's bounding box, through all images.
template <int kRank>
__device__ inline void load_im2col(void* to, const TensorMap& map, Mbarrier* barrier,
                                   const int (&at)[kRank], const int (&tap)[kRank - 2]) {
#if !defined(__CUDA_ARCH__)
  uint16 offsets[kRank - 2];
  for (int axis = 0; axis < kRank - 2; ++axis) offsets[axis] = (uint16)tap[axis];
  emulated_tma_load(to, &map, barrier, at, kRank, offsets, 0);
#elif __CUDA_ARCH__ >= 900
  const uint32 box = shared_address(to), signal = shared_address(barrier);
  if constexpr (kRank == 3)
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2], {%6};" ::"r"(box),
        "l"(&map), "r"(signal), "r"(at[0]), "r"(at[1]), "r"(at[2]), "h"((uint16)tap[0])
        : "memory");
  if constexpr (kRank == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(box),
        "l"(&map), "r"(signal), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]),
        "h"((uint16)tap[0]), "h"((uint16)tap[1])
        : "memory");
  if constexpr (kRank == 5)
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};" ::"r"(box),
        "l"(&map), "r"(signal), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]),
        "h"((uint16)tap[0]), "h"((uint16)tap[1]), "h"((uint16)tap[2])
        : "memory");
#endif
}

// TMA store of a box from shared memory; elements outside of the tensor are skipped. Preceding
// writes to shared memory need fence_proxy_async() first.
template <int kRank>
__device__ inline void store_box(const TensorMap& map, const void* from, const int (&at)[kRank]) {
#if !defined(__CUDA_ARCH__)
  emulated_tma_store(&map, from, at, kRank);
#elif __CUDA_ARCH__ >= 900
  const uint32 box = shared_address(from);
  if constexpr (kRank == 2)
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
        "r"(box), "r"(at[0]), "r"(at[1])
        : "memory");
  if constexpr (kRank == 3)
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(
            &map),
        "r"(box), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
  if constexpr (kRank == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
            &map),
        "r"(box), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
#endif
}
__device__ inline void tma_store_commit_group() {
#if !defined(__CUDA_ARCH__)
  emulated_bulk_commit();
#elif __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}
// Waits until TMA has read the shared memory of all but the last kPending groups of stores.
template <int kPending>
__device__ inline void tma_store_wait_read() {
#if !defined(__CUDA_ARCH__)
  emulated_bulk_wait(kPending, true);
#elif __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
#endif
}

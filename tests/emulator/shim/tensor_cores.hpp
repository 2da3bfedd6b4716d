// sm_80 and sm_90a instructions for the emulator branches of the PTX wrappers: mbarriers, TMA,
// tensor cores. Each implements the instruction, and aborts the launch with a message on misuse.
#pragma once

#include "warp.hpp"

namespace {

typedef emulated::MmaType EmulatedMmaType;

// 32-bit shared-memory addresses as instructions and matrix descriptors use them. They agree with
// pointers in the bits below 1024.
inline unsigned emulated_shared_address(const void* pointer) {
  return emulated_tensor_state.shared_address(pointer);
}
inline void* emulated_shared_pointer(unsigned address) {
  return emulated_tensor_state.shared_pointer(address);
}

// --- clusters

inline unsigned emulated_cluster_rank() { return emulated_tensor_state.cluster_rank(); }
inline unsigned emulated_cluster_blocks() { return emulated_tensor_state.cluster_blocks(); }
// barrier.cluster.arrive and .wait.
inline void emulated_cluster_arrive() { emulated_tensor_state.cluster_sync(true, false); }
inline void emulated_cluster_wait() { emulated_tensor_state.cluster_sync(false, true); }

// elect.sync of a full warp: true for one lane.
inline bool emulated_elect() {
  const emulated::WarpValues exchanged = emulated_state.warp_sync(emulated::WarpOp::vote, ~0u, 0);
  return __builtin_ctz(exchanged.lanes) == emulated_state.lane;
}

// --- mbarrier: 8 bytes of shared memory, 8-byte aligned

inline void emulated_mbarrier_init(void* barrier, unsigned count) {
  emulated_tensor_state.mbarrier_init(barrier, count);
}
inline void emulated_mbarrier_invalidate(void* barrier) {
  emulated_tensor_state.mbarrier_end(barrier);
}
inline void emulated_mbarrier_arrive(void* barrier, unsigned count = 1) {
  emulated_tensor_state.mbarrier_change(barrier, -1, count, 0);
}
// mbarrier.arrive.expect_tx: expects bytes, then arrives.
inline void emulated_mbarrier_expect(void* barrier, unsigned bytes) {
  emulated_tensor_state.mbarrier_change(barrier, -1, 1, (int)bytes);
}
// mbarrier.expect_tx and .complete_tx: do not arrive.
inline void emulated_mbarrier_expect_tx(void* barrier, unsigned bytes) {
  emulated_tensor_state.mbarrier_change(barrier, -1, 0, (int)bytes);
}
inline void emulated_mbarrier_complete_tx(void* barrier, unsigned bytes) {
  emulated_tensor_state.mbarrier_change(barrier, -1, 0, -(int)bytes);
}
// The same for the corresponding mbarrier of CTA `rank` of the cluster.
inline void emulated_mbarrier_arrive_remote(void* barrier, unsigned rank, unsigned count = 1) {
  emulated_tensor_state.mbarrier_change(barrier, (int)rank, count, 0);
}
inline void emulated_mbarrier_expect_remote(void* barrier, unsigned rank, unsigned bytes) {
  emulated_tensor_state.mbarrier_change(barrier, (int)rank, 1, (int)bytes);
}
inline void emulated_mbarrier_complete_remote(void* barrier, unsigned rank, unsigned bytes) {
  emulated_tensor_state.mbarrier_change(barrier, (int)rank, 0, -(int)bytes);
}
// Waits until the phase of this parity is complete; stands for a try_wait.parity loop, without
// spinning.
inline void emulated_mbarrier_wait(void* barrier, unsigned parity) {
  emulated_tensor_state.mbarrier_wait(barrier, parity, true);
}
// One try_wait.parity or test_wait.parity; yields before it returns false.
inline bool emulated_mbarrier_try_wait(void* barrier, unsigned parity) {
  return emulated_tensor_state.mbarrier_wait(barrier, parity, false);
}

// --- copies

// cp.async.bulk.tensor from global to shared memory; null `offsets`: tiled, else im2col (rank - 2
// offsets). `coordinates`: innermost first. `multicast`: mask of CTAs of the cluster; 0: this CTA.
inline void emulated_tma_load(void* shared, const void* map, void* barrier, const int* coordinates,
                              int rank, const unsigned short* offsets = nullptr,
                              unsigned short multicast = 0) {
  emulated_tensor_state.tensor_load(shared, map, barrier, coordinates, rank, offsets, multicast);
}
inline void emulated_tma_store(const void* map, const void* shared, const int* coordinates,
                               int rank) {
  emulated_tensor_state.tensor_store(map, shared, coordinates, rank);
}
// cp.async.bulk of `bytes`; size and addresses are multiples of 16.
inline void emulated_bulk_load(void* shared, const void* global, unsigned bytes, void* barrier,
                               unsigned short multicast = 0) {
  emulated_tensor_state.bulk_load(shared, global, bytes, barrier, multicast);
}
inline void emulated_bulk_store(void* global, const void* shared, unsigned bytes) {
  emulated_tensor_state.bulk_store(global, shared, bytes);
}
inline void emulated_bulk_commit() { emulated_tensor_state.bulk_commit(); }
// Waits until all but the last `pending` groups of this thread are complete; only_read: have been
// read from shared memory.
inline void emulated_bulk_wait(int pending, bool only_read = false) {
  emulated_tensor_state.bulk_wait(pending, only_read);
}

// cp.async of 4, 8 or 16 bytes; the first `from_bytes` are read, the rest is zero-filled. Data
// arrives when the thread waits for the copy's group.
inline void emulated_copy_async(void* shared, const void* global, int bytes, int from_bytes) {
  if ((unsigned long long)shared % bytes != 0 || (unsigned long long)global % bytes != 0)
    emulated_state.trap("cp.async: an address is not a multiple of the copy size");
  if (from_bytes < 0 || from_bytes > bytes)
    emulated_state.trap("cp.async: the source size exceeds the copy size");
  emulated_tensor_state.thread_copy({shared, global, bytes, from_bytes});
}
// cp.async.commit_group and .wait_group.
inline void emulated_copy_commit() { emulated_tensor_state.thread_commit(); }
inline void emulated_copy_wait(int pending) { emulated_tensor_state.thread_wait(pending); }
// cp.async.mbarrier.arrive(.noinc): completes the copies so far immediately.
inline void emulated_copy_async_arrive(void* barrier, bool noinc) {
  emulated_copy_commit();
  emulated_copy_wait(0);
  if (noinc) emulated_mbarrier_arrive(barrier);
}

// --- tensor cores: called by all lanes of a warp

// wgmma.mma_async: d has n / 2 accumulators per thread (float, or int for s8 and u8). `keep`:
// scale-d, accumulates into D; `negate`: scale-a or scale-b is -1. MN-major operands must be 16-bit
// types.
template <class Sum>
inline void emulated_wgmma(EmulatedMmaType a_type, EmulatedMmaType b_type, Sum* d, int n,
                           unsigned long long a_matrix, unsigned long long b_matrix,
                           bool a_is_mn_major, bool b_is_mn_major, bool keep, bool negate_a = false,
                           bool negate_b = false) {
  emulated_tensor_state.multiply_warpgroup({a_type, b_type, n, a_matrix, b_matrix, nullptr,
                                            a_is_mn_major, b_is_mn_major, keep, negate_a, negate_b,
                                            d});
}
// The same with A in 4 registers of each thread.
template <class Sum>
inline void emulated_wgmma(EmulatedMmaType a_type, EmulatedMmaType b_type, Sum* d, int n,
                           const unsigned* a_registers, unsigned long long b_matrix,
                           bool b_is_mn_major, bool keep, bool negate_a = false,
                           bool negate_b = false) {
  emulated_tensor_state.multiply_warpgroup({a_type, b_type, n, 0, b_matrix, a_registers, false,
                                            b_is_mn_major, keep, negate_a, negate_b, d});
}

// wgmma.commit_group and .wait_group. wgmma executes immediately, but a copy into memory that it
// reads is an error until the warp has waited for it.
inline void emulated_wgmma_commit() { emulated_tensor_state.wgmma_commit_group(); }
inline void emulated_wgmma_wait(int pending) { emulated_tensor_state.wgmma_wait_group(pending); }

// mma.sync.m16n8kK: K is 8 or 16 for 16-bit types, 4 or 8 for tf32, 16 or 32 for 8-bit types.
// Registers in PTX order: K * bytes / 8 of A, half as many of B, 4 accumulators (float, int for s8
// and u8).
template <class Sum>
inline void emulated_mma(EmulatedMmaType a_type, EmulatedMmaType b_type, int k, Sum* d,
                         const unsigned* a, const unsigned* b, const Sum* c) {
  emulated_tensor_state.multiply_warp({a_type, b_type, 16, 8, k, d, a, b, c});
}
// mma.sync of f64: m8n8k4, m16n8k4, m16n8k8 or m16n8k16.
inline void emulated_mma_f64(int m, int k, double* d, const double* a, const double* b,
                             const double* c) {
  emulated_tensor_state.multiply_warp(
      {EmulatedMmaType::f64, EmulatedMmaType::f64, m, 8, k, d, a, b, c});
}

// ldmatrix and stmatrix of 1, 2 or 4 matrices of 8 x 8 16-bit elements: lane i holds the address of
// row i % 8 of matrix i / 8.
inline void emulated_ldmatrix(unsigned* registers, const void* row, int count,
                              bool transposed = false) {
  emulated_tensor_state.load_matrix(registers, row, count, transposed);
}
inline void emulated_stmatrix(void* row, const unsigned* registers, int count,
                              bool transposed = false) {
  emulated_tensor_state.store_matrix(row, registers, count, transposed);
}
// movmatrix.trans
inline unsigned emulated_movmatrix(unsigned word) {
  const int lane = emulated_state.lane;
  unsigned moved = 0;
  for (int half = 0; half < 2; ++half) {
    // Element (lane / 4, 2 (lane % 4) + half) of the result comes from the transposed position.
    const int row = 2 * (lane % 4) + half, column = lane / 4;
    const unsigned from = __shfl_sync(~0u, word, row * 4 + column / 2);
    moved |= (from >> 16 * (column % 2) & 0xffffu) << 16 * half;
  }
  return moved;
}

}  // namespace

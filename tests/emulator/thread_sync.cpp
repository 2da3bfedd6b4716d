// Synchronisation of emulated threads: warp collectives, named barriers, cluster barriers.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "running.hpp"

namespace emulated {

Run now;

std::string position_text(int thread) {
  const Triple& b = now.block->position;
  const Triple& d = now.launch->block;
  const auto t = static_cast<unsigned>(thread);
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), "block (%u, %u, %u), thread (%u, %u, %u)", b.x, b.y, b.z,
                t % d.x, t / d.x % d.y, t / d.x / d.y);
  return text.data();
}

void wait() {
  thread_at(now.current).fiber = now.in_fiber;
  Fiber::pause();
}

void make_ready(Block& block, int thread) {
  block.thread[static_cast<std::size_t>(thread)].barrier = -1;
  block.warps[static_cast<std::size_t>(thread / kLanes)].ready |= 1u << thread % kLanes;
}

// Releases the lanes that wait for `mask` once all live lanes of it have arrived.
void complete_warp_sync(Warp& warp, int first_thread, unsigned mask) {
  const unsigned wanted = mask & warp.live;
  if (wanted == 0 || (warp.waiting & wanted) != wanted) return;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((wanted >> lane & 1) == 0) continue;
    const auto l = static_cast<std::size_t>(lane);
    warp.values[l] = warp.given[l];
    thread_at(first_thread + lane).lanes = wanted;
  }
  warp.waiting &= ~wanted;
  warp.ready |= wanted;
}

void complete_barrier(Barrier& barrier) {
  const int wanted = barrier.wanted == 0 ? now.block->live : barrier.wanted;
  if (barrier.arrived < wanted || barrier.arrived == 0) return;
  for (const int thread : barrier.waiting) make_ready(*now.block, thread);
  barrier.result = barrier.predicates;
  barrier.arrived = barrier.predicates = 0;
  barrier.waiting.clear();
}

ClusterBarrier& cluster_barrier_of(const Block& block) {
  return now.cluster_barriers[block.index / now.launch->cluster];
}

// Completes when all live threads of the cluster have arrived.
void complete_cluster_barrier(ClusterBarrier& barrier) {
  const auto first = static_cast<std::size_t>(&barrier - now.cluster_barriers.data());
  int live = 0;
  for (unsigned rank = 0; rank < now.launch->cluster; ++rank)
    live += now.cluster[first * now.launch->cluster + rank]->live;
  if (barrier.arrivals == 0 || barrier.arrivals < live) return;
  barrier.arrivals = 0;
  ++barrier.phase;
  for (const auto& [block, thread] : barrier.waiting) make_ready(*block, thread);
  barrier.waiting.clear();
}

[[noreturn]] void stop(const std::string& reason) {
  if (now.error.empty()) now.error = reason + " in " + position_text(now.current);
  now.is_over = true;
  Fiber::pause();
  std::abort();
}

namespace {

// Blocks unless the thread has become ready in the meantime.
void wait_at_barrier(int thread) {
  Warp& warp = warp_of(thread);
  const unsigned bit = 1u << thread % kLanes;
  if (warp.ready & bit)
    warp.ready &= ~bit;
  else
    wait();
}

// True for the last lane to arrive.
bool arrive_in_warp(WarpOp purpose, unsigned mask, unsigned long long value) {
  const int self = now.current, lane = self % kLanes;
  Warp& warp = warp_of(self);
  Thread& thread = thread_at(self);
  now.yields = 0;
  if ((mask >> lane & 1) == 0) stop("a lane calls a warp collective without being in its mask");
  if (const unsigned there = warp.waiting & mask; there != 0) {
    const Thread& other = thread_at(self - lane + __builtin_ctz(there));
    if (other.mask != mask || other.purpose != purpose)
      stop("lanes of a warp call different collectives or use different masks");
  }
  thread.mask = mask;
  thread.purpose = purpose;
  warp.given[static_cast<std::size_t>(lane)] = value;
  warp.waiting |= 1u << lane;
  complete_warp_sync(warp, self - lane, mask);
  const bool is_last = (warp.ready >> lane & 1) != 0;
  wait_at_barrier(self);
  return is_last;
}

WarpValues warp_sync(WarpOp purpose, unsigned mask, unsigned long long value) {
  arrive_in_warp(purpose, mask, value);
  return {thread_at(now.current).lanes, warp_of(now.current).values.data()};
}

int barrier(int id, int threads, int predicate, bool waits) {
  if (id < 0 || id >= kBarriers) stop("the barrier id is out of range");
  const int self = now.current;
  Barrier& barrier = now.block->barriers[static_cast<std::size_t>(id)];
  now.yields = 0;
  if (barrier.arrived > 0 && barrier.wanted != threads)
    stop("threads use one barrier with different thread counts");
  barrier.wanted = threads;
  ++barrier.arrived;
  barrier.predicates += predicate != 0;
  if (waits) {
    barrier.waiting.push_back(self);
    thread_at(self).barrier = id;
  }
  complete_barrier(barrier);
  if (!waits) return 0;
  wait_at_barrier(self);
  return barrier.result;
}

void arrive_or_wait_in_cluster(bool arrives, bool waits) {
  const int self = now.current;
  Thread& thread = thread_at(self);
  ClusterBarrier& barrier = cluster_barrier_of(*now.block);
  now.yields = 0;
  if (arrives) {
    if (thread.cluster_phase == barrier.phase)
      stop("a thread arrives twice at the cluster barrier without waiting");
    thread.cluster_phase = barrier.phase;
    ++barrier.arrivals;
    complete_cluster_barrier(barrier);
  }
  if (!waits) return;
  if (thread.cluster_phase < 0)
    stop("a thread waits at the cluster barrier without having arrived");
  if (thread.cluster_phase < barrier.phase) return;
  barrier.waiting.emplace_back(now.block, self);
  thread.barrier = kClusterBarrier;
  wait();
}
void cluster_sync() { arrive_or_wait_in_cluster(true, true); }

void yield() {
  constexpr long long kMaxYields = 100'000'000;
  if (++now.yields > kMaxYields) stop("threads spin on memory that no thread changes");
  warp_of(now.current).ready |= 1u << now.current % kLanes;
  wait();
}

unsigned live_lanes() { return warp_of(now.current).live; }
[[noreturn]] void trap(const char* reason) { stop(reason); }

void* pointer_at(unsigned address) { return shared_bytes_at(address, 0); }
unsigned blocks_of_cluster() { return now.launch->cluster; }

}  // namespace

const unsigned long long* warp_sync_all(WarpOp purpose, const void* own) {
  const bool is_last = arrive_in_warp(purpose, ~0u, reinterpret_cast<std::uintptr_t>(own));
  if (thread_at(now.current).lanes != ~0u)
    stop("a warp-wide collective is called by a partial warp");
  return is_last ? warp_of(now.current).values.data() : nullptr;
}

void fill_functions(State& state, ClusterState* cluster, TensorState* tensor) {
  state.warp_sync = warp_sync;
  state.barrier = barrier;
  state.yield = yield;
  state.live_lanes = live_lanes;
  state.trap = trap;
  if (cluster != nullptr) *cluster = {.barrier = cluster_sync, .address = cluster_address};
  if (tensor == nullptr) return;
  const TensorState all{.bytes = tensor->bytes,
                        .shared_address = shared_address,
                        .shared_pointer = pointer_at,
                        .cluster_rank = rank_in_cluster,
                        .cluster_blocks = blocks_of_cluster,
                        .cluster_sync = arrive_or_wait_in_cluster,
                        .mbarrier_init = mbarrier_init,
                        .mbarrier_end = mbarrier_end,
                        .mbarrier_change = mbarrier_change,
                        .mbarrier_wait = mbarrier_wait,
                        .tensor_load = tensor_load,
                        .tensor_store = tensor_store,
                        .bulk_load = bulk_load,
                        .bulk_store = bulk_store,
                        .bulk_commit = bulk_commit,
                        .bulk_wait = bulk_wait,
                        .multiply_warpgroup = multiply_warpgroup,
                        .multiply_warp = multiply_warp,
                        .load_matrix = load_matrix,
                        .store_matrix = store_matrix,
                        .wgmma_commit_group = wgmma_commit_group,
                        .wgmma_wait_group = wgmma_wait_group,
                        .thread_copy = thread_copy,
                        .thread_commit = thread_commit,
                        .thread_wait = thread_wait};
  std::memcpy(tensor, &all, std::min<std::size_t>(tensor->bytes, sizeof all));
}

}  // namespace emulated

// State of the running launch: CTAs, threads and what they wait for. Internal to the emulator.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "block_runner.hpp"
#include "fiber.hpp"

namespace emulated {

constexpr int kLanes = 32, kMaxThreads = 1024, kBarriers = 16;
constexpr int kClusterBarrier = kBarriers;      // the cluster barrier
constexpr int kMbarrier = kClusterBarrier + 1;  // an mbarrier in shared memory

// Accumulators of a thread that a wgmma in flight writes. Until the thread waits, its registers
// hold a pattern instead.
struct AccumulatorsInFlight {
  void* registers = nullptr;
  long long group = 0;  // commit group of the last wgmma that writes them
  std::vector<std::uint32_t> results;
};
// Registers of A that a wgmma in flight reads.
struct OperandInFlight {
  const unsigned* registers;
  std::array<unsigned, 4> values;
  long long group;
};

struct Thread {
  Fiber* fiber = nullptr;  // the fiber that it is suspended on
  bool left = false;
  WarpOp purpose = WarpOp::sync;
  unsigned mask = 0;                           // lanes of the warp collective it waits for
  unsigned lanes = 0;                          // participants of its last warp collective
  int barrier = -1;                            // barrier it waits at
  long long cluster_phase = -1;                // phase of its last arrival at the cluster barrier
  unsigned mbarrier = 0, mbarrier_parity = 0;  // mbarrier address and parity it waits for
  // Outstanding cp.async copies by commit group; the last group is open.
  std::vector<std::vector<ThreadCopy>> copies;
  std::vector<AccumulatorsInFlight> in_flight;
  std::vector<OperandInFlight> operands_in_flight;
  long long wgmma_groups = 0;  // committed
};

// 128-byte lines of shared memory.
using SharedLines = std::bitset<2560>;

struct Warp {
  unsigned live = 0;     // lanes that have not exited
  unsigned ready = 0;    // runnable lanes
  unsigned waiting = 0;  // lanes waiting in a warp collective
  std::array<unsigned long long, kLanes> given, values;
  // Lines read by outstanding wgmma by commit group; the last group is open.
  std::vector<SharedLines> wgmma_groups;
};

struct Barrier {
  int arrived = 0, wanted = 0;  // 0: all live threads
  int predicates = 0, result = 0;
  std::vector<int> waiting;
};

struct Block {
  Triple position{};
  unsigned index = 0;  // index in Run::cluster
  int live = 0, unstarted_end = 0, next = 0;
  std::array<Thread, kMaxThreads> thread;
  std::array<Warp, kMaxThreads / kLanes> warps;
  std::array<Barrier, kBarriers> barriers;
  std::vector<unsigned char> memory;  // with guard zones
  unsigned char* shared = nullptr;    // dynamic shared memory within `memory`
  // Saved static shared memory while another CTA of the cluster runs.
  std::vector<unsigned char> statics;
};

struct ClusterBarrier {
  std::vector<std::pair<Block*, int>> waiting;  // threads
  int arrivals = 0;                             // arrivals of live threads
  long long phase = 0;
};

// The running launch. The CTAs of a cluster are scheduled cooperatively: each runs until all its
// threads block.
struct Run {
  const Launch* launch = nullptr;
  State* state = nullptr;
  int threads = 0;                              // per CTA
  std::vector<std::unique_ptr<Block>> cluster;  // or all CTAs of a cooperative launch
  Block* block = nullptr;                       // running CTA
  int current = -1;                             // running thread
  bool is_over = false;                         // aborted by an error
  long long yields = 0;                         // consecutive yields, to detect livelocks
  std::vector<ClusterBarrier> cluster_barriers;
  bool commits_wgmma = false;                          // the kernel commits wgmma groups
  std::vector<std::pair<Block*, int>> at_mbarriers;    // waiting threads
  std::vector<std::pair<Block*, unsigned>> mbarriers;  // addresses
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;
  Fiber* in_fiber = nullptr;
  std::string error;
};
extern Run now;

inline Warp& warp_of(int thread) {
  return now.block->warps[static_cast<std::size_t>(thread / kLanes)];
}
inline Thread& thread_at(int thread) { return now.block->thread[static_cast<std::size_t>(thread)]; }

// --- threads (thread_sync.cpp)

std::string position_text(int thread);
// Aborts the launch.
[[noreturn]] void stop(const std::string& reason);
void wait();  // blocks until the thread is made ready
// Wakes a thread of a CTA that waits at a barrier.
void make_ready(Block& block, int thread);
void complete_warp_sync(Warp& warp, int first_thread, unsigned mask);
void complete_barrier(Barrier& barrier);
ClusterBarrier& cluster_barrier_of(const Block& block);
void complete_cluster_barrier(ClusterBarrier& barrier);
// Warp-wide rendezvous. The last lane to arrive gets the pointers that all lanes passed, and does
// the work of all; the other lanes get null.
const unsigned long long* warp_sync_all(WarpOp purpose, const void* own);
void fill_functions(State& state, ClusterState* cluster, TensorState* tensor);

// --- 32-bit shared-memory addresses, the same in every CTA (shared_window.cpp)

std::size_t static_bytes();
unsigned dynamic_begin();
unsigned shared_address(const void* pointer);
// The `bytes` at a shared address of a CTA of the cluster, with bounds checks.
unsigned char* shared_bytes_at(Block& block, unsigned address, unsigned bytes);
unsigned char* shared_bytes_at(unsigned address, unsigned bytes);
Block& block_of_cluster(unsigned rank);  // must not have exited
unsigned rank_in_cluster();
void* cluster_address(void* address, unsigned rank);

// --- mbarriers (mbarriers.cpp)

void mbarrier_init(void* barrier, unsigned count);
void mbarrier_end(void* barrier);
void mbarrier_change(void* barrier, int rank, unsigned arrivals, int bytes);
// Empty, or an error message.
std::string change_mbarrier(Block& block, unsigned address, unsigned arrivals, int bytes);
bool mbarrier_wait(void* barrier, unsigned parity, bool until_complete);
// At the end of a cluster: empty, or an error message.
std::string unfinished_mbarriers();
std::string mbarrier_text(Block& block, const Thread& thread);

// --- TMA and bulk copies (tma.cpp)

void tensor_load(void* shared, const void* map, void* barrier, const int* coordinates, int rank,
                 const unsigned short* offsets, unsigned multicast);
void tensor_store(const void* map, const void* shared, const int* coordinates, int rank);
void bulk_load(void* shared, const void* global, unsigned bytes, void* barrier, unsigned multicast);
void bulk_store(void* global, const void* shared, unsigned bytes);
void bulk_commit();
void bulk_wait(int pending, bool only_read);
void clear_copies();  // called before a cluster starts
// Performs delayed copies; false where there were none.
bool complete_copies();
// Empty, or an error about copies that an exiting thread has not waited for.
std::string unfinished_copies(const Block& block, int thread);

// --- cp.async (cp_async.cpp)

void thread_copy(const ThreadCopy& copy);
void thread_commit();
void thread_wait(int pending);

// --- tensor cores (tensor_cores.cpp)

void multiply_warpgroup(const WarpgroupMma& product);
void wgmma_commit_group();
void wgmma_wait_group(int pending);
// Whether an outstanding wgmma still reads the range.
bool is_read_by_wgmma(const Block& block, unsigned address, unsigned bytes);
void multiply_warp(const WarpMma& product);
void load_matrix(unsigned* registers, const void* row, int count, bool transposed);
void store_matrix(void* row, const unsigned* registers, int count, bool transposed);

}  // namespace emulated

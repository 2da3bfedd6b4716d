// The launch that runs: its blocks, threads and what they wait for. Inside of the emulator.
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
constexpr int kClusterBarrier = kBarriers;      // of all blocks of the cluster
constexpr int kMbarrier = kClusterBarrier + 1;  // one in shared memory

struct Thread {
  Fiber* fiber = nullptr;  // where it waits
  bool left = false;
  WarpOp purpose = WarpOp::sync;
  unsigned mask = 0;                           // it waits for these lanes
  unsigned lanes = 0;                          // of its last meeting
  int barrier = -1;                            // it waits at this one
  long long cluster_phase = -1;                // in which it arrived at the cluster's barrier
  unsigned mbarrier = 0, mbarrier_parity = 0;  // where, and for what, it waits
  // Its copies that it has not waited for: group by group, the last one is open.
  std::vector<std::vector<ThreadCopy>> copies;
};

// Lines of 128 bytes of shared memory.
using SharedLines = std::bitset<2560>;

struct Warp {
  unsigned live = 0;     // have not left
  unsigned ready = 0;    // can go on
  unsigned waiting = 0;  // for a meeting
  std::array<unsigned long long, kLanes> given, values;
  // What its products read that it has not waited for: group by group, the last one is open.
  std::vector<SharedLines> wgmma_groups;
};

struct Barrier {
  int arrived = 0, wanted = 0;  // 0: all that have not left
  int predicates = 0, result = 0;
  std::vector<int> waiting;
};

struct Block {
  Triple position{};
  unsigned index = 0;  // in Run::cluster
  int live = 0, unstarted_end = 0, next = 0;
  std::array<Thread, kMaxThreads> thread;
  std::array<Warp, kMaxThreads / kLanes> warps;
  std::array<Barrier, kBarriers> barriers;
  std::vector<unsigned char> memory;  // with guards
  unsigned char* shared = nullptr;    // in it
  // The image's static shared memory while another block of the cluster runs.
  std::vector<unsigned char> statics;
};

struct ClusterBarrier {
  std::vector<std::pair<Block*, int>> waiting;  // threads
  int arrivals = 0;                             // of threads that have not left
  long long phase = 0;
};

// The one launch that runs. The blocks of a cluster take turns: one of them goes as far as it can.
struct Run {
  const Launch* launch = nullptr;
  State* state = nullptr;
  int threads = 0;                              // of a block
  std::vector<std::unique_ptr<Block>> cluster;  // or several, all blocks, if they run together
  Block* block = nullptr;                       // whose turn it is
  int current = -1;                             // its thread
  bool is_over = false;                         // something went wrong
  long long yields = 0;                         // since a thread last did something else
  std::vector<ClusterBarrier> cluster_barriers;
  bool commits_wgmma = false;                          // kernels of an older kind do not tell
  std::vector<std::pair<Block*, int>> at_mbarriers;    // threads that wait
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
// Ends the launch.
[[noreturn]] void stop(const std::string& reason);
void wait();  // until the thread is made ready
// A thread of a block that waits at a barrier goes on.
void make_ready(Block& block, int thread);
void complete_warp_sync(Warp& warp, int first_thread, unsigned mask);
void complete_barrier(Barrier& barrier);
ClusterBarrier& cluster_barrier_of(const Block& block);
void complete_cluster_barrier(ClusterBarrier& barrier);
// All lanes of the warp come with something. The last one gets the addresses of what all brought,
// and does the work of all before the others, who get null, go on.
const unsigned long long* warp_sync_all(WarpOp purpose, const void* own);
void fill_functions(State& state, ClusterState* cluster, TensorState* tensor);

// --- shared memory by addresses of 32 bits, the same in every block (shared_window.cpp)

std::size_t static_bytes();
unsigned dynamic_begin();
unsigned shared_address(const void* pointer);
// `bytes` there, in a block of the cluster.
unsigned char* shared_bytes_at(Block& block, unsigned address, unsigned bytes);
unsigned char* shared_bytes_at(unsigned address, unsigned bytes);
Block& block_of_cluster(unsigned rank);  // one that has not ended
unsigned rank_in_cluster();
void* cluster_address(void* address, unsigned rank);

// --- barriers in shared memory (mbarriers.cpp)

void mbarrier_init(void* barrier, unsigned count);
void mbarrier_end(void* barrier);
void mbarrier_change(void* barrier, int rank, unsigned arrivals, int bytes);
// Empty, or what is wrong about it.
std::string change_mbarrier(Block& block, unsigned address, unsigned arrivals, int bytes);
bool mbarrier_wait(void* barrier, unsigned parity, bool until_complete);
// At the end of a cluster: empty, or what is wrong.
std::string unfinished_mbarriers();
std::string mbarrier_text(Block& block, const Thread& thread);

// --- copies between global and shared memory (tma.cpp)

void tensor_load(void* shared, const void* map, void* barrier, const int* coordinates, int rank,
                 const unsigned short* offsets, unsigned multicast);
void tensor_store(const void* map, const void* shared, const int* coordinates, int rank);
void bulk_load(void* shared, const void* global, unsigned bytes, void* barrier, unsigned multicast);
void bulk_store(void* global, const void* shared, unsigned bytes);
void bulk_commit();
void bulk_wait(int pending, bool only_read);
void clear_copies();  // before a cluster starts
// Does what was put off; false where there was nothing.
bool complete_copies();
// Empty, or what the thread that ends has not waited for.
std::string unfinished_copies(const Block& block, int thread);

// --- a thread's own copies to shared memory (cp_async.cpp)

void thread_copy(const ThreadCopy& copy);
void thread_commit();
void thread_wait(int pending);

// --- matrices (tensor_cores.cpp)

void multiply_warpgroup(const WarpgroupMma& product);
void wgmma_commit_group();
void wgmma_wait_group(int pending);
// Whether one of them still reads there.
bool is_read_by_wgmma(const Block& block, unsigned address, unsigned bytes);
void multiply_warp(const WarpMma& product);
void load_matrix(unsigned* registers, const void* row, int count, bool transposed);
void store_matrix(void* row, const unsigned* registers, int count, bool transposed);

}  // namespace emulated

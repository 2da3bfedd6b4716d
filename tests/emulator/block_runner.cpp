#include "block_runner.hpp"

#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "fiber.hpp"
#include "options.hpp"

namespace emulated {

namespace {

constexpr int kLanes = 32, kMostThreads = 1024, kBarriers = 16;
constexpr int kClusterBarrier = kBarriers;  // of all blocks of the cluster
constexpr unsigned char kPoison = 0xff;     // a NaN in every type of float, -1 as an integer
constexpr std::size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xa7;

struct Thread {
  Fiber* fiber = nullptr;  // where it waits
  bool left = false;
  Meeting purpose = Meeting::sync;
  unsigned mask = 0;   // it waits for these lanes
  unsigned lanes = 0;  // of its last meeting
  int barrier = -1;    // it waits at this one
};

struct Warp {
  unsigned live = 0;     // have not left
  unsigned ready = 0;    // can go on
  unsigned waiting = 0;  // for a meeting
  std::array<unsigned long long, kLanes> given, values;
};

struct Barrier {
  int arrived = 0, wanted = 0;  // 0: all that have not left
  int predicates = 0, result = 0;
  std::vector<int> waiting;
};

struct Block {
  Triple position{};
  int live = 0, unstarted_end = 0, next = 0;
  std::array<Thread, kMostThreads> thread;
  std::array<Warp, kMostThreads / kLanes> warps;
  std::array<Barrier, kBarriers> barriers;
  std::vector<unsigned char> memory;  // with guards
  unsigned char* shared = nullptr;    // in it
  // The image's static shared memory while another block of the cluster runs.
  std::vector<unsigned char> statics;
};

// The one launch that runs. The blocks of a cluster take turns: one of them goes as far as it can.
struct Run {
  const Launch* launch = nullptr;
  State* state = nullptr;
  int threads = 0;  // of a block
  std::vector<std::unique_ptr<Block>> cluster;
  Block* block = nullptr;  // whose turn it is
  int current = -1;        // its thread
  bool is_over = false;    // something went wrong
  long long yields = 0;    // since a thread last did something else
  std::vector<std::pair<Block*, int>> at_cluster_barrier;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;
  Fiber* in_fiber = nullptr;
  std::string error;
};
Run now;

Warp& warp_of(int thread) { return now.block->warps[static_cast<std::size_t>(thread / kLanes)]; }
Thread& thread_at(int thread) { return now.block->thread[static_cast<std::size_t>(thread)]; }
bool goes_on() { return !now.is_over && now.block->live > 0; }
std::size_t static_bytes() {
  return static_cast<std::size_t>(now.launch->image->shared_end - now.launch->image->shared_begin);
}

void take_turn(Block* block) {
  if (now.block == block) return;
  unsigned char* statics = now.launch->image->shared_begin;
  if (now.block != nullptr) now.block->statics.assign(statics, statics + static_bytes());
  std::copy(block->statics.begin(), block->statics.end(), statics);
  now.block = block;
  now.state->block = block->position;
  now.state->shared_memory = block->shared;
}

std::string position_text(int thread) {
  const Triple& b = now.block->position;
  const Triple& d = now.launch->block;
  const auto t = static_cast<unsigned>(thread);
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), "block (%u, %u, %u), thread (%u, %u, %u)", b.x, b.y, b.z,
                t % d.x, t / d.x % d.y, t / d.x / d.y);
  return text.data();
}

void become(int thread) {
  now.current = thread;
  const auto t = static_cast<unsigned>(thread);
  const Triple& d = now.launch->block;
  now.state->thread =
      d.y == 1 && d.z == 1 ? Triple{t, 0, 0} : Triple{t % d.x, t / d.x % d.y, t / d.x / d.y};
  now.state->lane = thread % kLanes;
}

void wait() {
  const int self = now.current;
  thread_at(self).fiber = now.in_fiber;
  Fiber::pause();
}

// The lanes that wait for `mask` go on if all of them that have not left are there.
void complete_meeting(Warp& warp, int first_thread, unsigned mask) {
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
  for (const int thread : barrier.waiting) {
    thread_at(thread).barrier = -1;
    warp_of(thread).ready |= 1u << thread % kLanes;
  }
  barrier.result = barrier.predicates;
  barrier.arrived = barrier.predicates = 0;
  barrier.waiting.clear();
}

// When all threads of the cluster that have not left are there.
void complete_cluster_barrier() {
  int live = 0;
  for (const auto& block : now.cluster) live += block->live;
  if (now.at_cluster_barrier.empty() || static_cast<int>(now.at_cluster_barrier.size()) < live)
    return;
  for (const auto& [block, thread] : now.at_cluster_barrier) {
    block->thread[static_cast<std::size_t>(thread)].barrier = -1;
    block->warps[static_cast<std::size_t>(thread / kLanes)].ready |= 1u << thread % kLanes;
  }
  now.at_cluster_barrier.clear();
}

// --- what kernels call

[[noreturn]] void stop(const std::string& reason) {
  if (now.error.empty()) now.error = reason + " in " + position_text(now.current);
  now.is_over = true;
  Fiber::pause();
  std::abort();
}

Met meet(Meeting purpose, unsigned mask, unsigned long long value) {
  const int self = now.current, lane = self % kLanes;
  Warp& warp = warp_of(self);
  Thread& thread = thread_at(self);
  now.yields = 0;
  if ((mask >> lane & 1) == 0)
    stop("a lane calls a function of its warp without being in the mask");
  if (const unsigned there = warp.waiting & mask; there != 0) {
    const Thread& other = thread_at(self - lane + __builtin_ctz(there));
    if (other.mask != mask || other.purpose != purpose)
      stop("lanes of a warp wait for each other in different functions or with different masks");
  }
  thread.mask = mask;
  thread.purpose = purpose;
  warp.given[static_cast<std::size_t>(lane)] = value;
  warp.waiting |= 1u << lane;
  complete_meeting(warp, self - lane, mask);
  if (warp.ready >> lane & 1)
    warp.ready &= ~(1u << lane);  // the last to come goes on
  else
    wait();
  return {thread.lanes, warp.values.data()};
}

int barrier(int id, int threads, int predicate, bool waits) {
  if (id < 0 || id >= kBarriers) stop("a barrier that does not exist");
  const int self = now.current;
  Barrier& barrier = now.block->barriers[static_cast<std::size_t>(id)];
  now.yields = 0;
  if (barrier.arrived > 0 && barrier.wanted != threads)
    stop("threads wait at one barrier for different numbers of threads");
  barrier.wanted = threads;
  ++barrier.arrived;
  barrier.predicates += predicate != 0;
  if (waits) {
    barrier.waiting.push_back(self);
    thread_at(self).barrier = id;
  }
  complete_barrier(barrier);
  Warp& warp = warp_of(self);
  const unsigned bit = 1u << self % kLanes;
  if (!waits) return 0;
  if (warp.ready & bit)
    warp.ready &= ~bit;
  else
    wait();
  return barrier.result;
}

void cluster_barrier() {
  const int self = now.current;
  now.yields = 0;
  now.at_cluster_barrier.emplace_back(now.block, self);
  thread_at(self).barrier = kClusterBarrier;
  complete_cluster_barrier();
  Warp& warp = warp_of(self);
  const unsigned bit = 1u << self % kLanes;
  if (warp.ready & bit)
    warp.ready &= ~bit;
  else
    wait();
}

void* cluster_address(void* address, unsigned rank) {
  if (rank >= now.cluster.size()) stop("a block that the cluster does not have");
  Block* block = now.cluster[rank].get();
  auto* byte = static_cast<unsigned char*>(address);
  if (block == now.block) return byte;
  const auto offset_in = [&](const unsigned char* begin, std::size_t bytes) {
    return byte >= begin && byte < begin + bytes ? byte - begin : -1;
  };
  if (const auto at = offset_in(now.block->shared, now.launch->shared_bytes); at >= 0)
    return block->shared + at;
  const auto at = offset_in(now.launch->image->shared_begin, static_bytes());
  if (at < 0) stop("an address that is not of shared memory");
  return block->statics.data() + at;
}

void yield() {
  constexpr long long kMostYields = 100'000'000;
  if (++now.yields > kMostYields) stop("threads wait for memory that nobody changes");
  warp_of(now.current).ready |= 1u << now.current % kLanes;
  wait();
}

unsigned live_lanes() { return warp_of(now.current).live; }
[[noreturn]] void trap(const char* reason) { stop(reason); }

// --- turns

int in_order(int place, int count) { return options().reverse ? count - 1 - place : place; }

void leave(int thread) {
  Warp& warp = warp_of(thread);
  const unsigned bit = 1u << thread % kLanes;
  thread_at(thread).left = true;
  warp.live &= ~bit;
  --now.block->live;
  // Those who wait for all need not wait for this one.
  const int first = thread / kLanes * kLanes;
  for (int lane = 0; lane < kLanes && warp.waiting != 0; ++lane)
    if (warp.waiting >> lane & 1) complete_meeting(warp, first, thread_at(first + lane).mask);
  for (Barrier& barrier : now.block->barriers)
    if (barrier.arrived > 0 && barrier.wanted == 0) complete_barrier(barrier);
  complete_cluster_barrier();
}

// A fiber's work: threads that have not started, until one of them waits. When that one is done,
// those that are left.
void run_threads() {
  while (goes_on() && now.block->next < now.block->unstarted_end) {
    const int thread = in_order(now.block->next++, now.threads);
    become(thread);
    now.launch->kernel->run(now.launch->parameters.data());
    now.yields = 0;
    leave(now.current);
  }
  now.idle.push_back(now.in_fiber);
}

void resume(Fiber* fiber) {
  now.in_fiber = fiber;
  fiber->resume();
}

Fiber* idle_fiber() {
  if (now.idle.empty()) {
    now.fibers.push_back(std::make_unique<Fiber>(&run_threads));
    return now.fibers.back().get();
  }
  Fiber* fiber = now.idle.back();
  now.idle.pop_back();
  return fiber;
}

// Runs what can run in a warp.
bool run_warp(int warp_index) {
  Warp& warp = now.block->warps[static_cast<std::size_t>(warp_index)];
  bool ran = false;
  while (warp.ready != 0 && goes_on()) {
    for (int place = 0; place < kLanes && goes_on(); ++place) {
      const int lane = in_order(place, kLanes), thread = warp_index * kLanes + lane;
      if ((warp.ready >> lane & 1) == 0) continue;
      warp.ready &= ~(1u << lane);
      ran = true;
      become(thread);
      resume(thread_at(thread).fiber);
    }
    if (now.yields > 0) break;  // others first
  }
  return ran;
}

std::string deadlock_text() {
  std::string text = "the threads wait for each other:";
  int shown = 0;
  for (const auto& block : now.cluster) {
    take_turn(block.get());
    for (int thread = 0; thread < now.threads && shown < 8; ++thread) {
      const Thread& t = thread_at(thread);
      if (t.left) continue;
      ++shown;
      std::array<char, 100> mask{};
      std::snprintf(mask.data(), mask.size(), "for the lanes %08x of its warp", t.mask);
      text += "\n  " + position_text(thread) + " waits " +
              (t.barrier == kClusterBarrier ? "at the barrier of the cluster"
               : t.barrier >= 0             ? "at barrier " + std::to_string(t.barrier)
                                            : mask.data());
    }
  }
  return text;
}

// Everything as a block finds it when it starts.
void prepare(Block& block, const Triple& position) {
  const Launch& launch = *now.launch;
  block.position = position;
  block.statics.assign(static_bytes(), kPoison);
  // The first byte is a multiple of 128, between two guards.
  block.memory.assign(launch.shared_bytes + 2 * kGuardBytes + 128, kGuard);
  block.shared = block.memory.data() + kGuardBytes;
  block.shared += (128 - reinterpret_cast<std::uintptr_t>(block.shared) % 128) % 128;
  std::fill_n(block.shared, launch.shared_bytes, kPoison);
  block.live = now.threads;
  block.next = block.unstarted_end = 0;
  for (int t = 0; t < now.threads; ++t) block.thread[static_cast<std::size_t>(t)] = {};
  for (int first = 0; first < now.threads; first += kLanes) {
    const int lanes = std::min(now.threads - first, kLanes);
    Warp& warp = block.warps[static_cast<std::size_t>(first / kLanes)];
    warp.live = lanes == kLanes ? ~0u : (1u << lanes) - 1;
    warp.ready = warp.waiting = 0;
  }
  for (Barrier& barrier : block.barriers) barrier = {};
}

void run_cluster() {
  const int warps = (now.threads + kLanes - 1) / kLanes;
  const int blocks = static_cast<int>(now.cluster.size());
  const auto turn_of = [&](int place) {
    take_turn(now.cluster[static_cast<std::size_t>(in_order(place, blocks))].get());
  };
  // Each warp in turn starts its threads and goes as far as it can.
  for (int b = 0; b < blocks; ++b) {
    turn_of(b);
    for (int place = 0; place < warps && goes_on(); ++place) {
      const int w = in_order(place, warps);
      now.block->unstarted_end += std::min(now.threads - w * kLanes, kLanes);
      while (goes_on() && now.block->next < now.block->unstarted_end) resume(idle_fiber());
      run_warp(w);
    }
  }
  const auto is_live = [](const auto& block) { return block->live > 0; };
  while (!now.is_over && std::any_of(now.cluster.begin(), now.cluster.end(), is_live)) {
    bool ran = false;
    for (int b = 0; b < blocks; ++b) {
      turn_of(b);
      for (int place = 0; place < warps && goes_on(); ++place)
        ran = run_warp(in_order(place, warps)) || ran;
    }
    if (!ran && !now.is_over) {
      now.error = deadlock_text();
      now.is_over = true;
    }
  }
}

// Tells which thread it was, and where, before the process ends.
void report_fault(int signal, siginfo_t* info, void*) {
  std::array<char, 64> address{};
  std::snprintf(address.data(), address.size(), " %p", info->si_addr);
  const std::string text = "emulated CUDA: kernel '" + now.launch->name +
                           "': " + (signal == SIGFPE ? "division by zero" : "illegal address") +
                           address.data() + " in " + position_text(now.current) + "\n";
  std::fputs(text.c_str(), stderr);
  std::array<void*, 32> frames{};
  backtrace_symbols_fd(frames.data(), backtrace(frames.data(), frames.size()), STDERR_FILENO);
  std::signal(signal, SIG_DFL);
}

class FaultReport {
 public:
  FaultReport() {
    // The thread's own stack may be what it ran out of.
    static std::array<char, 64 << 10> stack;
    const stack_t ours = {.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
    sigaltstack(&ours, &stack_before_);
    struct sigaction action = {};
    action.sa_sigaction = report_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before_[i]);
  }
  ~FaultReport() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
    sigaltstack(&stack_before_, nullptr);
  }
  FaultReport(const FaultReport&) = delete;
  FaultReport& operator=(const FaultReport&) = delete;

 private:
  static constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE};
  std::array<struct sigaction, kSignals.size()> before_{};
  stack_t stack_before_{};
};

}  // namespace

std::string run_launch(const Launch& launch) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const FaultReport report;
  now.launch = &launch;
  now.state = launch.image->state;
  now.threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  now.error.clear();
  now.is_over = false;
  now.block = nullptr;
  now.at_cluster_barrier.clear();
  // Blocks that wait for each other are like a cluster.
  const unsigned long long blocks =
      static_cast<unsigned long long>(launch.grid.x) * launch.grid.y * launch.grid.z;
  const unsigned long long at_once = launch.together ? blocks : launch.cluster;
  now.cluster.resize(at_once);
  for (auto& block : now.cluster)
    if (!block) block = std::make_unique<Block>();
  *now.state = {.thread = {},
                .block = {},
                .block_dim = launch.block,
                .grid_dim = launch.grid,
                .lane = 0,
                .shared_memory = nullptr,
                .clock = 0,
                .meet = meet,
                .barrier = barrier,
                .yield = yield,
                .live_lanes = live_lanes,
                .trap = trap};
  if (launch.cluster_state != nullptr)
    *launch.cluster_state = {.barrier = cluster_barrier, .address = cluster_address};
  const unsigned long long clusters = blocks / at_once;
  for (unsigned long long place = 0; place < clusters && now.error.empty(); ++place) {
    const unsigned long long first = (options().reverse ? clusters - 1 - place : place) * at_once;
    now.block = nullptr;
    for (unsigned long long rank = 0; rank < at_once; ++rank) {
      const unsigned long long b = first + rank;
      prepare(*now.cluster[rank], {static_cast<unsigned>(b % launch.grid.x),
                                   static_cast<unsigned>(b / launch.grid.x % launch.grid.y),
                                   static_cast<unsigned>(b / launch.grid.x / launch.grid.y)});
    }
    run_cluster();
    for (const auto& block : now.cluster)
      for (std::size_t i = 0; i < kGuardBytes && now.error.empty(); ++i)
        if (block->shared[-1 - static_cast<std::ptrdiff_t>(i)] != kGuard ||
            block->shared[launch.shared_bytes + i] != kGuard) {
          take_turn(block.get());
          now.error = "shared memory of " + std::to_string(launch.shared_bytes) +
                      " bytes was written outside in " + position_text(0);
        }
  }
  if (!now.error.empty()) {
    // Fibers that wait are not needed any more; their stacks are.
    now.idle.clear();
    now.fibers.clear();
  }
  return now.error;
}

}  // namespace emulated

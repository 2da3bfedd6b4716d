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
constexpr unsigned char kPoison = 0xff;  // a NaN in every type of float, -1 as an integer
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

// A block on its way.
struct Block {
  Triple place{};
  int live = 0, unstarted_end = 0, next = 0;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::array<Barrier, kBarriers> barriers;
  std::vector<unsigned char> memory;         // dynamic shared memory between its guards
  unsigned char* shared = nullptr;           // its first byte, a multiple of 128
  std::vector<unsigned char> static_shared;  // while other blocks run
};

// The one launch that runs.
struct Run {
  const Launch* launch = nullptr;
  State* state = nullptr;
  Block* block = nullptr;
  int threads = 0;
  int current = -1;
  long long yields = 0;  // since a thread last did something else
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;
  Fiber* in_fiber = nullptr;
  std::string error;
};
Run now;

Warp& warp_of(int thread) { return now.block->warps[static_cast<std::size_t>(thread / kLanes)]; }
Thread& thread_at(int thread) { return now.block->threads[static_cast<std::size_t>(thread)]; }

std::string position_text(int thread) {
  const Triple& b = now.block->place;
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

// --- what kernels call

[[noreturn]] void stop(const std::string& reason) {
  if (now.error.empty()) now.error = reason + " in " + position_text(now.current);
  now.block->live = -1;  // the launch is over
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
}

// A fiber's work: threads that have not started, until one of them waits. When that one is done,
// those that are left.
void run_threads() {
  while (now.block->live > 0 && now.block->next < now.block->unstarted_end) {
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
  while (warp.ready != 0 && now.block->live > 0) {
    for (int place = 0; place < kLanes && now.block->live > 0; ++place) {
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
  for (int thread = 0; thread < now.threads && shown < 8; ++thread) {
    const Thread& t = thread_at(thread);
    if (t.left) continue;
    ++shown;
    std::array<char, 100> mask{};
    std::snprintf(mask.data(), mask.size(), "for the lanes %08x of its warp", t.mask);
    text += "\n  " + position_text(thread) + " waits " +
            (t.barrier >= 0 ? "at barrier " + std::to_string(t.barrier) : mask.data());
  }
  return text;
}

// A block that nothing of has run yet.
void prepare_block(Block& block, Triple place) {
  const Launch& launch = *now.launch;
  block.place = place;
  block.live = now.threads;
  block.next = block.unstarted_end = 0;
  block.threads.assign(static_cast<std::size_t>(now.threads), {});
  const int warps = (now.threads + kLanes - 1) / kLanes;
  block.warps.assign(static_cast<std::size_t>(warps), {});
  for (int w = 0; w < warps; ++w) {
    const int lanes = std::min(now.threads - w * kLanes, kLanes);
    block.warps[static_cast<std::size_t>(w)].live = lanes == kLanes ? ~0u : (1u << lanes) - 1;
  }
  for (Barrier& barrier : block.barriers) barrier = {};
  block.memory.assign(launch.shared_bytes + 2 * kGuardBytes + 128, kGuard);
  block.shared = block.memory.data() + kGuardBytes;
  block.shared += (128 - reinterpret_cast<std::uintptr_t>(block.shared) % 128) % 128;
  if (launch.shared_bytes > 0) std::memset(block.shared, kPoison, launch.shared_bytes);
  block.static_shared.assign(
      static_cast<std::size_t>(launch.image->shared_end - launch.image->shared_begin), kPoison);
}

// Each warp in turn starts its threads and goes as far as it can.
void start_warps(int warps) {
  Block& block = *now.block;
  for (int place = 0; place < warps && block.live > 0; ++place) {
    const int w = in_order(place, warps);
    block.unstarted_end += std::min(now.threads - w * kLanes, kLanes);
    while (block.live > 0 && block.next < block.unstarted_end) resume(idle_fiber());
    run_warp(w);
  }
}

// Runs a block until it is done or, in a launch whose blocks wait for each other, until nothing of
// it goes on but loops that wait for memory.
void run_block(Block& block) {
  const Image& image = *now.launch->image;
  now.block = &block;
  now.state->block = block.place;
  now.state->shared_memory = block.shared;
  std::copy(block.static_shared.begin(), block.static_shared.end(), image.shared_begin);
  const int warps = (now.threads + kLanes - 1) / kLanes;
  if (block.next == 0) start_warps(warps);
  bool waits = false;
  while (block.live > 0 && !waits) {
    bool ran = false;
    for (int place = 0; place < warps && block.live > 0; ++place)
      ran = run_warp(in_order(place, warps)) || ran;
    if (!ran && block.live > 0) {
      now.error = deadlock_text();
      block.live = -1;
    }
    waits = now.launch->together && now.yields > 0;
  }
  std::copy(image.shared_begin, image.shared_end, block.static_shared.begin());
  const unsigned bytes = now.launch->shared_bytes;
  for (std::size_t i = 0; i < kGuardBytes && now.error.empty(); ++i)
    if (block.shared[-1 - static_cast<std::ptrdiff_t>(i)] != kGuard ||
        block.shared[bytes + i] != kGuard)
      now.error = "shared memory of " + std::to_string(bytes) + " bytes was written outside in " +
                  position_text(0);
}

// Blocks one after another, or all of them in turns.
void run_blocks() {
  const Launch& launch = *now.launch;
  const auto count = static_cast<unsigned long long>(launch.grid.x) * launch.grid.y * launch.grid.z;
  const auto place_of = [&](unsigned long long turn) {
    const unsigned long long b = options().reverse ? count - 1 - turn : turn;
    return Triple{static_cast<unsigned>(b % launch.grid.x),
                  static_cast<unsigned>(b / launch.grid.x % launch.grid.y),
                  static_cast<unsigned>(b / launch.grid.x / launch.grid.y)};
  };
  if (!launch.together) {
    static Block block;  // its memory is used again
    for (unsigned long long turn = 0; turn < count && now.error.empty(); ++turn) {
      prepare_block(block, place_of(turn));
      run_block(block);
    }
    return;
  }
  std::vector<Block> blocks(count);
  for (unsigned long long turn = 0; turn < count; ++turn)
    prepare_block(blocks[turn], place_of(turn));
  bool left = true;
  while (left && now.error.empty()) {
    left = false;
    for (Block& block : blocks) {
      if (block.live > 0 && now.error.empty()) run_block(block);
      left = left || block.live > 0;
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
  run_blocks();
  if (!now.error.empty()) {
    // Fibers that wait are not needed any more; their stacks are.
    now.idle.clear();
    now.fibers.clear();
  }
  return now.error;
}

}  // namespace emulated

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

#include "options.hpp"
#include "running.hpp"

namespace emulated {

namespace {

constexpr unsigned char kPoison = 0xff;  // NaN in every floating-point type, -1 as an integer
constexpr std::size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xa7;
constexpr std::size_t kSharedAlignment = 1024;  // 32-bit addresses and pointers are equal modulo
                                                // this

bool goes_on() { return !now.is_over && now.block->live > 0; }

void switch_to_block(Block* block) {
  if (now.block == block) return;
  unsigned char* statics = now.launch->image->shared_begin;
  if (now.block != nullptr) now.block->statics.assign(statics, statics + static_bytes());
  std::copy(block->statics.begin(), block->statics.end(), statics);
  now.block = block;
  now.state->block = block->position;
  now.state->shared_memory = block->shared;
}

void become(int thread) {
  now.current = thread;
  const auto t = static_cast<unsigned>(thread);
  const Triple& d = now.launch->block;
  now.state->thread =
      d.y == 1 && d.z == 1 ? Triple{t, 0, 0} : Triple{t % d.x, t / d.x % d.y, t / d.x / d.y};
  now.state->lane = thread % kLanes;
}

// --- scheduling

int in_order(int place, int count) { return options().reverse ? count - 1 - place : place; }

void leave(int thread) {
  Warp& warp = warp_of(thread);
  const unsigned bit = 1u << thread % kLanes;
  if (const std::string reason = unfinished_copies(*now.block, thread); !reason.empty())
    stop(reason);
  ClusterBarrier& of_cluster = cluster_barrier_of(*now.block);
  if (thread_at(thread).cluster_phase == of_cluster.phase) --of_cluster.arrivals;
  thread_at(thread).left = true;
  warp.live &= ~bit;
  --now.block->live;
  // Barriers over all live threads no longer wait for this one.
  const int first = thread / kLanes * kLanes;
  for (int lane = 0; lane < kLanes && warp.waiting != 0; ++lane)
    if (warp.waiting >> lane & 1) complete_warp_sync(warp, first, thread_at(first + lane).mask);
  for (Barrier& barrier : now.block->barriers)
    if (barrier.arrived > 0 && barrier.wanted == 0) complete_barrier(barrier);
  complete_cluster_barrier(of_cluster);
}

// Body of a fiber: runs threads that have not started until one of them blocks. After that thread
// finishes, runs the remaining ones.
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

// Runs the ready lanes of a warp.
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
    if (now.yields > 0) break;  // let other warps run first
  }
  return ran;
}

std::string deadlock_text() {
  std::string text = "deadlock, all threads wait:";
  int shown = 0;
  for (const auto& block : now.cluster) {
    switch_to_block(block.get());
    for (int thread = 0; thread < now.threads && shown < 8; ++thread) {
      const Thread& t = thread_at(thread);
      if (t.left) continue;
      ++shown;
      std::array<char, 100> mask{};
      std::snprintf(mask.data(), mask.size(), "for lanes %08x of its warp", t.mask);
      text += "\n  " + position_text(thread) + " waits " +
              (t.barrier == kMbarrier         ? mbarrier_text(*block, t)
               : t.barrier == kClusterBarrier ? "at the cluster barrier"
               : t.barrier >= 0               ? "at barrier " + std::to_string(t.barrier)
                                              : mask.data());
    }
  }
  return text;
}

// Initial state of a CTA.
void prepare(Block& block, const Triple& position) {
  const Launch& launch = *now.launch;
  block.position = position;
  block.statics.assign(static_bytes(), kPoison);
  // Shared memory between two guard zones.
  block.memory.assign(launch.shared_bytes + 2 * kGuardBytes + kSharedAlignment, kGuard);
  block.shared = block.memory.data() + kGuardBytes;
  block.shared +=
      (dynamic_begin() - reinterpret_cast<std::uintptr_t>(block.shared)) % kSharedAlignment;
  std::fill_n(block.shared, launch.shared_bytes, kPoison);
  block.live = now.threads;
  block.next = block.unstarted_end = 0;
  for (int t = 0; t < now.threads; ++t) block.thread[static_cast<std::size_t>(t)] = {};
  for (int first = 0; first < now.threads; first += kLanes) {
    const int lanes = std::min(now.threads - first, kLanes);
    Warp& warp = block.warps[static_cast<std::size_t>(first / kLanes)];
    warp.live = lanes == kLanes ? ~0u : (1u << lanes) - 1;
    warp.ready = warp.waiting = 0;
    warp.wgmma_groups.clear();
  }
  for (Barrier& barrier : block.barriers) barrier = {};
}

void run_cluster() {
  const int warps = (now.threads + kLanes - 1) / kLanes;
  const int blocks = static_cast<int>(now.cluster.size());
  const auto switch_to = [&](int place) {
    switch_to_block(now.cluster[static_cast<std::size_t>(in_order(place, blocks))].get());
  };
  // Each warp starts its threads and runs until all of them block.
  for (int b = 0; b < blocks; ++b) {
    switch_to(b);
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
      switch_to(b);
      for (int place = 0; place < warps && goes_on(); ++place)
        ran = run_warp(in_order(place, warps)) || ran;
    }
    if (!ran && !now.is_over && !complete_copies()) {
      now.error = deadlock_text();
      now.is_over = true;
    }
  }
}

// Prints the faulting thread and a backtrace before the process ends.
void report_fault(int signal, siginfo_t* info, void*) {
  std::array<char, 64> address{};
  std::snprintf(address.data(), address.size(), " %p", info->si_addr);
  const std::string text = "emulated CUDA: kernel '" + now.launch->name + "': " +
                           (signal == SIGFPE   ? "division by zero"
                            : signal == SIGILL ? "misaligned address"
                                               : "illegal address") +
                           address.data() + " in " + position_text(now.current) + "\n";
  std::fputs(text.c_str(), stderr);
  std::array<void*, 32> frames{};
  backtrace_symbols_fd(frames.data(), backtrace(frames.data(), frames.size()), STDERR_FILENO);
  std::signal(signal, SIG_DFL);
}

class FaultReport {
 public:
  FaultReport() {
    // The fault may be a stack overflow: use an alternate signal stack.
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
  static constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
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
  now.commits_wgmma = false;
  // The CTAs of a cooperative launch run concurrently, like a cluster.
  const unsigned long long blocks =
      static_cast<unsigned long long>(launch.grid.x) * launch.grid.y * launch.grid.z;
  const unsigned long long at_once = launch.cooperative ? blocks : launch.cluster;
  now.cluster.resize(at_once);
  for (auto& block : now.cluster)
    if (!block) block = std::make_unique<Block>();
  *now.state = {.thread = {},
                .block = {},
                .block_dim = launch.block,
                .grid_dim = launch.grid,
                .lane = 0,
                .shared_memory = nullptr,
                .clock = 0};
  fill_functions(*now.state, launch.cluster_state, launch.tensor_state);
  const unsigned long long clusters = blocks / at_once;
  for (unsigned long long place = 0; place < clusters && now.error.empty(); ++place) {
    const unsigned long long first = (options().reverse ? clusters - 1 - place : place) * at_once;
    now.block = nullptr;
    now.at_mbarriers.clear();
    now.mbarriers.clear();
    now.cluster_barriers.assign(at_once / launch.cluster, {});
    clear_copies();
    for (unsigned long long rank = 0; rank < at_once; ++rank) {
      const unsigned long long b = first + rank;
      now.cluster[rank]->index = static_cast<unsigned>(rank);
      prepare(*now.cluster[rank], {static_cast<unsigned>(b % launch.grid.x),
                                   static_cast<unsigned>(b / launch.grid.x % launch.grid.y),
                                   static_cast<unsigned>(b / launch.grid.x / launch.grid.y)});
    }
    run_cluster();
    if (now.error.empty()) complete_copies();
    if (now.error.empty()) now.error = unfinished_mbarriers();
    for (const auto& block : now.cluster)
      for (std::size_t i = 0; i < kGuardBytes && now.error.empty(); ++i)
        if (block->shared[-1 - static_cast<std::ptrdiff_t>(i)] != kGuard ||
            block->shared[launch.shared_bytes + i] != kGuard) {
          switch_to_block(block.get());
          now.error = "shared memory of " + std::to_string(launch.shared_bytes) +
                      " bytes was overrun in " + position_text(0);
        }
  }
  if (!now.error.empty()) {
    // Drops blocked fibers; their stacks stay allocated.
    now.idle.clear();
    now.fibers.clear();
  }
  return now.error;
}

}  // namespace emulated

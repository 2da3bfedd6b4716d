// Emulated mbarrier: 8 bytes that hold, from the lowest bit, the pending transaction bytes (21
// bits, signed), the pending arrivals (20), the arrival count of a phase (20), the phase parity,
// and a two-bit mark that detects uninitialised barriers.
#include <algorithm>
#include <cstring>

#include "options.hpp"
#include "running.hpp"

namespace emulated {

namespace {

constexpr unsigned kMaxArrivals = (1u << 20) - 1;
constexpr int kMaxBytes = (1 << 20) - 1;
constexpr std::uint64_t kMark = 2;

struct State8 {
  int bytes;
  unsigned pending, arrivals, parity;
};

bool read(const unsigned char* at, State8& state) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  state = {.bytes = static_cast<int>(static_cast<std::int64_t>(word << 43) >> 43),
           .pending = static_cast<unsigned>(word >> 21) & kMaxArrivals,
           .arrivals = static_cast<unsigned>(word >> 41) & kMaxArrivals,
           .parity = static_cast<unsigned>(word >> 61) & 1};
  return word >> 62 == kMark;
}
void write(unsigned char* at, const State8& state) {
  const std::uint64_t word =
      (static_cast<std::uint64_t>(state.bytes) & 0x1fffffu) | std::uint64_t{state.pending} << 21 |
      std::uint64_t{state.arrivals} << 41 | std::uint64_t{state.parity} << 61 | kMark << 62;
  std::memcpy(at, &word, sizeof word);
}

unsigned checked_address(const void* barrier) {
  const unsigned address = shared_address(barrier);
  if (address % 8 != 0) stop("an mbarrier address is not a multiple of 8");
  return address;
}

void wake(Block& block, unsigned address, unsigned parity) {
  const auto goes_on = [&](const std::pair<Block*, int>& waiting) {
    const Thread& thread = waiting.first->thread[static_cast<std::size_t>(waiting.second)];
    if (waiting.first != &block || thread.mbarrier != address || thread.mbarrier_parity != parity)
      return false;
    make_ready(block, waiting.second);
    return true;
  };
  now.at_mbarriers.erase(std::remove_if(now.at_mbarriers.begin(), now.at_mbarriers.end(), goes_on),
                         now.at_mbarriers.end());
}

}  // namespace

std::string change_mbarrier(Block& block, unsigned address, unsigned arrivals, int bytes) {
  unsigned char* at = shared_bytes_at(block, address, 8);
  State8 state{};
  if (!read(at, state)) return "an mbarrier that was not initialised is used";
  if (arrivals > state.pending)
    return "more arrivals at an mbarrier than it expects (" + std::to_string(state.arrivals) + ")";
  state.bytes += bytes;
  state.pending -= arrivals;
  if (state.bytes > kMaxBytes || state.bytes < -kMaxBytes)
    return "the transaction count of an mbarrier overflows";
  if (state.pending == 0 && state.bytes < 0)
    return "more bytes complete at an mbarrier than expect_tx announced (" +
           std::to_string(-state.bytes) + " more)";
  const unsigned parity = state.parity;
  const bool is_complete = state.pending == 0 && state.bytes == 0;
  if (is_complete) {
    state.pending = state.arrivals;
    state.parity ^= 1;
  }
  write(at, state);
  if (is_complete) wake(block, address, parity);
  return {};
}

void mbarrier_init(void* barrier, unsigned count) {
  if (count == 0 || count > kMaxArrivals) stop("mbarrier.init: the arrival count is out of range");
  const unsigned address = checked_address(barrier);
  write(shared_bytes_at(address, 8), {0, count, count, 0});
  now.mbarriers.emplace_back(now.block, address);
}

void mbarrier_end(void* barrier) {
  std::memset(shared_bytes_at(checked_address(barrier), 8), 0, 8);
}

void mbarrier_change(void* barrier, int rank, unsigned arrivals, int bytes) {
  now.yields = 0;
  Block& block = rank < 0 ? *now.block : block_of_cluster(static_cast<unsigned>(rank));
  const std::string error = change_mbarrier(block, checked_address(barrier), arrivals, bytes);
  if (!error.empty()) stop(error);
  // Threads that waited go on first: what this thread does behind its arrival is too late for them.
  if (!options().reverse && bytes == 0) now.state->yield();
}

// A phase is complete when the barrier has moved to the next one, which has the other parity.
bool mbarrier_wait(void* barrier, unsigned parity, bool until_complete) {
  const unsigned address = checked_address(barrier);
  State8 state{};
  if (!read(shared_bytes_at(address, 8), state))
    stop("a thread waits at an mbarrier that was not initialised");
  if (parity > 1) stop("mbarrier wait: the phase parity is neither 0 nor 1");
  if (state.parity != parity) return true;
  if (!until_complete) {
    complete_copies();
    now.state->yield();
    read(shared_bytes_at(address, 8), state);
    return state.parity != parity;
  }
  Thread& thread = thread_at(now.current);
  thread.barrier = kMbarrier;
  thread.mbarrier = address;
  thread.mbarrier_parity = parity;
  now.at_mbarriers.emplace_back(now.block, now.current);
  wait();
  return true;
}

std::string unfinished_mbarriers() {
  for (const auto& [block, address] : now.mbarriers) {
    State8 state{};
    if (read(shared_bytes_at(*block, address, 8), state) && state.bytes != 0)
      return "the CTA exits while an mbarrier awaits " + std::to_string(state.bytes) +
             " bytes: copies are missing, or there are too many";
  }
  return {};
}

std::string mbarrier_text(Block& block, const Thread& thread) {
  State8 state{};
  read(shared_bytes_at(block, thread.mbarrier, 8), state);
  const unsigned dynamic = dynamic_begin();
  return "for the phase of parity " + std::to_string(thread.mbarrier_parity) +
         " of the mbarrier at byte " +
         (thread.mbarrier >= dynamic ? std::to_string(thread.mbarrier - dynamic) + " of dynamic"
                                     : std::to_string(thread.mbarrier) + " of") +
         " shared memory, which awaits " + std::to_string(state.pending) + " of " +
         std::to_string(state.arrivals) + " arrivals and " + std::to_string(state.bytes) + " bytes";
}

}  // namespace emulated

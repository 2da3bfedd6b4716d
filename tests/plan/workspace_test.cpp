// Workspace layout, scratch layout and arenas.
#include "plan/workspace.hpp"
#include "api/backends.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "plan/arena.hpp"
#include "plan/kernel.hpp"

namespace ashlar {
namespace {

TEST(Workspace, BuffersWithDisjointLifetimesShareMemory) {
  std::vector<Buffer> buffers = {{.bytes = 128, .first_step = 0, .last_step = 1},
                                 {.bytes = 128, .first_step = 2, .last_step = 3},
                                 {.bytes = 64, .first_step = 1, .last_step = 2}};
  EXPECT_EQ(lay_out(buffers), 192);
  EXPECT_EQ(buffers[0].offset, buffers[1].offset);
}

TEST(Workspace, LiveBuffersNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Buffer> buffers(1 + random() % 30);
    for (Buffer& buffer : buffers) {
      buffer.bytes = static_cast<std::int64_t>(random() % 1000);
      buffer.first_step = static_cast<int>(random() % 10);
      buffer.last_step = buffer.first_step + static_cast<int>(random() % 5);
    }
    const std::int64_t total = lay_out(buffers);
    for (const Buffer& a : buffers) {
      EXPECT_EQ(a.offset % kWorkspaceAlignment, 0);
      EXPECT_LE(a.offset + a.bytes, total);
      for (const Buffer& b : buffers) {
        if (&a == &b || a.last_step < b.first_step || b.last_step < a.first_step) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
      }
    }
  }
}

// A training graph keeps every activation until its backward pass.
TEST(Workspace, LongLivedBuffersAreLaidOutQuickly) {
  constexpr int kLayers = 3000;
  std::vector<Buffer> buffers;
  for (int layer = 0; layer < kLayers; ++layer)
    buffers.push_back(
        {.bytes = 64 + layer % 7 * 64, .first_step = layer, .last_step = 2 * kLayers - layer - 1});
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t total = lay_out(buffers);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::int64_t bytes = 0;
  for (const Buffer& buffer : buffers) bytes += buffer.bytes;
  EXPECT_EQ(total, bytes) << "all are live in the middle";
  EXPECT_LT(took.count(), 2.0) << "a hundredth of a second, plus what other processes take";
}

TEST(Workspace, ScratchLayoutSpreadsForGuards) {
  ScratchLayout scratch_layout;
  const int a = scratch_layout.add("a", 100), b = scratch_layout.add("b", 1);
  EXPECT_EQ(scratch_layout.reservations()[static_cast<std::size_t>(b)].offset, 128);
  scratch_layout.spread(kGuardBytes);
  EXPECT_EQ(scratch_layout.reservations()[static_cast<std::size_t>(a)].offset, 64);
  EXPECT_EQ(scratch_layout.reservations()[static_cast<std::size_t>(b)].offset, 64 + 128 + 64 + 64);
  EXPECT_EQ(scratch_layout.total_bytes(), 64 + 128 + 64 + 64 + 64 + 64);
}

TEST(Arena, EveryRunGetsItsOwnSlot) {
  Arena arena(backend_for(DeviceKind::cpu), DeviceProps{}, 1000);
  std::set<std::byte*> slots;
  const Arena::Lease a(arena, nullptr), b(arena, nullptr), c(arena, nullptr);
  for (const Arena::Lease* lease : {&a, &b, &c}) slots.insert(lease->memory());
  EXPECT_EQ(slots.size(), 3u);
}

TEST(Arena, WaitsWhenAllSlotsAreInUse) {
  Arena arena(backend_for(DeviceKind::cpu), DeviceProps{}, 64);
  std::atomic<int> done{0};
  {
    std::vector<std::unique_ptr<Arena::Lease>> leases;
    for (int i = 0; i < backend_for(DeviceKind::cpu).owned_slots(); ++i)
      leases.push_back(std::make_unique<Arena::Lease>(arena, nullptr));
    std::thread waiting([&] {
      const Arena::Lease lease(arena, nullptr);
      done = 1;
    });
    EXPECT_EQ(done.load(), 0);
    leases.pop_back();
    waiting.join();
  }
  EXPECT_EQ(done.load(), 1);
}

}  // namespace
}  // namespace ashlar

// Thread teams and the work queue.
#include "cpu/team.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "cpu/work_queue.hpp"

namespace ashlar::cpu {
namespace {

// In every round each thread reads what all threads wrote in the previous round.
TEST(Team, RoundsSeeEachOther) {
  constexpr int kThreads = 4, kRounds = 500;
  std::vector<int> rounds[2] = {std::vector<int>(kThreads, 0), std::vector<int>(kThreads, 0)};
  std::vector<int> wrong(kThreads, 0);
  int size = 0;
  TeamBarrier barrier;
  parallel_team(kThreads, [&](int thread, int team) {
    if (thread == 0) size = team;
    for (int round = 1; round <= kRounds; ++round) {
      const auto own = static_cast<std::size_t>(thread);
      rounds[round % 2][own] = round;
      barrier.wait(team);
      for (int other = 0; other < team; ++other)
        wrong[own] += rounds[round % 2][static_cast<std::size_t>(other)] != round;
    }
  });
  ASSERT_GE(size, 1);
  for (int thread = 0; thread < size; ++thread)
    EXPECT_EQ(wrong[static_cast<std::size_t>(thread)], 0) << "thread " << thread;
}

TEST(Team, OneThreadDoesNotWait) {
  TeamBarrier barrier;
  int calls = 0;
  parallel_team(1, [&](int thread, int team) {
    EXPECT_EQ(thread, 0);
    barrier.wait(team);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

TEST(WorkQueue, EveryItemOnce) {
  std::vector<std::atomic<int>> taken(1000);
  for_each_item(1000, 3, [&](std::int64_t item, int thread) {
    EXPECT_LT(thread, 3);
    taken[static_cast<std::size_t>(item)].fetch_add(1);
  });
  for (const std::atomic<int>& count : taken) EXPECT_EQ(count.load(), 1);
}

}  // namespace
}  // namespace ashlar::cpu

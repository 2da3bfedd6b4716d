// Replays recorded calls of real programs: every call returns the recorded status, and every
// executed plan matches the oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "cudnn/replay/player.hpp"
#include "cudnn/replay/recording.hpp"
#include "support/test_device.hpp"

namespace {

using namespace ashlar;

// FLOP limit for the largest operation of an execution that is compared.
double max_flops() { return std::getenv("ASHLAR_TEST_LONG") != nullptr ? 1e8 : 1e7; }

std::string test_name(const testing::TestParamInfo<std::filesystem::path>& info) {
  std::string name = info.param.stem().string();
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return name;
}

// Batch norm over two GPUs. NVIDIA's library runs it; ours refuses it (docs/cudnn.md).
bool uses_peer_statistics(const replay::Recording& recording) {
  return recording.name.ends_with("SGBN_Add_Relu_Graph");
}

class Replay : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Replay, ReturnsTheRecordedStatuses) {
  const auto start = std::chrono::steady_clock::now();
  const replay::Recording recording = replay::read_recording(GetParam(), max_flops());
  replay::Player player(recording, support::test_device());
  const replay::Outcome outcome = player.play();
  if (uses_peer_statistics(recording)) {
    ASSERT_FALSE(outcome.failures.empty());
    EXPECT_THAT(outcome.failures[0],
                testing::HasSubstr("statistics across GPUs are not supported"));
    return;
  }
  for (const std::string& failure : outcome.failures) ADD_FAILURE() << failure;
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::cout << "replay " << recording.name << ": " << (outcome.failures.empty() ? "pass" : "FAIL")
            << ", " << outcome.calls << " calls, " << outcome.executions << " executions, "
            << outcome.compared << " compared, worst error / bound " << outcome.worst
            << ", shapes / " << recording.divisor << ", " << time.count() << " s\n";
}

TEST(ReplayFolder, HasRecordings) {
  if (replay::recordings().empty())
    GTEST_SKIP() << "no recordings: ASHLAR_REPLAY names a folder of them";
}

INSTANTIATE_TEST_SUITE_P(Recordings, Replay, testing::ValuesIn(replay::recordings()), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Replay);

}  // namespace

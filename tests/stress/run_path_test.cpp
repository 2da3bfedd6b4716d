// Running a plan allocates nothing, locks nothing and reads no environment.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "stress/hooks.hpp"
#include "stress/sample_graphs.hpp"
#include "support/problem.hpp"

namespace ashlar::stress {
namespace {

using support::GuardedBlock;

constexpr int kWarmUps = 5;  // the first runs start the thread team
constexpr int kRuns = 100;

Counts count_runs(const Graph& graph, const CompileOptions& options, int runs) {
  const Plan plan = compile(graph, Device::cpu(), options);
  support::BoundMemory memory(graph);
  support::fill_inputs(memory, 1);
  GuardedBlock workspace(static_cast<std::size_t>(plan.workspace_size()));
  Binding binding = plan.binding();
  for (TensorId id : plan.bound_tensors()) binding.set(graph.tensor(id).name, memory.data(id));
  for (int i = 0; i < kWarmUps; ++i) plan.run(binding, workspace.data());
  const Counting counting;
  for (int i = 0; i < runs; ++i) plan.run(binding, workspace.data());
  return counting.counts();
}

void expect_quiet(const CompileOptions& options, int runs = kRuns) {
  for (const Graph& graph : sample_graphs()) {
    if (!options.fuse && graph.name() == "sequences") continue;  // takes too long
    const Counts counts = count_runs(graph, options, runs);
    const std::string which =
        fmt::format("{} in {}", graph.name(), to_string(graph.tensors()[0].dtype));
    EXPECT_EQ(counts.allocations, 0) << which;
    EXPECT_EQ(counts.locks, 0) << which;
    EXPECT_EQ(counts.environment_reads, 0) << which;
  }
}

TEST(RunPath, FusedIsQuiet) { expect_quiet({}); }
TEST(RunPath, WithoutWorkspaceIsQuiet) { expect_quiet({.workspace_limit = 0}); }
TEST(RunPath, UnfusedIsQuiet) { expect_quiet({.fuse = false}); }
TEST(RunPath, GuardedIsQuiet) { expect_quiet({.guard = true}, 10); }
TEST(RunPath, ReferenceIsQuiet) { expect_quiet({.reference_only = true}, 1); }

// Checks the hooks: ones that count nothing would pass every test above.
TEST(Hooks, SeeWhatTheyAreFor) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  Counts counts;
  {
    const Counting counting;
    void* volatile memory = ::operator new(100);
    ::operator delete(memory);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    const char* volatile value = std::getenv("ASHLAR_LOG");
    static_cast<void>(value);
    counts = counting.counts();
  }
  EXPECT_EQ(counts.allocations, 1);
  EXPECT_EQ(counts.locks, 1);
  EXPECT_EQ(counts.environment_reads, 1);
  if (!counts_malloc()) return;
  const Counting counting;
  void* volatile memory = std::malloc(10);
  std::free(memory);
  EXPECT_EQ(counting.counts().allocations, 1);
}

}  // namespace
}  // namespace ashlar::stress

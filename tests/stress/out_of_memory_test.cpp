// Allocation failures at any point give an exception, without leaks or corruption.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ashlar/plan.hpp>

#include "stress/hooks.hpp"
#include "stress/sample_graphs.hpp"

namespace ashlar::stress {
namespace {

constexpr std::int64_t kMaxPlaces = 400;

// Makes each allocation of `work` fail in turn (evenly sampled if there are many), checks that it
// ends in a catchable exception, and calls `after` each time. Returns the number of failures tried.
template <class Work, class After>
std::int64_t fail_everywhere(Failing failing, const Work& work, const After& after) {
  std::int64_t total = 0;
  {
    const Counting counting;
    work();
    total = counting.counts().allocations;
  }
  const std::int64_t step = std::max<std::int64_t>(1, total / kMaxPlaces);
  std::int64_t tried = 0;
  for (std::int64_t number = 1; number <= total; number += step) {
    bool finished = false, happened = false;
    {
      const FailingAllocation failure(number, failing);
      try {
        work();
        finished = true;
      } catch (const std::bad_alloc&) {
      } catch (const Error&) {
      }
      happened = failure.happened();
    }
    after();
    if (finished && !happened) break;  // fewer allocations than counted: some came from elsewhere
    // Standard algorithms may fall back to less memory, so that a single failure can go unnoticed.
    if (failing == Failing::from_then_on) {
      EXPECT_FALSE(finished) << "allocation " << number;
    }
    ++tried;
  }
  return tried;
}

class OutOfMemory : public testing::TestWithParam<Failing> {};

TEST_P(OutOfMemory, BuildingAGraph) {
  EXPECT_GT(fail_everywhere(
                GetParam(), [] { training_step(); }, [] {}),
            100);
}

// A failed operation leaves the graph unchanged, and succeeds afterwards.
TEST_P(OutOfMemory, OperationsChangeNothingWhenTheyFail) {
  Graph g("half");
  const Value x = g.input("x", {2, 3, 8, 8}, f32), w = g.input("w", {4, 3, 3, 3}, f32);
  const Value y = g.conv(x, w);
  const std::string before = g.to_json();
  const std::string text = g.to_text();
  const auto unchanged = [&] {
    ASSERT_EQ(g.to_json(), before);
    ASSERT_EQ(g.to_text(), text);
  };
  // Each addition must not succeed on the same graph, so it is tried on clones.
  const std::vector<std::function<void(Graph&)>> additions = {
      [](Graph& graph) {
        graph.input("more_with_a_long_name", {1, 2, 3}, f16);
      },
      [](Graph& graph) { graph.constant(1.0); },
      [&](Graph& graph) { relu(graph.value(y.id())); },
      [&](Graph& graph) { graph.output("an_output_of_the_graph", graph.value(y.id())); },
      [&](Graph& graph) { graph.output("a_copied_output", graph.value(x.id())); },
      [&](Graph& graph) {
        graph.conv(graph.value(x.id()), graph.value(w.id()), {}, {.layout = channels_last});
      },
      [&](Graph& graph) { graph.norm(graph.value(y.id()), {.mode = NormMode::instance}); },
      [&](Graph& graph) {
        graph.concat(std::array{graph.value(y.id()), graph.value(y.id())}, 1);
      },
  };
  std::int64_t tried = 0;
  for (const auto& add : additions) {
    std::int64_t total = 0;
    {
      Graph copy = g.clone();
      const Counting counting;
      add(copy);
      total = counting.counts().allocations;
    }
    for (std::int64_t number = 1; number <= total; ++number) {
      Graph victim = g.clone();
      bool failed = false;
      {
        const FailingAllocation failure(number, GetParam());
        try {
          add(victim);
        } catch (const std::bad_alloc&) {
          failed = true;
        } catch (const Error&) {
          failed = true;
        }
      }
      if (!failed) continue;
      ++tried;
      ASSERT_EQ(victim.to_json(), before) << "allocation " << number;
      ASSERT_EQ(victim.tensors().size(), g.tensors().size()) << "allocation " << number;
      add(victim);
      ASSERT_NE(victim.to_json(), before);
    }
    unchanged();
  }
  EXPECT_GT(tried, 50);
}

TEST_P(OutOfMemory, Compiling) {
  for (const Graph& graph : sample_graphs()) {
    const std::string before = graph.to_json();
    const Device device = Device::cpu();
    const auto tried = fail_everywhere(
        GetParam(), [&] { compile(graph, device); },
        [&] { ASSERT_EQ(graph.nodes().size(), graph.clone().nodes().size()); });
    EXPECT_GT(tried, 100) << graph.name();
    EXPECT_EQ(graph.to_json(), before);
  }
}

// JSON is not tested: the destructor of nlohmann documents allocates and terminates if it cannot.
TEST_P(OutOfMemory, Explaining) {
  const Plan plan = compile(training_step(), Device::cpu());
  EXPECT_GT(fail_everywhere(
                GetParam(), [&] { plan.explain(); }, [] {}),
            20);
}

INSTANTIATE_TEST_SUITE_P(Stress, OutOfMemory, testing::Values(Failing::once, Failing::from_then_on),
                         [](const auto& parameter) {
                           return parameter.param == Failing::once ? "Once" : "FromThenOn";
                         });

}  // namespace
}  // namespace ashlar::stress

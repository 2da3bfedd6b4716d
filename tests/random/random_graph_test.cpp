// Thousands of random graphs, compiled in several ways, against the oracle.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <span>
#include <stdexcept>

#include "graph/op_traits.hpp"
#include "random/graph_maker.hpp"
#include "random/shrink.hpp"
#include "support/problem.hpp"

namespace ashlar::random_graphs {
namespace {

using support::Fill;
using support::Problem;

constexpr std::uint64_t kShards = 16;
// Half of the graphs are those of fixed seeds, half of seeds that are new in every run.
constexpr std::uint64_t kGraphsPerShard = 1250;      // by default: 20,000 graphs
constexpr std::uint64_t kGraphsPerShardLong = 5000;  // when ASHLAR_TEST_LONG is set
constexpr std::uint64_t kGraphsPerShardGpu = 24;     // on a GPU: every graph compiles its kernels
constexpr std::uint64_t kGraphsPerShardShort =
    8;  // when ASHLAR_TEST_SHORT is set, for slow machines
constexpr std::uint64_t kFirstSeed = 20240;

// The first of the new seeds: ASHLAR_TEST_SEED=N repeats those of a run that printed N.
std::uint64_t first_new_seed() {
  const char* text = std::getenv("ASHLAR_TEST_SEED");
  if (text == nullptr) return 1'000'000 + std::random_device()() % 2'000'000'000;
  char* end = nullptr;
  const std::uint64_t seed = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0' || seed > 2'100'000'000)
    throw std::invalid_argument("ASHLAR_TEST_SEED is not a number up to 2100000000");
  return seed;
}

// ASHLAR_TEST_SEEDS=FIRST[:COUNT]: the shards test the graphs of these seeds instead; COUNT is 1
// when it is not given. A seed of a failure message reproduces its graph.
struct SeedRange {
  std::uint64_t first = 0, count = 0;
};
SeedRange requested_seeds() {
  const char* text = std::getenv("ASHLAR_TEST_SEEDS");
  if (text == nullptr) return {};
  char* end = nullptr;
  SeedRange range{std::strtoull(text, &end, 10), 1};
  if (*end == ':') range.count = std::strtoull(end + 1, &end, 10);
  if (*end != '\0') throw std::invalid_argument("ASHLAR_TEST_SEEDS is not FIRST[:COUNT]");
  return range;
}

struct Trial {
  std::string label;
  CompileOptions options;
  bool saved = false;  // through JSON and back
};

std::vector<Trial> trials(std::uint64_t seed) {
  std::vector<Trial> result = {{"fused", {}, false}};
  switch (seed % 7) {
    case 0: result.push_back({"not fused", {.fuse = false}, false}); break;
    case 1: result.push_back({"no workspace", {.workspace_limit = 0}, false}); break;
    case 2: result.push_back({"deterministic", {.deterministic = true}, false}); break;
    case 3: result.push_back({"saved and loaded", {}, true}); break;
    case 4: result.push_back({"guarded", {.guard = true}, false}); break;
    case 5: result.push_back({"recomputed", {.recompute = Recompute::all}, false}); break;
    default: result.push_back({"reference only", {.reference_only = true}, false}); break;
  }
  return result;
}

bool is_multi_head_attention(const Op& op) {
  return std::visit(
      []<class OpType>(const OpType&) {
        return std::is_base_of_v<MultiHeadAttentionAttributes, OpType>;
      },
      op);
}

// Sometimes NaN and infinities; not with operations whose expansion multiplies masked values by a
// weight of zero: multi-head attention, and on a GPU attention.
Fill fill_for(const Graph& graph, std::uint64_t seed) {
  const bool on_gpu = support::test_device().props().kind == DeviceKind::cuda;
  for (const Node& node : graph.nodes())
    if (is_multi_head_attention(node.op) ||
        (on_gpu && std::holds_alternative<AttentionForward>(node.op)))
      return Fill::plain;
  return seed % 5 == 0 ? Fill::special : Fill::plain;
}

// A crash must name its graph, too.
volatile std::sig_atomic_t current_seed = 0;
extern "C" void report_crash(int signal) {
  char text[80];
  const int length = std::snprintf(text, sizeof text, "crashed on the graph of seed %d\n",
                                   static_cast<int>(current_seed));
  [[maybe_unused]] const auto written =
      write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Tally {
  std::int64_t elements = 0, compared = 0;
};

std::string check(const Graph& graph, const Trial& trial, std::uint64_t seed, Tally* tally) {
  try {
    CompileOptions options = trial.options;
    if (options.engine.empty()) options.engine = support::tested_engine();
    Plan plan = compile(graph, support::test_device(), options);
    if (plan.workspace_size() > trial.options.workspace_limit) return "workspace past its limit";
    if (trial.options.deterministic && !plan.notes().deterministic) return "not deterministic";
    if (trial.saved) plan = Plan::from_json(plan.to_json());
    Problem problem(graph, seed, fill_for(graph, seed));
    const std::string wrong = problem.run(plan);
    if (tally) {
      tally->elements += problem.elements();
      tally->compared += problem.compared();
    }
    return wrong.empty() ? wrong : fmt::format("{}\n{}", wrong, plan.explain());
  } catch (const std::exception& error) {
    return fmt::format("threw: {}", error.what());
  }
}

// What the trials of a graph find; a failure is reported with the shrunk graph. Returns whether the
// graph agrees with the oracle in all trials.
bool check_graph(const Graph& graph, std::uint64_t seed, Tally* tally) {
  current_seed = static_cast<std::sig_atomic_t>(seed);
  for (const Trial& trial : trials(seed)) {
    const std::string wrong = check(graph, trial, seed, tally);
    if (wrong.empty()) continue;
    const Graph small = shrink(graph, [&](const Graph& candidate) {
      return !check(candidate, trial, seed, nullptr).empty();
    });
    ADD_FAILURE() << "seed " << seed << ", " << trial.label << ": " << wrong
                  << "\nshrunk: " << check(small, trial, seed, nullptr) << "\n"
                  << small.to_json();
    return false;
  }
  return true;
}

bool check_seed(std::uint64_t seed, Tally* tally,
                std::map<std::string_view, int>* operations = nullptr) {
  current_seed = static_cast<std::sig_atomic_t>(seed);
  Graph graph("empty");
  try {
    graph = GraphMaker(seed).make();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "seed " << seed << ": the builder threw: " << error.what();
    return false;
  }
  if (operations)
    for (const Node& node : graph.nodes()) ++(*operations)[traits_of(node.op).name];
  return check_graph(graph, seed, tally);
}

class RandomGraphs : public testing::TestWithParam<int> {};

TEST_P(RandomGraphs, AgreeWithTheOracle) {
  const bool is_short = support::short_tests();
  const bool on_gpu = support::test_device().props().kind == DeviceKind::cuda;
  const SeedRange requested = requested_seeds();
  const bool is_requested = requested.count > 0;
  const auto shard = static_cast<std::uint64_t>(GetParam());
  const std::uint64_t first = is_requested ? requested.first : kFirstSeed;
  // On a GPU, and on an emulated one, kernels of the same graphs come from the cache.
  const bool has_new = !is_requested && !on_gpu;
  const std::uint64_t first_new = has_new ? first_new_seed() : first;
  const std::uint64_t count = is_requested ? (requested.count + kShards - 1 - shard) / kShards
                              : is_short   ? kGraphsPerShardShort
                              : std::getenv("ASHLAR_TEST_LONG") ? kGraphsPerShardLong
                              : on_gpu                          ? kGraphsPerShardGpu
                                                                : kGraphsPerShard;
  for (int signal : {SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL}) std::signal(signal, report_crash);
  Tally tally;
  std::map<std::string_view, int> operations;
  int failures = 0;
  constexpr int kMaxShown = 5;
  if (has_new)
    fmt::print("new seeds from {}: ASHLAR_TEST_SEED={} repeats them\n", first_new, first_new);
  for (std::uint64_t i = 0; i < count && failures < kMaxShown; ++i) {
    const bool is_new = has_new && i >= count / 2;
    const std::uint64_t number = is_new ? i - count / 2 : i;
    const std::uint64_t seed = (is_new ? first_new : first) + number * kShards + shard;
    if (!check_seed(seed, &tally, &operations)) ++failures;
  }
  const double share = tally.elements == 0 ? 1.0
                                           : static_cast<double>(tally.compared) /
                                                 static_cast<double>(tally.elements);
  fmt::print(
      "summary: {} random graphs from seeds {} and {} in steps of {}, {} mismatches; {:.1f}% of {} "
      "elements compared\n",
      count, first + shard, first_new + shard, kShards, failures, 100 * share, tally.elements);
  if (is_requested) return;
  EXPECT_GT(share, 0.6) << "most elements have no bound: nothing was tested";
  for (const OpTraits& traits : op_table()) {
    if (is_short || on_gpu) break;
    EXPECT_GT(operations[traits.name], 0) << "no graph has a " << traits.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Shard, RandomGraphs, testing::Range(0, static_cast<int>(kShards)));

// Graphs of seeds that once disagreed with the oracle or read outside a tensor, stored in
// tests/random/found because GraphMaker has changed since.
constexpr std::uint64_t kFoundSeeds[] = {
    31235537,    // attention read the query after the last one (found by AddressSanitizer)
    31089783,    // int8 matmul whose e4m3 result was not rounded before an f32 epilogue
    31000733,    // the same in e5m2
    31422915,    // the same, u8 operands
    31245232,    // the same, convolution
    77115470,    // multi-head attention rounded score gradients to the fp8 type of d_o
    31434510,    // oracle: dx of a norm from dscale, which overflows
    31042940,    // the same
    31298405,    // oracle: fp8 attention, no keys, a sink of NaN
    31207650,    // oracle: softmax row of -inf times NaN, recognised as attention
    31367304,    // oracle: power of a negative base whose exponent may be 0
    31079425,    // oracle: rsqrt of a zero of either sign
    31444371,    // oracle: integer average of an input with an error
    55005062,    // oracle: rounding of a small difference with a large error
    31219616,    // oracle: gelu near 0, Phi by erfc
    31134616,    // the same
    1200018020,  // oracle: norm gradient of an infinite scale, multiplied before or after the sums
    700004465,   // cross-entropy gradient in f64: exp of +inf, statistics of -inf
    700010800,   // the same: exp that overflows
};

constexpr std::uint64_t kFoundOnGpus[] = {
    910700070,  // cuda.row_norm: softmax rows whose maximum overflows when multiplied by log2(e)
    910700665,  // the same
};

TEST(FoundGraphs, AgreeWithTheOracle) {
  const bool on_gpu = support::test_device().props().kind == DeviceKind::cuda;
  for (const std::uint64_t seed : on_gpu ? std::span<const std::uint64_t>(kFoundOnGpus)
                                         : std::span<const std::uint64_t>(kFoundSeeds)) {
    const std::string path =
        fmt::format("{}/tests/random/found/seed_{}.json", ASHLAR_SOURCE_DIR, seed);
    std::ifstream file(path);
    ASSERT_TRUE(file) << path;
    const std::string json{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    check_graph(Graph::from_json(json), seed, nullptr);
  }
}

// The shrinker must find the failing node, and the message must name it.
TEST(Shrink, KeepsTheNodeThatFails) {
  const auto has_softmax = [](const Graph& graph) {
    for (const Node& node : graph.nodes())
      if (std::holds_alternative<SoftmaxForward>(node.op)) return true;
    return false;
  };
  int shrunk = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Graph graph = GraphMaker(seed).make();
    if (!has_softmax(graph)) continue;
    const Graph small = shrink(graph, has_softmax);
    EXPECT_EQ(small.nodes().size(), 1u) << small.to_json();
    ++shrunk;
  }
  EXPECT_GT(shrunk, 0);
}

TEST(GraphMaker, SameSeedSameGraph) {
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(GraphMaker(seed).make().to_json(), GraphMaker(seed).make().to_json());
}

}  // namespace
}  // namespace ashlar::random_graphs

// CompileOptions::recompute: results, workspace and what the planner says.
#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>

#include "support/problem.hpp"

namespace ashlar {
namespace {

struct TrainingStep {
  Graph graph{"step"};
  std::vector<Value> parameters;

  Value parameter(const std::string& name, const Dims& dims) {
    parameters.push_back(graph.input(name, dims, f32));
    return parameters.back();
  }
  Graph finish(Value loss) {
    graph.output("loss", loss);
    const std::vector<Value> found = gradients(graph, std::array{loss}, parameters);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::string name = parameters[i].tensor().name;
      graph.output(name + ".next", parameters[i] - found[i] * 0.1);
    }
    return std::move(graph);
  }
};

// Blocks of attention and a feed-forward network with dropout; a loss over classes.
Graph transformer(std::int64_t blocks) {
  constexpr std::int64_t kTokens = 96, kWidth = 16, kHeads = 2, kClasses = 11;
  TrainingStep step;
  Graph& g = step.graph;
  Value x = g.input("x", {1, kTokens, kWidth}, f32);
  const auto linear = [&](Value in, const std::string& name, std::int64_t from, std::int64_t to) {
    return g.matmul(in, step.parameter(name + ".w", {1, from, to})) +
           step.parameter(name + ".b", {to});
  };
  const auto norm = [&](Value in, const std::string& name) {
    return g.norm(in, {}, {.scale = step.parameter(name, {1, 1, kWidth})}).y;
  };
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::string name = "block" + std::to_string(block);
    const Value qkv = linear(norm(x, name + ".n1"), name + ".qkv", kWidth, 3 * kWidth);
    const Value heads =
        g.transpose(g.reshape(qkv, {1, kTokens, 3 * kHeads, kWidth / kHeads}), {0, 2, 1, 3});
    const auto part = [&](std::int64_t i) {
      return g.slice(heads, {0, i * kHeads, 0, 0}, {1, (i + 1) * kHeads, kTokens, kWidth / kHeads});
    };
    const Value o = g.attention(part(0), part(1), part(2), {.right_bound = 0}).first;
    x = x + g.reshape(g.transpose(o, {0, 2, 1, 3}), {1, kTokens, kWidth});
    const Value up = gelu_tanh(linear(norm(x, name + ".n2"), name + ".up", kWidth, 4 * kWidth));
    DropoutForward dropout;
    dropout.probability = 0.25;
    dropout.seed = 7 + block;
    const Value dropped = g.apply(dropout, {{DropoutForward::x, up}});
    x = x + linear(dropped, name + ".down", 4 * kWidth, kWidth);
  }
  CrossEntropyForward loss;
  loss.mean = true;
  const Value target = g.input("target", {1, kTokens, 1}, i32);
  return step.finish(
      g.apply(loss, {{CrossEntropyForward::x, linear(norm(x, "n"), "head", kWidth, kClasses)},
                     {CrossEntropyForward::target, target}}));
}

// Convolutions with batch norm, which also updates running statistics, and shortcuts.
Graph residual_network(std::int64_t blocks) {
  TrainingStep step;
  Graph& g = step.graph;
  constexpr std::int64_t kChannels = 8;
  Value x = g.input("x", {2, kChannels, 12, 12}, f32, channels_last);
  const auto convolved = [&](Value in, const std::string& name) {
    const Value w = step.parameter(name + ".w", {kChannels, kChannels, 3, 3});
    const Value y = g.conv(in, w, {.padding = {1, 1}});
    const Dims dims = {1, kChannels, 1, 1};
    NormForward op;
    op.mode = NormMode::batch;
    const NormResults results = g.norm(y, op,
                                       {.scale = step.parameter(name + ".scale", dims),
                                        .bias = step.parameter(name + ".bias", dims),
                                        .running_mean = g.input(name + ".mean", dims, f32),
                                        .running_var = g.input(name + ".var", dims, f32)});
    g.output(name + ".mean.next", results.next_running_mean);
    g.output(name + ".var.next", results.next_running_var);
    return results.y;
  };
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::string name = "block" + std::to_string(block);
    x = relu(x + convolved(relu(convolved(x, name + ".1")), name + ".2"));
  }
  return step.finish(g.reduce(x * x, ReductionMode::add));
}

std::int64_t workspace_of(const Graph& graph, const CompileOptions& options) {
  return compile(graph, Device::cpu(), options).workspace_size();
}

struct Case {
  const char* name;
  Graph (*make)(std::int64_t);
};
class RecomputedStep : public testing::TestWithParam<Case> {};

TEST_P(RecomputedStep, AgreesWithTheOracle) {
  const Graph graph = GetParam().make(3);
  for (const Recompute recompute : {Recompute::none, Recompute::cheap, Recompute::all})
    EXPECT_EQ(support::check_plan(graph, {.recompute = recompute}), "") << to_string(recompute);
  EXPECT_EQ(support::check_plan(graph, {.fuse = false, .recompute = Recompute::all}), "");
  EXPECT_EQ(support::check_plan(graph, {.guard = true, .recompute = Recompute::all}), "");
}

TEST_P(RecomputedStep, NeedsLessWorkspace) {
  const Graph graph = GetParam().make(8);
  const std::int64_t none = workspace_of(graph, {});
  const std::int64_t cheap = workspace_of(graph, {.recompute = Recompute::cheap});
  const std::int64_t all = workspace_of(graph, {.recompute = Recompute::all});
  EXPECT_LT(cheap, none * 9 / 10);
  EXPECT_LT(all, cheap * 9 / 10);
}

TEST_P(RecomputedStep, HasTheSameBits) {
  const Graph graph = GetParam().make(4);
  std::vector<std::vector<std::byte>> results;
  for (const Recompute recompute : {Recompute::none, Recompute::cheap, Recompute::all}) {
    support::Problem problem(graph, 3);
    const Plan plan = compile(graph, Device::cpu(), {.recompute = recompute});
    ASSERT_EQ(problem.run(plan), "");
    results.push_back(problem.memory().output_bytes());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// For a device that is not present: of kernels that are built the workspace is known, not
// estimated.
TEST_P(RecomputedStep, StopsWithinTheBudget) {
  const Graph graph = GetParam().make(8);
  const auto inspected = [&](const CompileOptions& options) {
    return inspect(graph, Device::named("h200"), options);
  };
  const auto flops = [&](std::int64_t budget) {
    double total = 0;
    for (const RegionInspection& region :
         inspected({.recompute = Recompute::all, .recompute_budget = budget}).regions)
      total += region.flops;
    return total;
  };
  const std::int64_t none = inspected({}).workspace_bytes;
  const std::int64_t all = inspected({.recompute = Recompute::all}).workspace_bytes;
  EXPECT_LT(flops(none), flops(1)) << "nothing is recomputed within the budget";
  double before = flops(1);
  for (const std::int64_t budget : {all, (all + none) / 2, none * 19 / 20}) {
    EXPECT_LE(inspected({.recompute = Recompute::all, .recompute_budget = budget}).workspace_bytes,
              budget);
    EXPECT_LE(flops(budget), before);
    before = flops(budget);
  }
  EXPECT_LT(before, flops(1));
}

TEST_P(RecomputedStep, IsExplainedAndSaved) {
  const Graph graph = GetParam().make(4);
  const Plan plan = compile(graph, Device::cpu(), {.recompute = Recompute::all});
  EXPECT_NE(plan.explain().find("rewrite: recomputed "), std::string::npos);
  EXPECT_NE(plan.explain().find(".recomputed"), std::string::npos);
  const Plan loaded = Plan::from_json(plan.to_json());
  EXPECT_EQ(loaded.explain().find("recomputed"), plan.explain().find("recomputed"));
  EXPECT_EQ(loaded.workspace_size(), plan.workspace_size());
}

INSTANTIATE_TEST_SUITE_P(Model, RecomputedStep,
                         testing::Values(Case{"Transformer", transformer},
                                         Case{"ResidualNetwork", residual_network}),
                         [](const auto& one) { return one.param.name; });

TEST(Recompute, PlansForTheH200ShrinkToo) {
  for (const auto make : {transformer, residual_network}) {
    const Graph graph = make(8);
    const auto bytes = [&](Recompute recompute) {
      return inspect(graph, Device::named("h200"), {.recompute = recompute}).workspace_bytes;
    };
    EXPECT_LT(bytes(Recompute::cheap), bytes(Recompute::none));
    EXPECT_LT(bytes(Recompute::all), bytes(Recompute::cheap));
  }
}

// Inference keeps nothing for late readers.
TEST(Recompute, LeavesAChainAsItIs) {
  Graph g("chain");
  Value x = g.input("x", {64, 64}, f32);
  for (int i = 0; i < 6; ++i)
    x = relu(g.matmul(x, g.input("w" + std::to_string(i), {64, 64}, f32)));
  g.output("y", x);
  const Plan plan = compile(g, Device::cpu(), {.recompute = Recompute::all});
  EXPECT_NE(plan.explain().find("recomputed nothing"), std::string::npos);
  EXPECT_EQ(plan.workspace_size(), compile(g).workspace_size());
}

TEST(Recompute, RefusesOtherValues) {
  const Graph graph = transformer(1);
  const auto message = [&](const CompileOptions& options) -> std::string {
    try {
      compile(graph, Device::cpu(), options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message({.recompute = static_cast<Recompute>(3)}),
            "recompute: got 3, expected none, cheap or all");
  EXPECT_EQ(message({.recompute = Recompute::all, .recompute_budget = -1}),
            "recompute_budget: got -1 bytes, expected at least 0");
  EXPECT_THROW(parse_recompute("some"), Error);
  EXPECT_EQ(parse_recompute("cheap"), Recompute::cheap);
}

}  // namespace
}  // namespace ashlar

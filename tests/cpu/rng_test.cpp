// Random tensors of every distribution.
#include <cmath>

#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

TEST(RngEngine, EveryDistributionAgreesWithTheOracle) {
  for (RngDistribution distribution :
       {RngDistribution::bernoulli, RngDistribution::uniform, RngDistribution::normal})
    for (DType dtype : {f64, f32, f16, boolean}) {
      if (dtype == boolean && distribution != RngDistribution::bernoulli) continue;
      Graph graph;
      Rng op;
      op.distribution = distribution;
      op.probability = 0.3;
      op.minimum = -2.0;
      op.maximum = 5.0;
      op.mean = 1.0;
      op.standard_deviation = 3.0;
      op.seed = 0x123456789ABCDEF;
      op.offset = 17;
      graph.output("y", graph.rng({7, 3, 501}, op, {.dtype = dtype}));
      PlanCheck plan(std::move(graph));
      plan.expect_agrees("cpu.rng");
    }
}

TEST(RngEngine, SeedsAndOffsetsFromMemory) {
  const auto sample = [](std::int64_t seed, std::int64_t offset) {
    Graph graph;
    Rng op;
    op.distribution = RngDistribution::uniform;
    Value s = graph.input("seed", {1}, i64), o = graph.input("offset", {1}, i64);
    graph.output("y", graph.rng({1000}, op, {}, s, o));
    PlanCheck plan(std::move(graph));
    plan.set("seed", {static_cast<double>(seed)});
    plan.set("offset", {static_cast<double>(offset)});
    plan.expect_agrees("cpu.rng");
    return plan.get("y");
  };
  const auto first = sample(5, 0), shifted = sample(5, 1), other = sample(6, 0);
  EXPECT_NE(first, other);
  // One counter further: four elements further.
  for (std::size_t i = 0; i + 4 < first.size(); ++i) EXPECT_EQ(first[i + 4], shifted[i]);
}

TEST(RngEngine, MomentsOfTheNormalDistribution) {
  Graph graph;
  Rng op;
  op.distribution = RngDistribution::normal;
  op.mean = 2.0;
  op.standard_deviation = 0.5;
  graph.output("y", graph.rng({40000}, op));
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.rng");
  double sum = 0, squares = 0;
  for (double value : plan.get("y")) {
    sum += value;
    squares += (value - 2.0) * (value - 2.0);
  }
  EXPECT_NEAR(sum / 40000, 2.0, 5 * 0.5 / std::sqrt(40000.0));
  EXPECT_NEAR(squares / 40000, 0.25, 5 * 0.25 * std::sqrt(2.0 / 40000.0));
}

}  // namespace
}  // namespace ashlar::cpu

// Composite operations are expanded into primitive ones.
#include <gmock/gmock.h>

#include <ashlar/inspect.hpp>

#include "plan/lowered.hpp"

namespace ashlar {
namespace {

using Forward = MultiHeadAttentionForward;

Graph multi_head(DType dtype) {
  Graph g("multi_head");
  Forward op;
  op.heads = 2;
  op.q_projection = op.k_projection = op.v_projection = 4;
  op.o_projection = 8;
  const Dims sequence = {2, 1, 6, 8};
  const Value weights = g.input("weights", {4 * 8 * 8}, dtype);
  const auto results = g.apply(op,
                               {{Forward::q, g.input("q", sequence, dtype)},
                                {Forward::k, g.input("k", sequence, dtype)},
                                {Forward::v, g.input("v", sequence, dtype)},
                                {Forward::weights, weights}},
                               {Forward::o});
  g.output("o", results[Forward::o]);
  return g;
}

template <class OpType>
int count(const Graph& graph) {
  int found = 0;
  for (const Node& node : graph.nodes()) found += std::holds_alternative<OpType>(node.op) ? 1 : 0;
  return found;
}

TEST(Expand, MultiHeadAttentionBecomesMatmulsAndAttention) {
  const LoweredGraph lowered = lower(multi_head(f32), true);
  EXPECT_EQ(count<Forward>(lowered.graph), 0);
  EXPECT_EQ(count<AttentionForward>(lowered.graph), 1);
  EXPECT_EQ(count<Matmul>(lowered.graph), 4) << lowered.graph.to_text();
  EXPECT_THAT(lowered.notes,
              testing::Contains(testing::HasSubstr("expanded multi_head_attention_forward")));
}

TEST(Expand, LeavesNothingToTheReferenceEngine) {
  for (DType dtype : {f32, f64, bf16})
    for (const RegionInspection& region : inspect(multi_head(dtype), Device::cpu()).regions)
      EXPECT_NE(region.method, ComputeMethod::reference) << region.name;
}

Graph experts_gradients(MoeMode mode, bool of_tokens) {
  using Op = MoeGroupedMatmulBackward;
  Graph g("experts");
  Op op;
  op.mode = mode;
  op.top_k = 2;
  std::vector<Operand<Op>> operands = {{Op::doutput, g.input("doutput", {1, 12, 5}, f32)},
                                       {Op::token, g.input("token", {1, 12, 4}, f32)},
                                       {Op::weight, g.input("weight", {3, 4, 5}, f32)},
                                       {Op::first_token_offset, g.input("first", {3, 1, 1}, i32)}};
  if (mode != MoeMode::none)
    operands.push_back({Op::token_index, g.input("index", {1, 12, 1}, i32)});
  if (mode == MoeMode::scatter) operands.push_back({Op::token_ks, g.input("ks", {1, 12, 1}, i32)});
  std::vector<Wanted<Op>> wanted = {Op::dweight};
  if (of_tokens) wanted.emplace_back(Op::dtoken);
  const auto results = g.apply(op, operands, wanted);
  g.output("dweight", results[Op::dweight]);
  if (of_tokens) g.output("dtoken", results[Op::dtoken]);
  return g;
}

TEST(Expand, TokenGradientIsGroupedMatmulWithInverseRouting) {
  const auto mode_of_product = [](MoeMode mode) {
    const LoweredGraph lowered = lower(experts_gradients(mode, true), true);
    EXPECT_EQ(count<MoeGroupedMatmulBackward>(lowered.graph), 1);
    for (const Node& node : lowered.graph.nodes())
      if (const auto* product = std::get_if<MoeGroupedMatmul>(&node.op)) return product->mode;
    ADD_FAILURE() << lowered.graph.to_text();
    return mode;
  };
  EXPECT_EQ(mode_of_product(MoeMode::none), MoeMode::none);
  EXPECT_EQ(mode_of_product(MoeMode::gather), MoeMode::scatter);
  EXPECT_EQ(mode_of_product(MoeMode::scatter), MoeMode::gather);
}
TEST(Expand, WeightGradientAloneIsNotExpanded) {
  const LoweredGraph lowered = lower(experts_gradients(MoeMode::gather, false), true);
  EXPECT_EQ(lowered.graph.nodes().size(), 1);
}

TEST(Expand, ReferenceRunsTheOperationUnexpanded) {
  const Plan plan = compile(multi_head(f32), Device::cpu(), {.reference_only = true});
  EXPECT_EQ(plan.region_count(), 1);
}

}  // namespace
}  // namespace ashlar

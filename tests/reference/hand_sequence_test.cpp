// Mixture of experts, paged caches, band matrices, causal convolution and dropout on values small
// enough to verify manually.
#include <cmath>

#include "base/dropout.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

using Moe = MoeGroupedMatmul;
using MoeBackward = MoeGroupedMatmulBackward;

// Tokens [1 2], [3 4], [5 6], [7 8]; experts [1 10]^T and [100 1000]^T.
std::vector<double> mixed(const Moe& op, const std::vector<double>& first,
                          const std::vector<double>& index = {}, const std::vector<double>& ks = {},
                          std::int64_t output_rows = 0) {
  Graph g;
  const auto count = [](const auto& values) { return static_cast<std::int64_t>(values.size()); };
  std::vector<Operand<Moe>> operands = {
      {Moe::token, g.input("token", {1, 4, 2}, f32)},
      {Moe::weight, g.input("weight", {2, 2, 1}, f32)},
      {Moe::first_token_offset, g.input("first", {count(first), 1, 1}, i64)}};
  if (!index.empty())
    operands.push_back({Moe::token_index, g.input("index", {1, count(index), 1}, i64)});
  if (!ks.empty()) operands.push_back({Moe::token_ks, g.input("ks", {1, count(ks), 1}, i32)});
  OutputSpec spec;
  if (output_rows > 0) spec.dims = {1, output_rows, 1};
  const std::vector<Wanted<Moe>> wanted = {Moe::output};
  g.output("output", g.apply(op, operands, wanted, spec));
  Evaluation e(g);
  e.set("token", {1, 2, 3, 4, 5, 6, 7, 8});
  e.set("weight", {1, 10, 100, 1000});
  e.set("first", first);
  if (!index.empty()) e.set("index", index);
  if (!ks.empty()) e.set("ks", ks);
  e.expect_nodes_agree();
  return e.get("output");
}

Moe mode(MoeMode mode, std::int64_t top_k = 1) {
  Moe op;
  op.mode = mode;
  op.top_k = top_k;
  return op;
}

using Numbers = std::vector<double>;

TEST(HandComputed, MoeRowsSortedByExpert) {
  EXPECT_EQ(mixed({}, {0, 2}), (Numbers{21, 43, 6500, 8700}));
  EXPECT_EQ(mixed({}, {1, 3}), (Numbers{0, 43, 65, 8700})) << "row 0 has no expert";
  EXPECT_EQ(mixed({}, {0, 1, 2, 3}), (Numbers{21, 4300, 65, 8700})) << "two groups per expert";
}

TEST(HandComputed, MoeOffsetsAreClamped) {
  EXPECT_EQ(mixed({}, {-5, 100}), (Numbers{21, 43, 65, 87}));
  EXPECT_EQ(mixed({}, {3, 1}), (Numbers{0, 0, 0, 8700}));
  EXPECT_EQ(mixed({}, {-9e18, 9.3e18}), (Numbers{21, 43, 65, 87}));
}

TEST(HandComputed, MoeGather) {
  EXPECT_EQ(mixed(mode(MoeMode::gather), {0, 2}, {2, 0, 1}), (Numbers{65, 21, 4300}));
  EXPECT_EQ(mixed(mode(MoeMode::gather), {0, 2}, {2, -1, 0, 9e18}), (Numbers{65, 0, 2100, 0}));
}

TEST(HandComputed, MoeScatter) {
  const Moe scatter = mode(MoeMode::scatter, 2);
  EXPECT_EQ(mixed(scatter, {0, 2}, {1, 0, 0, 1}, {0, 1, 0, 1}), (Numbers{6500, 43, 21, 8700}));
  // The first and third row have the same destination and are summed. The fourth is out of range.
  EXPECT_EQ(mixed(scatter, {0, 2}, {0, 1, 0, 7}, {1, 0, 1, 0}, 6), (Numbers{0, 6521, 43, 0, 0, 0}));
  EXPECT_EQ(mixed(scatter, {0, 2}, {0, -1, 9e18, 1}, {2, 0, 0, -1}), (Numbers{0, 0, 0, 0}));
}

TEST(HandComputed, MoeBackward) {
  Graph g;
  const Value doutput = g.input("doutput", {1, 3, 1}, f32),
              token = g.input("token", {1, 2, 2}, f32), weight = g.input("weight", {2, 2, 1}, f32),
              first = g.input("first", {2, 1, 1}, i32), index = g.input("index", {1, 3, 1}, i32);
  MoeBackward op;
  op.mode = MoeMode::gather;
  const auto gradients = g.apply(op,
                                 {{MoeBackward::doutput, doutput},
                                  {MoeBackward::token, token},
                                  {MoeBackward::weight, weight},
                                  {MoeBackward::first_token_offset, first},
                                  {MoeBackward::token_index, index}},
                                 {MoeBackward::dweight, MoeBackward::dtoken});
  g.output("dweight", gradients[MoeBackward::dweight]);
  g.output("dtoken", gradients[MoeBackward::dtoken]);
  // Without routing and weights: rows of doutput are rows of token.
  const Value rows = g.input("rows", {1, 2, 1}, f32);
  g.output("alone", g.apply(MoeBackward{},
                            {{MoeBackward::doutput, rows},
                             {MoeBackward::token, token},
                             {MoeBackward::first_token_offset, first}},
                            {MoeBackward::dweight}));
  Evaluation e(g);
  e.set("doutput", {2, 3, 5});
  e.set("token", {1, 2, 3, 4});
  e.set("weight", {1, 10, 100, 1000});
  e.set("first", {0, 1});
  e.set("index", {1, 1, 0});
  e.set("rows", {7, 11});
  expect_result(e, "dweight", {2 * 3, 2 * 4, 3 * 3 + 5 * 1, 3 * 4 + 5 * 2});
  expect_result(e, "dtoken", {500, 5000, 2 + 300, 20 + 3000});
  expect_result(e, "alone", {7, 14, 33, 44});
}

TEST(HandComputed, PagedCacheLoad) {
  for (bool transposed : {false, true}) {
    Graph g;
    using Load = PagedCacheLoad;
    const Value container = g.input("container", {3, 1, 2, 1}, f32),
                table = g.input("table", {2, 1, 2, 1}, i64),
                lengths = g.input("lengths", {2, 1, 1, 1}, i64);
    g.output("all", g.apply(Load{.transposed = transposed},
                            {{Load::container, container}, {Load::page_table, table}}, {Load::y}));
    OutputSpec cut;
    cut.dims = transposed ? Dims{2, 1, 1, 3} : Dims{2, 1, 3, 1};
    g.output("cut", g.apply(Load{.transposed = transposed},
                            {{Load::container, container},
                             {Load::page_table, table},
                             {Load::sequence, lengths}},
                            {Load::y}, cut));
    Evaluation e(g);
    e.set("container", {1, 2, 3, 4, 5, 6});
    e.set("table", {2, 0, 1, 9e18});
    e.set("lengths", {2, 9e18});
    expect_result(e, "all", {5, 6, 1, 2, 3, 4, 0, 0});
    expect_result(e, "cut", {5, 6, 0, 3, 4, 0});
  }
}

TEST(HandComputed, Bands) {
  Graph g;
  using Expand = ExpandBandMatrix;
  using Contract = ContractBandMatrix;
  Expand expand;
  expand.lower_bandwidth = expand.upper_bandwidth = 1;
  expand.pad_value = -1.0;
  Contract contract;
  contract.lower_bandwidth = contract.upper_bandwidth = 1;
  contract.pad_value = -2.0;
  const Value x = g.input("x", {3, 3}, f32);
  const Value full = g.apply(expand, {{Expand::x, x}}, {Expand::y});
  g.output("full", full);
  g.output("band", g.apply(contract, {{Contract::x, full}}, {Contract::y}));
  Expand shifted;
  shifted.upper_bandwidth = 1;
  const Value pair = g.input("pair", {4, 1, 2}, f32), shift = g.input("shift", {4, 1, 1}, i64);
  OutputSpec wide;
  wide.dims = {4, 1, 3};
  g.output("shifted", g.apply(shifted, {{Expand::x, pair}, {Expand::kv_token_offset, shift}},
                              {Expand::y}, wide));
  Evaluation e(g);
  e.set("x", {9, 1, 2, 3, 4, 5, 6, 7, 9});
  e.set("pair", {1, 2, 3, 4, 5, 6, 7, 8});
  e.set("shift", {1, -1, 2, 9e18});
  expect_result(e, "full", {1, 2, -1, 3, 4, 5, -1, 6, 7});
  expect_result(e, "band", {-2, 1, 2, 3, 4, 5, 6, 7, -2});
  expect_result(e, "shifted", {0, 1, 2, 4, 0, 0, 0, 0, 5, 0, 0, 0});
}

TEST(HandComputed, CausalConvolution) {
  Graph g;
  using Conv = CausalConvForward;
  const Value x = g.input("x", {1, 1, 3}, f32), w = g.input("w", {1, 2}, f32),
              bias = g.input("bias", {1}, f32), state = g.input("state", {1, 1, 1}, f32);
  g.output("plain", g.apply(Conv{}, {{Conv::x, x}, {Conv::w, w}}, {Conv::y}));
  const auto full = g.apply(
      Conv{}, {{Conv::x, x}, {Conv::w, w}, {Conv::bias, bias}, {Conv::initial_state, state}},
      {Conv::y, Conv::final_state});
  g.output("full", full[Conv::y]);
  g.output("final", full[Conv::final_state]);
  Conv silu;
  silu.activation = CausalConvActivation::silu;
  g.output("silu", g.apply(silu, {{Conv::x, x}, {Conv::w, w}}, {Conv::y}));
  // One step with a filter of three taps: the state is shifted by one.
  const Value step = g.input("step", {1, 1, 1}, f32), w3 = g.input("w3", {1, 3}, f32),
              two = g.input("two", {1, 1, 2}, f32);
  const auto short_piece =
      g.apply(Conv{}, {{Conv::x, step}, {Conv::w, w3}, {Conv::initial_state, two}},
              {Conv::y, Conv::final_state});
  g.output("step_y", short_piece[Conv::y]);
  g.output("step_final", short_piece[Conv::final_state]);
  Evaluation e(g);
  e.set("x", {1, 2, 3});
  e.set("w", {10, 1});
  e.set("bias", {100});
  e.set("state", {5});
  e.set("step", {1});
  e.set("w3", {100, 10, 1});
  e.set("two", {7, 8});
  expect_result(e, "plain", {1, 12, 23});
  expect_result(e, "full", {151, 112, 123});
  expect_result(e, "final", {3});
  expect_result(e, "silu", {1 / (1 + std::exp(-1.0)), 12 / (1 + std::exp(-12.0)), 23}, 1e-5);
  expect_result(e, "step_y", {781});
  expect_result(e, "step_final", {8, 1});
}

TEST(HandComputed, CausalConvolutionBackward) {
  Graph g;
  using Conv = CausalConvBackward;
  const auto gradients = g.apply(Conv{},
                                 {{Conv::x, g.input("x", {1, 1, 3}, f32)},
                                  {Conv::w, g.input("w", {1, 2}, f32)},
                                  {Conv::dy, g.input("dy", {1, 1, 3}, f32)},
                                  {Conv::initial_state, g.input("state", {1, 1, 1}, f32)}},
                                 {Conv::dx, Conv::dw, Conv::dbias, Conv::dinitial_state});
  const char* names[] = {"dx", "dw", "dbias", "dstate"};
  for (std::size_t i = 0; i < 4; ++i) g.output(names[i], gradients.all()[i]);
  Evaluation e(g);
  e.set("x", {1, 2, 3});
  e.set("w", {10, 1});
  e.set("dy", {1, 2, 4});
  e.set("state", {5});
  expect_result(e, "dx", {1 + 20, 2 + 40, 4});
  expect_result(e, "dw", {5 + 2 + 8, 1 + 4 + 12});
  expect_result(e, "dbias", {7});
  expect_result(e, "dstate", {10});
}

// y, mask and next_offset of a dropout of ones.
struct Dropped {
  Numbers y, mask, next;
};
Dropped drop(const Dims& dims, std::int64_t seed, std::int64_t offset) {
  Graph g;
  using Drop = DropoutForward;
  Drop op;
  op.probability = 0.25;
  op.seed = seed;
  const auto results = g.apply(
      op, {{Drop::x, g.input("x", dims, f32)}, {Drop::offset_tensor, g.input("offset", {1}, i64)}},
      {Drop::y, Drop::mask, Drop::next_offset});
  const char* names[] = {"y", "mask", "next"};
  for (std::size_t i = 0; i < 3; ++i) g.output(names[i], results.all()[i]);
  Evaluation e(g);
  e.set("x", Numbers(static_cast<std::size_t>(element_count(dims)), 3.0));
  e.set("offset", {static_cast<double>(offset)});
  e.expect_nodes_agree();
  return {e.get("y"), e.get("mask"), e.get("next")};
}

TEST(HandComputed, DropoutMaskMatchesRng) {
  const Dropped dropped = drop({5, 7}, 42, 9);
  int kept = 0;
  for (std::size_t i = 0; i < dropped.y.size(); ++i) {
    const bool keeps = bernoulli(42, 9, i, 0.75);
    EXPECT_EQ(dropped.mask[i], keeps ? 1.0 : 0.0);
    EXPECT_NEAR(dropped.y[i], keeps ? 4.0 : 0.0, 1e-6);
    kept += keeps;
  }
  EXPECT_GT(kept, 15);
  EXPECT_LT(kept, 35);
  EXPECT_EQ(dropped.next, Numbers{9 + 9});  // 35 values are 9 counters of 4 lanes
}

TEST(HandComputed, DropoutStateIsRestorable) {
  const Dropped whole = drop({32}, 7, 100), first = drop({12}, 7, 100);
  const Dropped second = drop({20}, 7, static_cast<std::int64_t>(first.next[0]));
  Numbers joined = first.mask;
  joined.insert(joined.end(), second.mask.begin(), second.mask.end());
  EXPECT_EQ(joined, whole.mask);
  EXPECT_EQ(second.next, whole.next);
  EXPECT_EQ(drop({20}, 7, static_cast<std::int64_t>(first.next[0])).mask, second.mask);
  EXPECT_NE(drop({32}, 8, 100).mask, whole.mask);
}

TEST(HandComputed, DropoutBackward) {
  Graph g;
  using Drop = DropoutBackward;
  Drop op;
  op.probability = 0.5;
  const Value dy = g.input("dy", {4}, f32), mask = g.input("mask", {4}, boolean);
  g.output("dx", g.apply(op, {{Drop::dy, dy}, {Drop::mask, mask}}, {Drop::dx}));
  g.output("drawn", g.apply(op, {{Drop::dy, dy}}, {Drop::dx}));
  Evaluation e(g);
  e.set("dy", {1, 2, 3, 4});
  e.set("mask", {1, 0, 0, 1});
  expect_result(e, "dx", {2, 0, 0, 8});
  Numbers drawn;
  for (std::uint64_t i = 0; i < 4; ++i)
    drawn.push_back(bernoulli(0, 0, i, 0.5) ? 2.0 * static_cast<double>(i + 1) : 0.0);
  expect_result(e, "drawn", drawn);
}

}  // namespace
}  // namespace ashlar::reference

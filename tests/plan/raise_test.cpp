// Composite patterns are raised to one anchor; near misses are not.
#include <gtest/gtest.h>

#include <array>
#include <ashlar/ashlar.hpp>
#include <limits>

#include "graph/op_traits.hpp"
#include "plan/lowered.hpp"
#include "support/problem.hpp"

namespace ashlar {
namespace {

std::vector<std::string> operations(const LoweredGraph& lowered) {
  std::vector<std::string> names;
  for (const Node& node : lowered.graph.nodes()) names.emplace_back(traits_of(node.op).name);
  return names;
}

using Names = std::vector<std::string>;

struct SoftmaxOps {
  Value y, max, sum;
};

SoftmaxOps small_softmax(Graph& g, Value x, Dims axes) {
  const Value max = g.reduce(x, ReductionMode::max, axes);
  const Value numerator = exp(x - max);
  const Value sum = g.reduce(numerator, ReductionMode::add, axes);
  return {numerator / sum, max, sum};
}

// Group dequantisation of weights as frameworks write it, in front of a matmul.
struct WrittenGroups {
  DType stored = u4, difference = bf16;
  bool has_zeros = true, joined_first = false, is_shared = false;
  Dims strides = {128, 8, 1};
  bool cast_first = false, doubled = false;  // the quantised values

  Graph graph() const {
    Graph g;
    Value w = joined_first ? g.reshape(g.input("w", {64, 8}, stored), {4, 16, 8})
                           : g.input("w", {4, 16, 8}, stored, Layout(strides));
    if (cast_first) w = g.pointwise(PointwiseMode::identity, std::array{w}, {}, {.dtype = f16});
    if (doubled) w = g.pointwise(PointwiseMode::add, std::array{w, w}, {}, {.dtype = f16});
    const auto small = [&](PointwiseMode mode, const char* name, DType dtype, DType result) {
      w = g.pointwise(mode, std::array{w, g.input(name, {4, 1, 8}, dtype)}, {}, {.dtype = result});
    };
    if (has_zeros) small(PointwiseMode::sub, "zero", stored, difference);
    small(PointwiseMode::mul, "scale", f16, bf16);
    const Value all = g.reshape(w, {64, 8});
    g.output("y", g.matmul(g.input("x", {3, 64}, bf16), all));
    if (is_shared) g.output("weights", relu(all));
    return g;
  }
};

TEST(RaiseDequantization, MatchesGroupsBeforeMatmul) {
  for (const bool has_zeros : {true, false})
    for (const auto& [joined_first, cast_first] : {std::pair(false, false), std::pair(true, false),
                                                   std::pair(false, true), std::pair(true, true)})
      for (const Dims& strides : {Dims{128, 8, 1}, Dims{16, 1, 64}}) {
        const WrittenGroups written{.has_zeros = has_zeros,
                                    .joined_first = joined_first,
                                    .strides = strides,
                                    .cast_first = cast_first};
        const LoweredGraph lowered = lower(written.graph(), true);
        ASSERT_EQ(operations(lowered), (Names{"block_scale_dequantize", "matmul"}));
        const Node& node = lowered.graph.nodes()[0];
        EXPECT_EQ(std::get<BlockScaleDequantize>(node.op).block_size, (Dims{16, 1}));
        EXPECT_EQ(node.inputs[BlockScaleDequantize::zero_point] != kNoTensor, has_zeros);
        const TensorId x = node.inputs[BlockScaleDequantize::x];
        EXPECT_EQ(lowered.graph.tensor(lowered.views[static_cast<std::size_t>(x)].tensor).name,
                  "w");
      }
}

TEST(RaiseDequantization, ComputesTheSame) {
  for (const bool has_zeros : {true, false})
    EXPECT_EQ(support::check_plan(WrittenGroups{.has_zeros = has_zeros}.graph()), "");
}

TEST(RaiseDequantization, LeavesOtherPatterns) {
  const auto is_raised = [](const WrittenGroups& written) {
    for (const std::string& name : operations(lower(written.graph(), true)))
      if (name == "block_scale_dequantize") return true;
    return false;
  };
  EXPECT_TRUE(is_raised({}));
  EXPECT_FALSE(is_raised({.is_shared = true}));
  EXPECT_FALSE(is_raised({.has_zeros = false, .doubled = true}));
  EXPECT_FALSE(is_raised({.difference = i8}));       // rounds and saturates
  EXPECT_FALSE(is_raised({.strides = {8, 32, 1}}));  // would be copied
}

TEST(RaiseSoftmax, MatchesMaxSubExpAddDiv) {
  Graph g;
  g.output("y", small_softmax(g, g.input("x", {2, 3, 5}, f32), {1}).y);
  const LoweredGraph lowered = lower(g, true);
  ASSERT_EQ(operations(lowered), Names{"softmax_forward"});
  EXPECT_EQ(std::get<SoftmaxForward>(lowered.graph.nodes()[0].op).axis, 1);
}

// A convolution backward-data.
Graph gradient(std::int64_t filters, std::int64_t window, const ConvAttributes& op = {}) {
  Graph g;
  const Dims x = {2, 6, 5, 4};
  const Value dy = g.input("dy", {2, filters, 6 - window, 5 - window}, f32),
              w = g.input("w", {filters, 6, window, window}, f32);
  g.output("dx", relu(g.conv_backward_data(dy, w, op, {.dims = x})));
  return g;
}

TEST(SimplifyConvolutions, OneTapSingleFilterBecomesMul) {
  EXPECT_EQ(operations(lower(gradient(1, 1), true)), (Names{"pointwise", "pointwise"}));
  EXPECT_EQ(operations(lower(gradient(1, 1), false))[0], "conv_backward_data");
}

TEST(SimplifyConvolutions, LeavesReductionsAndScaledConvolutions) {
  for (const Graph& g : {gradient(2, 1), gradient(1, 2), gradient(1, 1, {.alpha = 2.0})})
    EXPECT_EQ(operations(lower(g, true))[0], "conv_backward_data");
}

TEST(RaiseSoftmax, MatchesStatistics) {
  Graph g;
  const SoftmaxOps softmax = small_softmax(g, g.input("x", {2, 5}, f32), {1});
  g.output("y", softmax.y);
  g.output("stats", log(softmax.sum) + softmax.max);
  EXPECT_EQ(operations(lower(g, true)), Names{"softmax_forward"});
}

TEST(RaiseSoftmax, LeavesPatternWithSharedIntermediate) {
  Graph g;
  const SoftmaxOps softmax = small_softmax(g, g.input("x", {2, 5}, f32), {1});
  g.output("y", softmax.y);
  g.output("sum", softmax.sum);
  for (const std::string& name : operations(lower(g, true))) EXPECT_NE(name, "softmax_forward");
}

TEST(RaiseSoftmax, LeavesADivisionByAnotherSum) {
  Graph g;
  const Value x = g.input("x", {2, 5}, f32);
  const Value max = g.reduce(x, ReductionMode::max, {1});
  const Value numerator = exp(x - max);
  g.output("y", numerator / g.reduce(numerator, ReductionMode::add, {0}));
  for (const std::string& name : operations(lower(g, true))) EXPECT_NE(name, "softmax_forward");
}

TEST(RaiseNorm, MatchesLayerNormWithScaleAndBias) {
  Graph g;
  const Value x = g.input("x", {4, 6}, f32), scale = g.input("scale", {1, 6}, f32),
              bias = g.input("bias", {1, 6}, f32);
  const Value centred = x - g.reduce(x, ReductionMode::avg, {1});
  const Value variance = g.reduce(centred * centred, ReductionMode::avg, {1});
  g.output("y", centred * rsqrt(variance + 1e-3) * scale + bias);
  const LoweredGraph lowered = lower(g, true);
  ASSERT_EQ(operations(lowered), Names{"norm_forward"});
  const auto& norm = std::get<NormForward>(lowered.graph.nodes()[0].op);
  EXPECT_EQ(norm.mode, NormMode::layer);
  EXPECT_DOUBLE_EQ(norm.epsilon, 1e-3);
  EXPECT_EQ(norm.axes, Dims{1});
  EXPECT_NE(lowered.graph.nodes()[0].inputs[NormForward::bias], kNoTensor);
}

TEST(RaiseNorm, MatchesAdaptiveLayerNorm) {
  Graph g;
  const Value x = g.input("x", {3, 4, 6}, f32), scale = g.input("scale", {3, 1, 6}, f32),
              bias = g.input("bias", {3, 1, 6}, f32);
  const Value centred = x - g.reduce(x, ReductionMode::avg, {2});
  const Value variance = g.reduce(centred * centred, ReductionMode::avg, {2});
  g.output("y", centred * rsqrt(variance + 1e-3) * scale + bias);
  const LoweredGraph lowered = lower(g, true);
  ASSERT_EQ(operations(lowered), Names{"norm_forward"});
  EXPECT_EQ(std::get<NormForward>(lowered.graph.nodes()[0].op).mode, NormMode::ada_layer);
  EXPECT_NE(lowered.graph.nodes()[0].inputs[NormForward::bias], kNoTensor);
}

TEST(RaiseNorm, MatchesRmsNormWithSumTimesReciprocal) {
  Graph g;
  const Value x = g.input("x", {4, 8}, f32), scale = g.input("scale", {1, 8}, f32);
  const Value mean_square = g.reduce(x * x, ReductionMode::add, {1}) * 0.125;
  g.output("y", x * rsqrt(mean_square + 1e-5) * scale);
  const LoweredGraph lowered = lower(g, true);
  ASSERT_EQ(operations(lowered), Names{"norm_forward"});
  EXPECT_EQ(std::get<NormForward>(lowered.graph.nodes()[0].op).mode, NormMode::rms);
}

TEST(RaiseNorm, LeavesASumThatIsNotAMean) {
  Graph g;
  const Value x = g.input("x", {4, 8}, f32);
  g.output("y", x * rsqrt(g.reduce(x * x, ReductionMode::add, {1}) * 0.5 + 1e-5));
  for (const std::string& name : operations(lower(g, true))) EXPECT_NE(name, "norm_forward");
}

// Attention as cudnn-frontend composes it, with a mask computed by `predicate` (if any).
template <class Mask>
LoweredGraph small_attention(Mask&& mask, bool with_bias = false) {
  Graph g;
  const Value q = g.input("q", {2, 4, 6, 8}, f32), v = g.input("v", {2, 4, 10, 8}, f32);
  const Value k = g.input("k_transposed", {2, 4, 8, 10}, f32, Dims{320, 80, 1, 8});
  Value scores = g.matmul(q, k) * 0.25;
  if (with_bias) scores = scores + g.input("bias", {1, 4, 6, 10}, f32);
  const Value row = g.pointwise(PointwiseMode::gen_index, std::array{scores}, {.axis = 2});
  const Value col = g.pointwise(PointwiseMode::gen_index, std::array{scores}, {.axis = 3});
  if (const Value predicate = mask(g, row, col))
    scores = select(predicate, scores, g.constant(-std::numeric_limits<double>::infinity()));
  const SoftmaxOps softmax = small_softmax(g, scores, {3});
  g.output("o", g.matmul(softmax.y, v));
  return lower(g, true);
}

const AttentionForward* attention_of(const LoweredGraph& lowered) {
  for (const Node& node : lowered.graph.nodes())
    if (const auto* op = std::get_if<AttentionForward>(&node.op)) return op;
  return nullptr;
}

TEST(RaiseAttention, MatchesScaleBiasAndSoftmax) {
  const LoweredGraph lowered = small_attention([](Graph&, Value, Value) { return Value(); }, true);
  ASSERT_EQ(operations(lowered), Names{"attention_forward"});
  EXPECT_DOUBLE_EQ(*attention_of(lowered)->scale, 0.25);
  EXPECT_NE(lowered.graph.nodes()[0].inputs[AttentionForward::bias], kNoTensor);
}

TEST(RaiseAttention, ReadsTheKeyThroughItsStrides) {
  const LoweredGraph lowered = small_attention([](Graph&, Value, Value) { return Value(); });
  const View& key =
      lowered.views[static_cast<std::size_t>(lowered.graph.nodes()[0].inputs[AttentionForward::k])];
  EXPECT_EQ(lowered.graph.tensor(key.tensor).name, "k_transposed");
  EXPECT_EQ(key.dims, (Dims{2, 4, 10, 8}));
  EXPECT_EQ(key.strides, (Dims{320, 80, 8, 1}));
}

TEST(RaiseAttention, UnderstandsCausal) {
  const LoweredGraph lowered = small_attention(
      [](Graph&, Value row, Value col) { return pointwise(PointwiseMode::cmp_ge, row, col); });
  const AttentionForward* op = attention_of(lowered);
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->right_bound, 0);
  EXPECT_FALSE(op->left_bound.has_value());
  EXPECT_EQ(op->alignment, MaskAlignment::top_left);
}

TEST(RaiseAttention, UnderstandsASlidingWindowOfTwoConditions) {
  const LoweredGraph lowered = small_attention([](Graph& g, Value row, Value col) {
    const Value right = pointwise(PointwiseMode::cmp_le, col, row + g.constant(1, i32));
    const Value left = pointwise(PointwiseMode::cmp_gt, col + g.constant(3, i32), row);
    return pointwise(PointwiseMode::logical_and, right, left);
  });
  const AttentionForward* op = attention_of(lowered);
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->right_bound, 1);
  EXPECT_EQ(op->left_bound, 3);
}

TEST(RaiseAttention, UnderstandsPaddingAndBottomRight) {
  const LoweredGraph lowered = small_attention([](Graph& g, Value row, Value col) {
    const Value q_length = g.input("q_length", {2, 1, 1, 1}, i32),
                kv_length = g.input("kv_length", {2, 1, 1, 1}, i32);
    const Value inside =
        pointwise(PointwiseMode::logical_and, pointwise(PointwiseMode::cmp_lt, row, q_length),
                  pointwise(PointwiseMode::cmp_lt, col, kv_length));
    const Value causal = pointwise(PointwiseMode::cmp_ge, row + kv_length - q_length, col);
    return pointwise(PointwiseMode::logical_and, inside, causal);
  });
  const AttentionForward* op = attention_of(lowered);
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->right_bound, 0);
  EXPECT_EQ(op->alignment, MaskAlignment::bottom_right);
}

TEST(RaiseAttention, LeavesAMaskItDoesNotUnderstand) {
  const LoweredGraph lowered = small_attention([](Graph& g, Value row, Value col) {
    return pointwise(PointwiseMode::cmp_ge, row * g.constant(2, i32), col);
  });
  EXPECT_EQ(attention_of(lowered), nullptr);
}

TEST(Simplify, DropsDeadNodesAndMergesEqualOnes) {
  Graph g;
  const Value x = g.input("x", {4}, f32);
  static_cast<void>(exp(x));
  g.output("y", relu(x) + relu(x));
  EXPECT_EQ(lower(g, true).graph.nodes().size(), 2u);
}

TEST(FoldViews, ReadsTransposesSlicesAndReshapesThroughStrides) {
  Graph g;
  const Value x = g.input("x", {4, 6}, f32);
  const Value moved = g.reshape(g.slice(g.transpose(x, {1, 0}), {1, 0}, {5, 4}), {2, 2, 4});
  g.output("y", relu(moved));
  const LoweredGraph lowered = lower(g, true);
  ASSERT_EQ(operations(lowered), Names{"pointwise"});
  const View& view = lowered.views[static_cast<std::size_t>(lowered.graph.nodes()[0].inputs[0])];
  EXPECT_EQ(view.offset, 1);
  EXPECT_EQ(view.strides, (Dims{2, 1, 6}));
}

TEST(FoldViews, WritesDirectlyToATransposedOutput) {
  Graph g;
  const Value x = g.input("x", {4, 6}, f32);
  g.output("y", g.transpose(relu(x), {1, 0}));
  const LoweredGraph lowered = lower(g, true);
  ASSERT_EQ(operations(lowered), Names{"pointwise"});
  const View& view = lowered.views[static_cast<std::size_t>(lowered.graph.nodes()[0].outputs[0])];
  EXPECT_EQ(lowered.graph.tensor(view.tensor).name, "y");
  EXPECT_EQ(view.strides, (Dims{1, 4}));
}

TEST(FoldViews, CopiesAReshapeNoStridesCanExpress) {
  Graph g;
  const Value x = g.input("x", {4, 6}, f32);
  g.output("y", relu(g.reshape(g.transpose(x, {1, 0}), {24})));
  const LoweredGraph lowered = lower(g, true);
  EXPECT_EQ(operations(lowered), (Names{"reshape", "pointwise"}));
}

}  // namespace
}  // namespace ashlar

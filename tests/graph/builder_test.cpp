// Shape, dtype and layout inference of the builder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "graph/bad_input.hpp"
#include "graph/enum_names.hpp"
#include "graph/pointwise_traits.hpp"

namespace ashlar::tests {
namespace {

struct Facts {
  Dims dims, strides;
  DType dtype;
  bool operator==(const Facts&) const = default;
};

void PrintTo(const Facts& facts, std::ostream* stream) {
  *stream << to_string(facts.dtype) << to_string(facts.dims) << " strides "
          << to_string(facts.strides);
}

Facts facts(Value value) { return {value.dims(), value.tensor().strides, value.dtype()}; }
Facts packed(const Dims& dims, DType dtype) { return {dims, row_major.strides_for(dims), dtype}; }
Facts channels(const Dims& dims, DType dtype) {
  return {dims, channels_last.strides_for(dims), dtype};
}

TEST(Builder, Convolution) {
  Graph g;
  const Value x = g.input("x", {2, 6, 9, 8}, f16, channels_last);
  const Value w = g.input("w", {4, 3, 3, 2}, f16);
  EXPECT_EQ(facts(g.conv(x, w)), channels({2, 4, 7, 7}, f16));
  EXPECT_EQ(facts(g.conv(x, w, {.padding = {1, 0}, .stride = {2, 3}})),
            channels({2, 4, 5, 3}, f16));
  EXPECT_EQ(
      facts(g.conv(x, w, {.padding = {1, 0}, .post_padding = Dims{0, 1}, .dilation = {2, 1}})),
      channels({2, 4, 6, 8}, f16));
  EXPECT_EQ(facts(g.conv(x, w, {}, {.dtype = f32, .layout = row_major})),
            packed({2, 4, 7, 7}, f32));
  EXPECT_EQ(facts(g.conv(g.input("line", {1, 2, 5}, i8), g.input("f", {3, 2, 2}, i8))),
            packed({1, 3, 4}, i8));
  EXPECT_EQ(facts(g.conv(g.input("v", {1, 2, 4, 4, 4}, f32), g.input("vf", {2, 1, 2, 2, 2}, f32))),
            packed({1, 2, 3, 3, 3}, f32));
  const auto& attributes = std::get<ConvForward>(g.nodes()[0].op);
  EXPECT_EQ(attributes.padding, Dims({0, 0}));
  EXPECT_EQ(*attributes.post_padding, Dims({0, 0}));
  EXPECT_EQ(attributes.stride, Dims({1, 1}));
}

TEST(Builder, ConvolutionGradients) {
  Graph g;
  const Value dy = g.input("dy", {2, 4, 7, 7}, bf16, channels_last);
  const Value w = g.input("w", {4, 3, 3, 2}, f32), x = g.input("x", {2, 6, 9, 8}, f32);
  EXPECT_EQ(facts(g.conv_backward_data(dy, w, {}, {.dims = {2, 6, 9, 8}})),
            channels({2, 6, 9, 8}, bf16));
  EXPECT_EQ(facts(g.conv_backward_filter(x, dy, {}, {.dims = {4, 3, 3, 2}})),
            packed({4, 3, 3, 2}, f32));
}

TEST(Builder, ConvolutionOfEmptyTensors) {
  Graph g;
  const Value w = g.input("w", {4, 3, 3, 3}, f32);
  EXPECT_EQ(g.conv(g.input("x", {0, 3, 5, 5}, f32), w).dims(), Dims({0, 4, 3, 3}));
  EXPECT_EQ(g.conv(g.input("thin", {1, 3, 0, 5}, f32), w).dims(), Dims({1, 4, 0, 3}));
}

TEST(Builder, Matmul) {
  Graph g;
  const Value a = g.input("a", {5, 1, 3, 4}, e4m3), b = g.input("b", {1, 2, 4, 6}, e5m2);
  EXPECT_EQ(facts(g.matmul(a, b)), packed({5, 2, 3, 6}, e4m3));
  EXPECT_EQ(facts(g.matmul(a, b, {.dtype = f32})), packed({5, 2, 3, 6}, f32));
  EXPECT_EQ(g.nodes()[0].compute, f32);
  const Value i = g.input("i", {3, 4}, i8), j = g.input("j", {4, 2}, u8);
  g.matmul(i, j, {.dtype = i32});
  EXPECT_EQ(g.nodes().back().compute, i32);
}

TEST(Builder, PointwiseBroadcasts) {
  Graph g;
  const Value x = g.input("x", {2, 3, 4, 5}, f16, channels_last),
              b = g.input("b", {1, 3, 1, 1}, f32);
  const Value s = g.scalar("s"), column = g.input("column", {2, 1, 4, 1}, f32);
  EXPECT_EQ(facts(x + b), channels({2, 3, 4, 5}, f16));
  EXPECT_EQ(facts(b + x), channels({2, 3, 4, 5}, f32));
  EXPECT_EQ(facts(s * x), channels({2, 3, 4, 5}, f16));
  EXPECT_EQ(facts(x * 2.0), channels({2, 3, 4, 5}, f16));
  EXPECT_EQ(facts(column + b), packed({2, 3, 4, 1}, f32));
  EXPECT_EQ(facts(s + s), packed({1, 1, 1, 1}, f32));
  EXPECT_EQ(facts(cast(x, e5m2)), channels({2, 3, 4, 5}, e5m2));
}

TEST(Builder, PointwiseBroadcastsAcrossRanks) {
  Graph g;
  const Value x = g.input("x", {8, 1, 6}, f16), b = g.input("b", {7, 1}, f32),
              row = g.input("row", {6}, bf16), one = g.input("one", {1}, f32);
  EXPECT_EQ(facts(x + b), packed({8, 7, 6}, f16));
  EXPECT_EQ(facts(b + x), packed({8, 7, 6}, f32));
  EXPECT_EQ(facts(row * b), packed({7, 6}, bf16));
  EXPECT_EQ(facts(one + x), packed({8, 1, 6}, f16));
  EXPECT_EQ(facts(g.scalar("s", f32, 1) * x), packed({8, 1, 6}, f16));
  EXPECT_EQ(facts(g.constant(2.0, f32, 1) - row), packed({6}, bf16));
  // Scalars and constants have no axes of their own.
  const Value s = g.scalar("four");
  EXPECT_EQ(facts(s * row), packed({6}, bf16));
  EXPECT_EQ(facts(b - g.constant(1.0)), packed({7, 1}, f32));
  EXPECT_EQ(facts(s * g.constant(1.0, f32, 2)), packed({1, 1, 1, 1}, f32));
  EXPECT_EQ(facts(select(g.input("p", {7, 1}, boolean), row, x)), packed({8, 7, 6}, bf16));
  for (const Value& value : {x, b, row}) EXPECT_EQ(facts(value + 1.0).dims, value.dims());
  // The graph is as it was written: nothing is reshaped before planning.
  for (const Node& node : g.nodes()) EXPECT_TRUE(std::holds_alternative<Pointwise>(node.op));
  g.output("y", x + b);
  const Graph read = Graph::from_json(g.to_json());
  EXPECT_EQ(read.to_text(), g.to_text());
  EXPECT_EQ(read.structural_hash(), g.structural_hash());
}

TEST(Builder, PointwiseModesHaveTheirTypes) {
  for (int i = 0; i < kPointwiseModeCount; ++i) {
    const auto mode = static_cast<PointwiseMode>(i);
    SCOPED_TRACE(std::string(enum_name(mode)));
    Graph g;
    const DType dtype = is_bitwise(mode) ? u8 : f16;
    std::vector<Value> operands = {g.input("x", {2, 3}, dtype), g.input("b", {2, 3}, dtype),
                                   g.input("p", {2, 3}, boolean)};
    operands.resize(static_cast<std::size_t>(operand_count(mode)));
    const Value y = g.pointwise(mode, operands);
    const DType expected = gives_boolean(mode)                ? boolean
                           : mode == PointwiseMode::gen_index ? i32
                                                              : dtype;
    EXPECT_EQ(facts(y), packed({2, 3}, expected));
  }
}

TEST(Builder, BitwiseModesComputeInTheirType) {
  Graph g;
  const Value x = g.input("x", {2, 3}, i8), count = g.input("count", {3}, i64);
  EXPECT_EQ(facts(pointwise(PointwiseMode::shift_left, x, count)), packed({2, 3}, i8));
  EXPECT_EQ(g.nodes().back().compute, i8);
  const Value flags = g.input("flags", {4}, boolean);
  EXPECT_EQ(facts(pointwise(PointwiseMode::bit_xor, flags, flags)), packed({4}, boolean));
  EXPECT_EQ(g.nodes().back().compute, boolean);
  g.output("y", pointwise(PointwiseMode::bit_not, x));
  EXPECT_EQ(Graph::from_json(g.to_json()).to_text(), g.to_text());
}

TEST(Builder, IdentityAndIndicesExpand) {
  Graph g;
  const Value x = g.input("x", {4, 1}, bf16);
  EXPECT_EQ(facts(expand(x, {3, 4, 5})), packed({3, 4, 5}, bf16));
  EXPECT_EQ(facts(expand(x, {4, 1})), packed({4, 1}, bf16));
  EXPECT_EQ(facts(full(g, {2, 3}, 1.5)), packed({2, 3}, f32));
  EXPECT_EQ(facts(iota(g, {2, 3})), packed({2, 3}, i32));
  EXPECT_EQ(std::get<Pointwise>(g.nodes().back().op).axis, 1);
  EXPECT_EQ(facts(expand(g.scalar("s", f16, 4), {6})), packed({6}, f16));
  g.output("y", expand(x, {2, 4, 1}));
  EXPECT_EQ(Graph::from_json(g.to_json()).to_text(), g.to_text());
}

TEST(Builder, ReductionOfBooleans) {
  Graph g;
  const Value x = g.input("x", {2, 3}, boolean);
  EXPECT_EQ(facts(g.reduce(x, ReductionMode::min, {1})), packed({2, 1}, boolean));
  EXPECT_EQ(facts(g.reduce(x, ReductionMode::max, {1})), packed({2, 1}, boolean));
  EXPECT_EQ(std::get<Reduction>(g.nodes().back().op).mode, ReductionMode::amax);
  EXPECT_EQ(facts(g.reduce(x, ReductionMode::avg, {1})), packed({2, 1}, f32));
  EXPECT_EQ(facts(g.reduce(x, ReductionMode::add, {1})), packed({2, 1}, i32));
  EXPECT_EQ(g.nodes().back().compute, i32);
  EXPECT_EQ(facts(g.reduce(x, ReductionMode::add, {1}, {.dtype = i64})), packed({2, 1}, i64));
  EXPECT_EQ(g.nodes().back().compute, i64);
  EXPECT_EQ(facts(g.reduce(x, ReductionMode::add, {1}, {.dtype = f16})), packed({2, 1}, f16));
  EXPECT_EQ(g.nodes().back().compute, f32);
}

TEST(Builder, SelectOfSingleValuesKeepsTheirType) {
  Graph g;
  const Value predicate = g.input("p", {2, 3}, boolean);
  const Value y = select(predicate, g.constant(1.0, f16, 2), g.constant(0.0, f16, 2));
  EXPECT_EQ(facts(y), packed({2, 3}, f16));
}

TEST(Builder, Reduction) {
  Graph g;
  const Value x = g.input("x", {2, 3, 4}, f32);
  EXPECT_EQ(facts(g.reduce(x, ReductionMode::add)), packed({1, 1, 1}, f32));
  EXPECT_EQ(facts(g.reduce(x, ReductionMode::max, {-1, 0})), packed({1, 3, 1}, f32));
  EXPECT_EQ(std::get<Reduction>(g.nodes().back().op).axes, Dims({0, 2}));
  EXPECT_EQ(facts(g.reduce(x, ReductionMode::avg, {}, {.dims = {2, 1, 4}})),
            packed({2, 1, 4}, f32));
  EXPECT_EQ(std::get<Reduction>(g.nodes().back().op).axes, Dims({1}));
  EXPECT_EQ(facts(g.reduce(x, ReductionMode::add, {}, {.dims = {2, 3, 4}})),
            packed({2, 3, 4}, f32));
}

TEST(Builder, Resample) {
  Graph g;
  const Value x = g.input("x", {1, 2, 7, 8}, f16, channels_last);
  EXPECT_EQ(facts(g.resample(x, {.window = {3, 2}})), channels({1, 2, 2, 4}, f16));
  EXPECT_EQ(facts(g.resample(x, {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}})),
            channels({1, 2, 4, 4}, f16));
  EXPECT_EQ(facts(g.resample(x, {.mode = ResampleMode::nearest, .size = {14, 3}})),
            channels({1, 2, 14, 3}, f16));
  const auto [y, index] = g.resample_with_index(x, {.window = {2, 2}}, i64);
  EXPECT_EQ(facts(index), channels({1, 2, 3, 4}, i64));
  const Value dy = g.input("dy", {1, 2, 3, 4}, f32);
  EXPECT_EQ(facts(g.resample_backward(dy, {.window = {2, 2}}, {}, x)), packed({1, 2, 7, 8}, f32));
  EXPECT_EQ(
      facts(g.resample_backward(dy, {.mode = ResampleMode::bilinear}, {.dims = {1, 2, 9, 9}})),
      packed({1, 2, 9, 9}, f32));
}

TEST(Builder, Norms) {
  Graph g;
  const Value x = g.input("x", {2, 6, 4, 5}, f16, channels_last);
  const auto results = [&](const NormForward& op, Dims parameters) {
    const Value scale = g.input("", parameters, f32);
    return g.norm(x, op, {.scale = scale, .bias = scale});
  };
  const auto layer = results({}, {1, 6, 4, 5});
  EXPECT_EQ(facts(layer.y), channels({2, 6, 4, 5}, f16));
  EXPECT_EQ(facts(layer.mean), packed({2, 1, 1, 1}, f32));
  EXPECT_EQ(results({.mode = NormMode::batch}, {1, 6, 1, 1}).mean.dims(), Dims({1, 6, 1, 1}));
  EXPECT_EQ(results({.mode = NormMode::instance}, {1, 6, 1, 1}).mean.dims(), Dims({2, 6, 1, 1}));
  EXPECT_EQ(results({.mode = NormMode::group, .groups = 3}, {1, 6, 1, 1}).mean.dims(),
            Dims({2, 3, 1, 1}));
  const auto rms = results({.mode = NormMode::rms}, {1, 1, 1, 5});
  EXPECT_FALSE(rms.mean);
  EXPECT_EQ(rms.inv_variance.dims(), Dims({2, 6, 4, 1}));
  const auto inference = results({.phase = NormPhase::inference}, {1, 6, 4, 5});
  EXPECT_FALSE(inference.mean);
  EXPECT_FALSE(inference.next_running_mean);
  // Without scale, all axes but the first; a scale with one element spans no axis and has the same
  // default.
  g.norm(x);
  EXPECT_EQ(std::get<NormForward>(g.nodes().back().op).axes, Dims({1, 2, 3}));
  g.norm(g.input("thin", {8, 1}, f32), {}, {.scale = g.input("one", {1, 1}, f32)});
  EXPECT_EQ(std::get<NormForward>(g.nodes().back().op).axes, Dims({1}));
}

TEST(Builder, NormGradients) {
  Graph g;
  const Value x = g.input("x", {2, 6, 4}, f16), dy = g.input("dy", {2, 6, 4}, f32);
  const Value scale = g.input("scale", {1, 6, 1}, f16);
  const auto with = g.norm_backward(x, dy, {.mode = NormMode::batch}, {.scale = scale});
  EXPECT_EQ(facts(with.dx), packed({2, 6, 4}, f16));
  EXPECT_EQ(facts(with.dscale), packed({1, 6, 1}, f32));
  EXPECT_EQ(facts(with.dbias), packed({1, 6, 1}, f32));
  EXPECT_FALSE(g.norm_backward(x, dy, {.mode = NormMode::batch}).dscale);
}

TEST(Builder, Softmax) {
  Graph g;
  const Value x = g.input("x", {2, 3, 4}, bf16);
  EXPECT_EQ(facts(g.softmax(x)), packed({2, 3, 4}, bf16));
  EXPECT_EQ(std::get<SoftmaxForward>(g.nodes().back().op).axis, 2);
  EXPECT_EQ(facts(g.softmax_backward(x, x, {.axis = -3})), packed({2, 3, 4}, bf16));
  EXPECT_EQ(std::get<SoftmaxBackward>(g.nodes().back().op).axis, 0);
}

TEST(Builder, Attention) {
  Graph g;
  // Heads interleaved in memory: [B, S, H, D] written as [B, H, S, D].
  const Value q = g.input("q", {2, 8, 5, 16}, f16, Dims{640, 16, 128, 1});
  const Value k = g.input("k", {2, 2, 7, 16}, f16), v = g.input("v", {2, 4, 7, 6}, f16);
  const auto [o, stats] = g.attention(q, k, v, {}, {}, true);
  EXPECT_EQ(o.dims(), Dims({2, 8, 5, 6}));
  EXPECT_EQ(o.tensor().strides, Dims({240, 6, 48, 1}));
  EXPECT_EQ(facts(stats), packed({2, 8, 5, 1}, f32));
  EXPECT_EQ(*std::get<AttentionForward>(g.nodes().back().op).scale, 0.25);
  const auto gradients = g.attention_backward(q, k, v, o, o, stats);
  EXPECT_EQ(facts(gradients.dq), facts(q));
  EXPECT_EQ(facts(gradients.dk), facts(k));
  EXPECT_EQ(facts(gradients.dv), facts(v));
  EXPECT_FALSE(gradients.dbias);
}

TEST(Builder, RaggedTensors) {
  Graph g;
  const Value offsets = g.input("offsets", {3, 1, 1, 1}, i32);
  const Value q = g.ragged_input("q", {2, 1, 4, 8}, f16, row_major, offsets);
  EXPECT_EQ(byte_size(q.tensor()), 2 * 4 * 8 * 2);
  const auto o = g.attention(q, q, q).first;
  g.set_ragged(o, offsets);
  g.output("o", o);
  g.validate();
  EXPECT_EQ(g.tensor(g.find_tensor("o")).ragged_offset, offsets.id());
  // The offsets of a ragged result are known only at run time: any batch stride is valid.
  Tensor loose{
      .name = "loose", .infer_dtype = true, .dims = {2, 1, 4, 8}, .strides = {0, 32, 8, 1}};
  loose.ragged_offset = offsets.id();
  const TensorId id = g.add_tensor(loose);
  EXPECT_NO_THROW(g.add_node({.name = "a",
                              .op = AttentionForward{},
                              .inputs = {q.id(), q.id(), q.id()},
                              .outputs = {id}}));
}

TEST(Builder, DataMovement) {
  Graph g;
  const Value x = g.input("x", {2, 3, 4}, i32);
  EXPECT_EQ(facts(g.reshape(x, {6, -1})), packed({6, 4}, i32));
  EXPECT_EQ(facts(g.reshape(x, {-1})), packed({24}, i32));
  EXPECT_EQ(facts(g.reshape(x, {}, {.dims = {4, 6}})), packed({4, 6}, i32));
  EXPECT_EQ(facts(g.reshape(g.input("none", {0, 3}, f32), {-1, 7})), packed({0, 7}, f32));
  EXPECT_EQ(facts(g.transpose(x, {2, 0, 1})), packed({4, 2, 3}, i32));
  EXPECT_EQ(facts(g.slice(x, {0, 1, 0}, {2, 3, 4}, {1, 1, 3})), packed({2, 2, 2}, i32));
  EXPECT_EQ(facts(g.slice(x, {1, 3, 0}, {2, 3, 4})), packed({1, 0, 4}, i32));
  EXPECT_EQ(facts(g.concat(std::array{x, x, x}, -2)), packed({2, 9, 4}, i32));
  EXPECT_EQ(std::get<Concat>(g.nodes().back().op).axis, 1);
}

TEST(Builder, Rng) {
  Graph g;
  EXPECT_EQ(facts(g.rng({2, 3}, {})), packed({2, 3}, f32));
  EXPECT_EQ(facts(g.rng({9}, {}, {.dtype = boolean})), packed({9}, boolean));
  EXPECT_EQ(byte_size(g.tensors().back()), 2);
  EXPECT_EQ(g.nodes()[0].compute, f32);
}

TEST(Builder, ComputeFollowsTheOperands) {
  Graph g;
  const auto compute = [&](DType a, DType b) {
    g.input("", {2}, a) + g.input("", {2}, b);
    return g.nodes().back().compute;
  };
  EXPECT_EQ(compute(f16, e4m3), f32);
  EXPECT_EQ(compute(f16, f64), f64);
  EXPECT_EQ(compute(i8, u8), i32);
  EXPECT_EQ(compute(i32, i64), i64);
  EXPECT_EQ(compute(i64, bf16), f32);
  EXPECT_EQ(compute(boolean, boolean), f32);
}

TEST(Builder, OutputMayChangeTypeAndLayout) {
  Graph g;
  const Value x = g.input("x", {1, 2, 3, 3}, f32);
  const Value y = g.output("y", relu(x), {.dtype = f16, .layout = channels_last});
  EXPECT_EQ(facts(y), channels({1, 2, 3, 3}, f16));
  EXPECT_EQ(g.nodes().size(), 1u);
  // A value that already has readers is copied; so is an input.
  const Value shared = exp(x);
  g.output("z", sqrt(shared));
  const Value copy = g.output("copy", shared, {.dtype = bf16});
  EXPECT_NE(copy.id(), shared.id());
  EXPECT_EQ(shared.dtype(), f32);
  EXPECT_EQ(copy.dtype(), bf16);
  EXPECT_EQ(g.output("same", x).tensor().kind, TensorKind::output);
  EXPECT_EQ(x.tensor().kind, TensorKind::input);
  g.validate();
}

TEST(Builder, BoundTensorsComeInOrder) {
  Graph g;
  const Value x = g.input("x", {2}, f32), s = g.scalar("s", f32, 1);
  const Value y = g.output("y", x * s + 1.0);
  EXPECT_EQ(g.bound_tensors(), (std::vector<TensorId>{x.id(), s.id(), y.id()}));
}

TEST(Builder, MovingAGraphKeepsItsValues) {
  Graph first;
  const Value x = first.input("x", {2, 3}, f32);
  Graph second = std::move(first);
  const Value y = relu(x);
  EXPECT_EQ(second.tensor(y.id()).dims, Dims({2, 3}));
  Graph third("other");
  third = std::move(second);
  third.output("y", y + 1.0);
  third.validate();
  EXPECT_EQ(third.nodes().size(), 2u);
}

TEST(Builder, CloneIsIndependent) {
  Graph g("original");
  g.output("y", relu(g.input("x", {2}, f32)));
  Graph copy = g.clone();
  exp(copy.value(0));
  EXPECT_EQ(copy.nodes().size(), 2u);
  EXPECT_EQ(g.nodes().size(), 1u);
  EXPECT_EQ(copy.name(), "original");
}

TEST(Builder, IntermediatesDoNotTakeUids) {
  Graph g;
  const Value x = g.input("x", {2}, f32), inner = relu(x), y = g.output("y", exp(inner));
  g.set_uid(x, inner.tensor().uid);
  g.set_uid(y, 1);
  EXPECT_NO_THROW(g.validate());
}

TEST(Builder, StridedResultsMustNotOverlap) {
  Graph g;
  const Value x = g.input("x", {2, 3}, f32);
  const auto neg = [&](const Dims& strides) {
    return g.pointwise(PointwiseMode::neg, std::array{x}, {}, {.layout = Layout(strides)});
  };
  EXPECT_NO_THROW(neg({8, 1}));
  EXPECT_NO_THROW(neg({1, 2}));
  EXPECT_NO_THROW(neg({3, 2}));  // interleaved, but all addresses differ: 0 2 4 3 5 7
  EXPECT_THROW(neg({2, 1}), Error);
  EXPECT_THROW(neg({0, 1}), Error);
}

TEST(Builder, SizesOf64Bits) {
  Graph g;
  const std::int64_t many = std::int64_t{1} << 40;
  const Value y = relu(g.input("x", {many}, f32));
  EXPECT_EQ(byte_size(y.tensor()), 4 * many);
  EXPECT_EQ(byte_size(g.input("bits", {8 * many + 1}, boolean).tensor()), many + 1);
}

TEST(Builder, AFailureLeavesTheGraphAsItWas) {
  for (const BadInput& row : bad_inputs()) {
    if (row.op == "json" || row.op == "graph") continue;
    Graph g;
    try {
      row.attempt(g);
    } catch (const Error&) {
    }
    SCOPED_TRACE(row.name);
    for (const Node& node : g.nodes()) EXPECT_NE(node.name, "bad");
    for (const Tensor& tensor : g.tensors()) EXPECT_NE(tensor.name, "bad");
    // The graph is still valid afterwards.
    g.output("y", relu(g.input("fresh", {2}, f32)));
    EXPECT_GT(g.to_text().size(), 10u);
  }
}

TEST(Builder, TensorsAndNodesAreCountedAfterFailure) {
  Graph g;
  const Value x = g.input("x", {2, 3}, f32), w = g.input("w", {4, 5}, f32);
  const std::string before = g.to_json();
  EXPECT_THROW(g.matmul(x, w), Error);
  EXPECT_THROW(g.softmax(x, {.axis = 9}), Error);
  EXPECT_THROW(g.norm(x, {}, {.scale = w, .bias = w}), Error);
  EXPECT_THROW(g.resample_with_index(x, {.window = {1, 1}}), Error);
  EXPECT_THROW(g.output("y", x, {.layout = Layout(Dims{0, 0})}), Error);
  EXPECT_THROW(g.add_tensor({.name = "t", .kind = TensorKind::input}), Error);
  EXPECT_EQ(g.to_json(), before);
  EXPECT_EQ(g.tensors().size(), 2u);
  EXPECT_TRUE(g.nodes().empty());
}

TEST(Text, OneLinePerTensorAndNode) {
  Graph g("block");
  const Value x = g.input("x", {1, 8, 4, 4}, f16, channels_last);
  const Value w = g.input("w", {8, 8, 3, 3}, f16), b = g.input("b", {1, 8, 1, 1}, f32);
  const Value c = g.conv(x, w, {.padding = {1, 1}}, {.name = "c"});
  g.output("y", relu(c * 0.5 + b));
  const std::string nhwc = "f16[1, 8, 4, 4] strides [128, 1, 32, 8]";
  EXPECT_EQ(g.to_text(),
            "graph block\n"
            "  input    x: " +
                nhwc +
                "\n"
                "  input    w: f16[8, 8, 3, 3]\n"
                "  input    b: f32[1, 8, 1, 1]\n"
                "  constant constant_4: f32[1, 1, 1, 1] = 0.5\n"
                "  output   y: " +
                nhwc +
                "\n"
                "  c: " +
                nhwc +
                " = conv_forward(x=x, w=w, padding=[1, 1], post_padding=[1, 1], "
                "stride=[1, 1], dilation=[1, 1]) in f32\n"
                "  pointwise_1.y: " +
                nhwc +
                " = pointwise(x=c, b=constant_4, mode=mul) in f32\n"
                "  pointwise_2.y: " +
                nhwc +
                " = pointwise(x=pointwise_1.y, b=b, mode=add) in f32\n"
                "  y: " +
                nhwc + " = pointwise(x=pointwise_2.y, mode=relu_fwd) in f32\n");
}

}  // namespace
}  // namespace ashlar::tests

// GPT-2 blocks as frameworks write them, for tests of planning.
#pragma once

#include <ashlar/graph.hpp>
#include <cmath>
#include <string>

namespace ashlar::support {

struct GptShape {
  std::int64_t layers = 1, batch = 8, sequence = 2048, heads = 12, head_size = 64;
  DType dtype = bf16;
  bool composite_attention = false;  // matmul, scale, mask, softmax, matmul
};

// x -> norm, qkv, attention, projection, residual, norm, up, gelu, down, residual -> y: 21
// operations per layer, 29 with composite attention.
inline Graph gpt_graph(const GptShape& shape) {
  Graph g("gpt");
  const std::int64_t batch = shape.batch, sequence = shape.sequence, heads = shape.heads,
                     size = shape.head_size, width = heads * size;
  const DType dtype = shape.dtype;
  Value x = g.input("x", {batch, sequence, width}, dtype);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const auto weight = [&](const std::string& name, Dims dims) {
      return g.input("l" + std::to_string(layer) + "." + name, dims, dtype);
    };
    const auto linear = [&](Value in, const std::string& name, std::int64_t from, std::int64_t to) {
      return g.matmul(in, weight(name + ".w", {1, from, to})) + weight(name + ".b", {1, 1, to});
    };
    const auto norm = [&](Value in, const std::string& name) {
      NormForward op;
      op.phase = NormPhase::inference;
      return g.apply(op,
                     {{NormForward::x, in},
                      {NormForward::scale, weight(name + ".scale", {1, 1, width})},
                      {NormForward::bias, weight(name + ".bias", {1, 1, width})}},
                     {NormForward::y})[NormForward::y];
    };
    const Value qkv = linear(norm(x, "norm1"), "qkv", width, 3 * width);
    const Value all = g.transpose(g.reshape(qkv, {batch, sequence, 3 * heads, size}), {0, 2, 1, 3});
    const auto part = [&](std::int64_t i) {
      return g.slice(all, {0, i * heads, 0, 0}, {batch, (i + 1) * heads, sequence, size});
    };
    const Value q = part(0), k = part(1), v = part(2);
    Value heads_out;
    if (shape.composite_attention) {
      Value scores = g.matmul(q, g.transpose(k, {0, 1, 3, 2})) * (1 / std::sqrt(double(size)));
      const auto index = [&](std::int64_t axis) {
        Pointwise along;
        along.axis = axis;
        return g.pointwise(PointwiseMode::gen_index, std::array{scores}, along, {});
      };
      scores = select(pointwise(PointwiseMode::cmp_ge, index(2), index(3)), scores,
                      g.constant(-std::numeric_limits<double>::infinity(), dtype, 4));
      heads_out = g.matmul(g.softmax(scores, {.axis = 3}), v);
    } else {
      AttentionAttributes causal;
      causal.right_bound = 0;
      heads_out = g.attention(q, k, v, causal).first;
    }
    const Value joined = g.reshape(g.transpose(heads_out, {0, 2, 1, 3}), {batch, sequence, width});
    x = linear(joined, "projection", width, width) + x;
    const Value up = gelu_tanh(linear(norm(x, "norm2"), "up", width, 4 * width));
    x = linear(up, "down", 4 * width, width) + x;
  }
  g.output("y", x);
  return g;
}

}  // namespace ashlar::support

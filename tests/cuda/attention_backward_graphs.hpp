// Graphs with one attention_backward for the tests of its engines.
#pragma once

#include <ashlar/ashlar.hpp>
#include <optional>
#include <vector>

namespace ashlar::cuda {

struct AttentionBackwardGraph {
  DType dtype = bf16;
  std::int64_t batch = 1, heads = 2, key_heads = 2;
  std::int64_t queries = 128, keys = 128, head_dim = 128, value_dim = 0;  // 0: as head_dim
  std::optional<std::int64_t> left_bound = {}, right_bound = {};
  MaskAlignment alignment = MaskAlignment::top_left;
  std::optional<double> scale = {};
  bool has_scale_tensor = false, has_lengths = false;
  bool heads_inside = false;  // bshd

  Graph graph() const {
    using Op = AttentionBackward;
    const auto layout = [&](const Dims& dims) {
      return heads_inside ? Layout(Dims{dims[1] * dims[2] * dims[3], dims[3], dims[1] * dims[3], 1})
                          : Layout(row_major);
    };
    Graph graph;
    const auto input = [&](const char* name, const Dims& dims) {
      return graph.input(name, dims, dtype, layout(dims));
    };
    Op op;
    op.left_bound = left_bound;
    op.right_bound = right_bound;
    op.alignment = alignment;
    op.scale = scale;
    const std::int64_t value_columns = value_dim == 0 ? head_dim : value_dim;
    std::vector<Operand<Op>> operands = {
        {Op::q, input("q", {batch, heads, queries, head_dim})},
        {Op::k, input("k", {batch, key_heads, keys, head_dim})},
        {Op::v, input("v", {batch, key_heads, keys, value_columns})},
        {Op::o, input("o", {batch, heads, queries, value_columns})},
        {Op::d_o, input("d_o", {batch, heads, queries, value_columns})},
        {Op::stats, graph.input("stats", {batch, heads, queries, 1}, f32)}};
    if (has_lengths) {
      operands.push_back({Op::seq_len_q, graph.input("seq_len_q", {batch, 1, 1, 1}, i32)});
      operands.push_back({Op::seq_len_kv, graph.input("seq_len_kv", {batch, 1, 1, 1}, i32)});
    }
    if (has_scale_tensor)
      operands.push_back({Op::scale_tensor, graph.input("scale", {1, 1, 1, 1}, f32)});
    const auto all = graph.apply(op, operands, {Op::dq, Op::dk, Op::dv});
    graph.output("dq", all[Op::dq]);
    graph.output("dk", all[Op::dk]);
    graph.output("dv", all[Op::dv]);
    return graph;
  }
};

}  // namespace ashlar::cuda

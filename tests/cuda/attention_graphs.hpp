// Graphs of one attention_forward, for the tests of its engines.
#pragma once

#include <ashlar/ashlar.hpp>

namespace ashlar::cuda {

struct AttentionGraph {
  std::int64_t batch = 1, heads = 2, key_heads = 2, queries = 70, keys = 70, head_dim = 64,
               value_dim = 0;  // 0: head_dim
  DType dtype = bf16;
  AttentionAttributes attributes = {};
  bool tokens_outside = false;   // [B, S, H, D] in memory
  std::int64_t value_heads = 0;  // 0: key_heads
  bool ragged = false;           // that, without padding; with lengths
  bool lengths = false, sink = false, scale_tensor = false, statistics = false;
  bool seeded = false, block_mask = false;  // with attributes.dropout, block_rows, block_columns
  Dims bias = {};
  std::int64_t page = 0;  // rows of a page of k and v; 0: not paged

  Graph graph() const {
    using Op = AttentionForward;
    Graph g("attention");
    const std::int64_t dv = value_dim == 0 ? head_dim : value_dim;
    const auto operand = [&](const char* name, std::int64_t h, std::int64_t s, std::int64_t d) {
      const Dims tokens = {s * h * d, d, h * d, 1};
      if (ragged)
        return g.ragged_input(name, {batch, h, s, d}, dtype, tokens,
                              g.input(std::string(name) + "_rows", {batch + 1, 1, 1, 1}, i32));
      const Layout layout = tokens_outside ? Layout(tokens) : Layout(row_major);
      return g.input(name, {batch, h, s, d}, dtype, layout);
    };
    const std::int64_t pages = page == 0 ? 0 : (keys + page - 1) / page;  // of a batch
    const auto cache = [&](const char* name, std::int64_t h, std::int64_t d) {
      if (page == 0) return operand(name, h, keys, d);
      return g.input(name, {batch * pages + 1, h, page, d}, dtype);
    };
    Op op{attributes};
    std::vector<Operand<Op>> inputs = {
        {Op::q, operand("q", heads, queries, head_dim)},
        {Op::k, cache("k", key_heads, head_dim)},
        {Op::v, cache("v", value_heads == 0 ? key_heads : value_heads, dv)}};
    if (page > 0) {
      op.max_seq_len_kv = keys;
      inputs.push_back({Op::page_table_k, g.input("pages_k", {batch, 1, pages, 1}, i32)});
      inputs.push_back({Op::page_table_v, g.input("pages_v", {batch, 1, pages, 1}, i32)});
    }
    if (lengths) {
      inputs.push_back({Op::seq_len_q, g.input("lengths_q", {batch, 1, 1, 1}, i32)});
      inputs.push_back({Op::seq_len_kv, g.input("lengths_kv", {batch, 1, 1, 1}, i32)});
    }
    if (sink) inputs.push_back({Op::sink, g.input("sink", {1, heads, 1, 1}, f32)});
    if (scale_tensor) inputs.push_back({Op::scale_tensor, g.input("scale", {1, 1, 1, 1}, f32)});
    if (!bias.empty()) inputs.push_back({Op::bias, g.input("bias", bias, dtype)});
    if (seeded) inputs.push_back({Op::dropout_seed, g.input("seed", {1, 1, 1, 1}, i64)});
    if (block_mask) {
      const std::int64_t rows = attributes.block_rows, columns = attributes.block_columns;
      const Dims blocks = {batch, 1, (queries + rows - 1) / rows, (keys + columns - 1) / columns};
      inputs.push_back({Op::block_mask, g.input("blocks", blocks, boolean)});
    }
    std::vector<Wanted<Op>> wanted = {Op::o};
    if (statistics)
      for (const Op::Out slot : {Op::stats, Op::max, Op::sum_exp}) wanted.emplace_back(slot);
    const auto results = g.apply(op, inputs, wanted);
    const Value o = g.output("o", results[Op::o]);
    if (ragged) g.set_ragged(o, g.value(g.find_tensor("q_rows")));
    if (statistics) {
      g.output("stats", results[Op::stats]);
      g.output("max", results[Op::max]);
      g.output("sum_exp", results[Op::sum_exp]);
    }
    return g;
  }
};

}  // namespace ashlar::cuda

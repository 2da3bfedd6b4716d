// Tiled attention, forward and backward, against the oracle.
#include <functional>

#include "cpu/plan_check.hpp"
#include "support/guard_page.hpp"

namespace ashlar::cpu {
namespace {

struct TiledCase {
  std::int64_t batch = 2, heads = 2, k_heads = 2, v_heads = 2, queries = 20, keys = 30,
               head_dim = 16, value_dim = 16;
  AttentionAttributes op = {};
  DType dtype = f32;
  Layout layout = row_major;
  Dims bias = {};
  bool lengths = false;
  bool mask = false;
};

// The optional operands of a case.
AttentionOperands operands(Graph& graph, const TiledCase& c) {
  AttentionOperands result;
  const DType wide = c.dtype == f64 ? f64 : f32;
  if (!c.bias.empty()) result.bias = graph.input("bias", c.bias, wide);
  if (c.lengths) {
    result.seq_len_q = graph.input("seq_len_q", {c.batch, 1, 1, 1}, i32);
    result.seq_len_kv = graph.input("seq_len_kv", {c.batch, 1, 1, 1}, i32);
  }
  if (c.op.dropout > 0 && c.mask)
    result.dropout_mask = graph.input("mask", {c.batch, c.heads, c.queries, c.keys}, boolean);
  if (c.op.dropout > 0 && !c.mask) {
    result.dropout_seed = graph.input("seed", {1, 1, 1, 1}, i64);
    result.dropout_offset = graph.input("offset", {1, 1, 1, 1}, i64);
  }
  return result;
}

void set_integers(PlanCheck& plan, const TiledCase& c) {
  if (c.lengths) {
    std::vector<double> queries, keys;
    for (std::int64_t b = 0; b < c.batch; ++b) {
      queries.push_back(static_cast<double>(b == 0 ? c.queries - 1 : c.queries / 2));
      keys.push_back(static_cast<double>(b == 0 ? c.keys / 2 : c.keys - 1));
    }
    plan.set("seq_len_q", queries);
    plan.set("seq_len_kv", keys);
  }
  if (c.op.dropout > 0 && c.mask) plan.fill("mask", 0.0, 1.0);
  if (c.op.dropout > 0 && !c.mask) {
    plan.set("seed", {123456789.0});
    plan.set("offset", {7.0});
  }
}

void check_forward(const TiledCase& c) {
  Graph graph;
  Value q = graph.input("q", {c.batch, c.heads, c.queries, c.head_dim}, c.dtype, c.layout);
  Value k = graph.input("k", {c.batch, c.k_heads, c.keys, c.head_dim}, c.dtype, c.layout);
  Value v = graph.input("v", {c.batch, c.v_heads, c.keys, c.value_dim}, c.dtype, c.layout);
  const auto [o, stats] = graph.attention(q, k, v, c.op, operands(graph, c), true);
  graph.output("o", o);
  graph.output("stats", stats);
  PlanCheck plan(std::move(graph));
  set_integers(plan, c);
  plan.expect_agrees("cpu.attention_tiled");
}

// The gradients of one forward pass, in the same graph, so that o and stats match q, k and v.
void check_backward(const TiledCase& c) {
  Graph graph;
  Value q = graph.input("q", {c.batch, c.heads, c.queries, c.head_dim}, c.dtype, c.layout);
  Value k = graph.input("k", {c.batch, c.k_heads, c.keys, c.head_dim}, c.dtype, c.layout);
  Value v = graph.input("v", {c.batch, c.v_heads, c.keys, c.value_dim}, c.dtype, c.layout);
  Value d_o = graph.input("do", {c.batch, c.heads, c.queries, c.value_dim}, c.dtype, c.layout);
  const AttentionOperands extra = operands(graph, c);
  const auto [o, stats] = graph.attention(q, k, v, c.op, extra, true);
  graph.output("o", o);
  graph.output("stats", stats);
  const AttentionGradients gradients =
      graph.attention_backward(q, k, v, o, d_o, stats, c.op, extra, !c.bias.empty());
  graph.output("dq", gradients.dq);
  graph.output("dk", gradients.dk);
  graph.output("dv", gradients.dv);
  if (!c.bias.empty()) graph.output("dbias", gradients.dbias);
  PlanCheck plan(std::move(graph));
  set_integers(plan, c);
  plan.expect_agrees("cpu.attention_tiled_backward");
}

void check(const char* what, const std::function<void(TiledCase&)>& change) {
  SCOPED_TRACE(what);
  TiledCase c;
  change(c);
  check_forward(c);
  check_backward(c);
}

TEST(AttentionTiled, Plain) {
  check("plain", [](TiledCase&) {});
}

TEST(AttentionTiled, SizesAroundTheTiles) {
  for (std::int64_t queries : {1, 3, 8, 9, 63, 127, 129, 217})
    for (std::int64_t keys : {1, 127, 128, 130})
      check("sizes", [&](TiledCase& c) {
        c.batch = 1, c.heads = c.k_heads = c.v_heads = 1, c.queries = queries, c.keys = keys;
      });
}

// One head for all threads: keys are split (flash decoding).
TEST(AttentionTiled, FewQueriesManyKeys) {
  for (std::int64_t queries : {1, 4, 20})
    for (bool causal : {false, true})
      check("parts of keys", [&](TiledCase& c) {
        c.batch = 1, c.heads = 3, c.k_heads = c.v_heads = 1, c.queries = queries, c.keys = 1100;
        if (causal) c.op.right_bound = 0, c.op.alignment = MaskAlignment::bottom_right;
      });
}

// More queries than the backward engine packs at once.
TEST(AttentionTiled, ManyQueries) {
  check("causal", [](TiledCase& c) {
    c.batch = 1, c.heads = c.k_heads = c.v_heads = 1, c.queries = 1100, c.keys = 300;
    c.op.right_bound = 0, c.op.alignment = MaskAlignment::bottom_right;
  });
  check("window", [](TiledCase& c) {
    c.batch = 1, c.heads = 2, c.k_heads = c.v_heads = 1, c.queries = 1100, c.keys = 1100;
    c.op.right_bound = 3, c.op.left_bound = 40;
  });
}

TEST(AttentionTiled, HeadDims) {
  for (std::int64_t dim : {1, 7, 40, 130})
    check("head dims", [&](TiledCase& c) {
      c.batch = 1, c.queries = 9, c.head_dim = dim, c.value_dim = dim / 2 + 3;
    });
}

TEST(AttentionTiled, Masks) {
  for (MaskAlignment alignment : {MaskAlignment::top_left, MaskAlignment::bottom_right})
    for (bool lengths : {false, true}) {
      check("causal", [&](TiledCase& c) {
        c.op.right_bound = 0, c.op.alignment = alignment, c.lengths = lengths;
      });
      check("window", [&](TiledCase& c) {
        c.op.right_bound = 2, c.op.left_bound = 5, c.op.alignment = alignment, c.lengths = lengths;
        c.queries = 150, c.keys = 140, c.batch = c.lengths ? 2 : 1;
      });
      check("more queries than keys", [&](TiledCase& c) {
        c.op.right_bound = 0, c.op.alignment = alignment, c.lengths = lengths, c.queries = 33,
        c.keys = 10;
      });
    }
}

TEST(AttentionTiled, Biases) {
  for (const Dims& bias : {Dims{2, 4, 20, 30}, Dims{1, 4, 20, 30}, Dims{1, 1, 20, 30},
                           Dims{2, 1, 1, 30}, Dims{1, 4, 20, 1}})
    check("bias", [&](TiledCase& c) { c.heads = 4, c.k_heads = 2, c.v_heads = 4, c.bias = bias; });
}

TEST(AttentionTiled, GroupedHeads) {
  check("gqa", [](TiledCase& c) { c.heads = 6, c.k_heads = 2, c.v_heads = 2; });
  check("mqa", [](TiledCase& c) { c.heads = 4, c.k_heads = 1, c.v_heads = 1, c.queries = 1; });
  check("k and v differ",
        [](TiledCase& c) { c.heads = 6, c.k_heads = 2, c.v_heads = 3, c.queries = 2; });
}

TEST(AttentionTiled, Dropout) {
  check("seed", [](TiledCase& c) { c.op.dropout = 0.3; });
  check("mask", [](TiledCase& c) { c.op.dropout = 0.3, c.mask = true; });
}

TEST(AttentionTiled, DtypesLayoutsScale) {
  for (DType dtype : kFloats)
    check("dtype", [&](TiledCase& c) {
      c.dtype = dtype, c.op.scale = 0.37, c.batch = 1;
      c.layout = Layout(Dims{4096, 16, 64, 1});  // [B, S, H, D] in memory
    });
}

TEST(AttentionTiled, BiasOfMinusInfinityHidesRows) {
  Graph graph;
  Value q = graph.input("q", {1, 1, 3, 4}, f32), k = graph.input("k", {1, 1, 3, 4}, f32),
        v = graph.input("v", {1, 1, 3, 4}, f32);
  AttentionOperands extra;
  extra.bias = graph.input("bias", {1, 1, 3, 3}, f32);
  const auto [o, stats] = graph.attention(q, k, v, {}, extra, true);
  graph.output("o", o);
  graph.output("stats", stats);
  PlanCheck plan(std::move(graph));
  constexpr double kInf = std::numeric_limits<double>::infinity();
  plan.set("bias", {0, 0, 0, -kInf, -kInf, -kInf, -kInf, 0, -kInf});
  plan.expect_agrees("cpu.attention_tiled");
  EXPECT_EQ(plan.get("stats")[1], -kInf);
  EXPECT_EQ(plan.get("o")[4], 0.0);
}

// One query per head: the row after the last one of q, k or v is in no allocation.
TEST(AttentionTiled, ReadsNothingPastItsOperands) {
  for (DType dtype : {f32, bf16, f16, e4m3})
    for (std::int64_t queries : {1, 2, 9})
      for (bool strided : {false, true}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + ", " + std::to_string(queries) + " queries" +
                     (strided ? ", strided" : ""));
        constexpr std::int64_t kDim = 64;
        Graph graph;
        const Dims dims{1, 2, queries, kDim};
        const Layout layout =
            strided ? Layout(Dims{2 * queries * kDim, 1, 2 * kDim, 2}) : Layout(row_major);
        Value q = graph.input("q", dims, dtype, layout), k = graph.input("k", dims, dtype),
              v = graph.input("v", dims, dtype);
        graph.output("o", graph.attention(q, k, v, {}).first);
        const Plan plan = compile(graph, Device::cpu(), {.engine = "cpu.attention_tiled"});
        EXPECT_NE(plan.to_json().find("cpu.attention_tiled"), std::string::npos);
        const auto bytes = static_cast<std::size_t>(2 * queries * kDim * bit_width(dtype) / 8);
        support::BytesBeforeGuardPage pq(bytes), pk(bytes), pv(bytes), po(bytes),
            workspace(static_cast<std::size_t>(plan.workspace_size() + 63) / 64 * 64);
        plan.run({{"q", pq.data()}, {"k", pk.data()}, {"v", pv.data()}, {"o", po.data()}},
                 workspace.data());
        for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(po.data()[i], std::byte{0});
      }
}

TEST(AttentionTiled, Ragged) {
  // Two sequences of 5 and 3 tokens, packed consecutively: [tokens, heads, dim].
  constexpr std::int64_t kHeads = 2, kDim = 8, kMost = 5, kToken = kHeads * kDim;
  Graph graph;
  Value offsets = graph.input("offsets", {3, 1, 1, 1}, i64);
  const Layout packed(Dims{kMost * kToken, kDim, kToken, 1});
  const Dims dims{2, kHeads, kMost, kDim};
  Value q = graph.ragged_input("q", dims, f32, packed, offsets),
        k = graph.ragged_input("k", dims, f32, packed, offsets);
  Value v = graph.ragged_input("v", dims, f32, packed, offsets);
  AttentionOperands extra;
  extra.seq_len_q = graph.input("seq_len_q", {2, 1, 1, 1}, i32);
  extra.seq_len_kv = graph.input("seq_len_kv", {2, 1, 1, 1}, i32);
  AttentionAttributes op;
  op.right_bound = 0;
  Value o = graph.output("o", graph.attention(q, k, v, op, extra).first, {.layout = packed});
  graph.set_ragged(o, offsets);
  // The same without ragged memory.
  Graph dense;
  Value dq = dense.input("q", dims, f32, packed), dk = dense.input("k", dims, f32, packed),
        dv = dense.input("v", dims, f32, packed);
  AttentionOperands dense_extra;
  dense_extra.seq_len_q = dense.input("seq_len_q", {2, 1, 1, 1}, i32);
  dense_extra.seq_len_kv = dense.input("seq_len_kv", {2, 1, 1, 1}, i32);
  dense.output("o", dense.attention(dq, dk, dv, op, dense_extra).first, {.layout = packed});

  std::vector<float> memory(3 * 8 * kToken), o_ragged(8 * kToken, -7.0f), o_dense(10 * kToken);
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<float>(static_cast<double>(i * 37 % 101) / 50.0 - 1.0);
  const std::int64_t starts[] = {0, 5 * kToken, 8 * kToken};
  const std::int32_t lengths[] = {5, 3};
  const float *pq = memory.data(), *pk = pq + 8 * kToken, *pv = pk + 8 * kToken;
  const Plan plan = compile(graph, Device::cpu());
  EXPECT_NE(plan.to_json().find("cpu.attention_tiled"), std::string::npos);
  std::vector<std::byte> workspace(static_cast<std::size_t>(plan.workspace_size()) + 64);
  const auto align = [](std::vector<std::byte>& block) {
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(block.data()) + 63) / 64 * 64);
  };
  plan.run({{"offsets", starts},
            {"q", pq},
            {"k", pk},
            {"v", pv},
            {"seq_len_q", lengths},
            {"seq_len_kv", lengths},
            {"o", o_ragged.data()}},
           align(workspace));
  // Dense memory: the second sequence starts at its own stride.
  std::vector<float> spread[3];
  for (int i = 0; i < 3; ++i) {
    const float* from = memory.data() + i * 8 * kToken;
    spread[i].assign(from, from + 5 * kToken);
    spread[i].insert(spread[i].end(), from + 5 * kToken, from + 8 * kToken);
    spread[i].resize(10 * kToken, 0.0f);
  }
  const Plan dense_plan = compile(dense, Device::cpu());
  std::vector<std::byte> dense_workspace(static_cast<std::size_t>(dense_plan.workspace_size()) +
                                         64);
  dense_plan.run({{"q", spread[0].data()},
                  {"k", spread[1].data()},
                  {"v", spread[2].data()},
                  {"seq_len_q", lengths},
                  {"seq_len_kv", lengths},
                  {"o", o_dense.data()}},
                 align(dense_workspace));
  for (std::size_t i = 0; i < o_ragged.size(); ++i) EXPECT_EQ(o_ragged[i], o_dense[i]) << i;
}

}  // namespace
}  // namespace ashlar::cpu

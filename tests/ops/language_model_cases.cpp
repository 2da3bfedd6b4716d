// Cases of cross-entropy and rotary position embedding.
#include "graph/enum_names.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

void add_cross_entropies(std::vector<OpCase>& cases) {
  struct Loss {
    Dims x;
    double smoothing = 0.0;
    std::int64_t ignore_index = -100;
    bool mean = false, stats = true;
    DType integer = i64;
  };
  for (const Loss& c :
       {Loss{.x = {5, 37}, .integer = i32}, Loss{.x = {2, 3, 130}, .smoothing = 0.1},
        Loss{.x = {3, 2, 5}, .ignore_index = 2, .mean = true},
        Loss{.x = {2, 5000}, .smoothing = 0.25, .ignore_index = 3, .mean = true, .integer = i32},
        Loss{.x = {4, 1}, .stats = false}, Loss{.x = {19, 3}, .smoothing = 1.0, .stats = false},
        Loss{.x = {0, 6}, .mean = true}, Loss{.x = {0, 6}}, Loss{.x = {70}, .mean = true},
        Loss{.x = {1, 2, 1, 2, 4100}, .stats = false}}) {
    const std::string label = to_string(c.x) + (c.mean ? ", mean" : "") +
                              (c.smoothing > 0 ? ", smoothed" : "") + (c.stats ? ", stats" : "");
    const bool one_shape = c.x.rank() < 2 || c.x[0] == 0;
    Dims rows = c.x;
    rows[rows.rank() - 1] = 1;
    cases.push_back({"cross_entropy_forward", label, kFloating,
                     [=](CaseBuilder& b) {
                       using Op = CrossEntropyForward;
                       Op op;
                       op.label_smoothing = c.smoothing;
                       op.ignore_index = c.ignore_index;
                       op.mean = c.mean;
                       std::vector<Wanted<Op>> wanted = {Op::loss};
                       if (c.stats) wanted.emplace_back(Op::stats);
                       const std::vector<Operand<Op>> operands = {
                           {Op::x, b.operand("x", c.x)},
                           {Op::target, b.input("target", rows, c.integer)}};
                       const auto results = b.graph().apply(op, operands, wanted);
                       b.result(results[Op::loss]);
                       if (c.stats) b.result("stats", results[Op::stats]);
                     },
                     false, one_shape});
    cases.push_back({"cross_entropy_backward", label, kFloating,
                     [=](CaseBuilder& b) {
                       using Op = CrossEntropyBackward;
                       Op op;
                       op.label_smoothing = c.smoothing;
                       op.ignore_index = c.ignore_index;
                       op.mean = c.mean;
                       const Dims loss = c.mean ? Dims::filled(rows.rank(), 1) : rows;
                       b.result(b.graph().apply(op,
                                                {{Op::x, b.operand("x", c.x)},
                                                 {Op::target, b.input("target", rows, c.integer)},
                                                 {Op::stats, b.input("stats", rows, b.wide())},
                                                 {Op::dloss, b.input("dloss", loss, b.wide())}},
                                                {Op::dx}));
                     },
                     false, one_shape});
  }
}

// Where the angles come from.
enum class Angles : std::uint8_t { row, shared_positions, positions, tables, tables_of_heads };

void add_ropes(std::vector<OpCase>& cases) {
  struct Embedding {
    Dims x;
    Angles angles = Angles::row;
    std::int64_t width = 0;
    bool inverse = false;
    double factor = 1.0;
  };
  for (const Embedding& c :
       {Embedding{.x = {2, 3, 5, 64}, .angles = Angles::positions},
        Embedding{.x = {1, 2, 70, 16}, .inverse = true},
        Embedding{.x = {2, 3, 4, 10}, .angles = Angles::shared_positions, .width = 6},
        Embedding{.x = {3, 2, 3, 8}, .angles = Angles::tables, .inverse = true},
        Embedding{.x = {2, 3, 3, 9}, .angles = Angles::tables_of_heads, .width = 8},
        Embedding{.x = {1, 2, 6, 128}, .angles = Angles::positions, .inverse = true, .factor = 8},
        Embedding{.x = {2, 1, 1, 2}, .angles = Angles::positions, .factor = 2},
        Embedding{.x = {1, 1, 2, 4200}}, Embedding{.x = {2, 2, 0, 4}}, Embedding{.x = {2, 2, 3, 0}},
        Embedding{.x = {1, 2, 2500, 2}}})
    for (const RopePairs pairs : {RopePairs::half, RopePairs::interleaved}) {
      const std::string label = to_string(c.x) + ", " + std::string(enum_name(pairs)) +
                                ", angles " + std::to_string(static_cast<int>(c.angles)) +
                                (c.inverse ? ", inverse" : "");
      cases.push_back(
          {"rope", label, kFloating,
           [=](CaseBuilder& b) {
             Rope op;
             op.pairs = pairs;
             op.width = c.width;
             op.inverse = c.inverse;
             op.factor = c.factor;
             op.original_length = 256;
             const std::int64_t batch = c.x[0], heads = c.x[1], length = c.x[2];
             const std::int64_t half = (c.width == 0 ? c.x[3] : c.width) / 2;
             std::vector<Operand<Rope>> operands = {{Rope::x, b.operand("x", c.x)}};
             const auto add_tables = [&](std::int64_t of_batch, std::int64_t of_heads) {
               operands.push_back(
                   {Rope::cos, b.input("cos", {of_batch, 1, length, half}, b.wide())});
               operands.push_back(
                   {Rope::sin, b.input("sin", {1, of_heads, length, half}, b.wide())});
             };
             switch (c.angles) {
               case Angles::row: break;
               case Angles::shared_positions:
                 operands.push_back({Rope::positions, b.input("positions", {1, length}, i64)});
                 break;
               case Angles::positions:
                 operands.push_back({Rope::positions, b.input("positions", {batch, length}, i32)});
                 break;
               case Angles::tables: add_tables(batch, 1); break;
               case Angles::tables_of_heads: add_tables(1, heads); break;
             }
             const std::vector<Wanted<Rope>> wanted = {Rope::y};
             b.result(b.graph().apply(op, operands, wanted));
           },
           false, c.x[3] > 64 || c.x[2] != 5});
    }
}

}  // namespace

std::vector<OpCase> language_model_cases() {
  std::vector<OpCase> cases;
  add_cross_entropies(cases);
  add_ropes(cases);
  return cases;
}

}  // namespace ashlar::ops

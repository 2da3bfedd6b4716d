// Cases of MoE, caches, band matrices, causal convolution and dropout.
#include "graph/enum_names.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

// Layouts and dtypes of pure data movement; complex types are not supported.
const std::vector<DType> kMoved = {f64, f32, f16, bf16, e4m3, e5m2, i32, i8, u8, boolean};

struct MoeCase {
  std::int64_t tokens, depth, columns, experts, groups, rows, top_k = 1, output_rows = 0;
};

const std::vector<MoeCase> kMoeCases = {
    {.tokens = 13, .depth = 5, .columns = 7, .experts = 3, .groups = 3, .rows = 13},
    {.tokens = 6, .depth = 9, .columns = 4, .experts = 2, .groups = 6, .rows = 17, .top_k = 2},
    {.tokens = 5, .depth = 1, .columns = 3, .experts = 1, .groups = 1, .rows = 3, .top_k = 3},
    {.tokens = 4, .depth = 0, .columns = 2, .experts = 2, .groups = 2, .rows = 4},
    {.tokens = 0, .depth = 3, .columns = 2, .experts = 2, .groups = 2, .rows = 0},
    {.tokens = 29,
     .depth = 6,
     .columns = 5,
     .experts = 8,
     .groups = 16,
     .rows = 29,
     .top_k = 2,
     .output_rows = 33}};

void add_mixtures(std::vector<OpCase>& cases) {
  for (const MoeMode mode : {MoeMode::none, MoeMode::gather, MoeMode::scatter})
    for (std::size_t number = 0; number < kMoeCases.size(); ++number) {
      const MoeCase c = kMoeCases[number];
      const std::string label = std::string(enum_name(mode)) + ", shape " + std::to_string(number);
      const std::int64_t rows = mode == MoeMode::gather ? c.rows : c.tokens;
      const auto routing = [=]<class Op>(CaseBuilder& b, std::vector<Operand<Op>>& operands) {
        operands.push_back({Op::first_token_offset, b.input("first", {c.groups, 1, 1}, i32)});
        if (mode != MoeMode::none)
          operands.push_back({Op::token_index, b.input("index", {1, rows, 1}, i64)});
        if (mode == MoeMode::scatter)
          operands.push_back({Op::token_ks, b.input("ks", {1, rows, 1}, i32)});
      };
      const std::int64_t output_rows =
          mode == MoeMode::scatter && c.output_rows > 0 ? c.output_rows : rows;
      cases.push_back({"moe_grouped_matmul", label, kArithmetic,
                       [=](CaseBuilder& b) {
                         using Op = MoeGroupedMatmul;
                         Op op;
                         op.mode = mode;
                         op.top_k = c.top_k;
                         std::vector<Operand<Op>> operands = {
                             {Op::token, b.operand("token", {1, c.tokens, c.depth})},
                             {Op::weight, b.operand("weight", {c.experts, c.depth, c.columns})}};
                         routing(b, operands);
                         OutputSpec spec;
                         spec.dims = {1, output_rows, c.columns};
                         b.result(b.graph().apply(op, operands, {Op::output}, spec));
                       },
                       true, number > 1});
      for (const bool dtoken : {false, true})
        cases.push_back(
            {"moe_grouped_matmul_backward", label + (dtoken ? ", both" : ", weights"), kFloating,
             [=](CaseBuilder& b) {
               using Op = MoeGroupedMatmulBackward;
               Op op;
               op.mode = mode;
               op.top_k = c.top_k;
               std::vector<Operand<Op>> operands = {
                   {Op::doutput, b.operand("doutput", {1, output_rows, c.columns})},
                   {Op::token, b.operand("token", {1, c.tokens, c.depth})}};
               if (dtoken)
                 operands.push_back(
                     {Op::weight, b.operand("weight", {c.experts, c.depth, c.columns})});
               routing(b, operands);
               std::vector<Wanted<Op>> wanted = {Op::dweight};
               if (dtoken) wanted.emplace_back(Op::dtoken);
               const auto results = b.graph().apply(op, operands, wanted);
               b.result(results[Op::dweight]);
               if (dtoken) b.result("dtoken", results[Op::dtoken]);
             },
             true, number > 1 || !dtoken});
    }
}

void add_caches(std::vector<OpCase>& cases) {
  struct Cache {
    Dims container;
    std::int64_t batch, pages, length;
  };
  for (const Cache& c :
       {Cache{{5, 3, 4, 7}, 2, 3, 10}, Cache{{2, 1, 16, 5}, 3, 2, 32}, Cache{{0, 2, 4, 3}, 1, 2, 5},
        Cache{{4, 2, 1, 1}, 2, 6, 6}, Cache{{3, 2, 4, 3}, 2, 2, 0}})
    for (const bool transposed : {false, true})
      for (const bool lengths : {false, true})
        cases.push_back({"paged_cache_load",
                         to_string(c.container) + (transposed ? ", transposed" : "") +
                             (lengths ? ", lengths" : ""),
                         kMoved,
                         [=](CaseBuilder& b) {
                           using Op = PagedCacheLoad;
                           const Value sequence =
                               lengths ? b.input("sequence", {c.batch, 1, 1, 1}, i32) : Value();
                           const std::int64_t heads = c.container[1], width = c.container[3];
                           OutputSpec spec;
                           spec.dims = transposed ? Dims{c.batch, heads, width, c.length}
                                                  : Dims{c.batch, heads, c.length, width};
                           b.result(b.graph().apply(
                               Op{.transposed = transposed},
                               {{Op::container, b.operand("container", c.container)},
                                {Op::page_table, b.input("table", {c.batch, 1, c.pages, 1}, i32)},
                                {Op::sequence, sequence}},
                               {Op::y}, spec));
                         },
                         true, c.container[0] != 5});
}

void add_bands(std::vector<OpCase>& cases) {
  struct Band {
    Dims full;  // of the matrix
    std::int64_t lower, upper, axis;
    bool shift;
  };
  for (const Band& p : {Band{{2, 5, 7}, 1, 2, -1, true}, Band{{6, 6}, 2, 0, 1, false},
                        Band{{4, 3, 5, 2}, 0, 3, 2, true}, Band{{3, 4, 2}, 5, 5, 1, false},
                        Band{{2, 9, 4}, 0, 0, 2, true}, Band{{1, 0, 4}, 1, 1, 2, false}}) {
    const std::string label = to_string(p.full) + " on axis " + std::to_string(p.axis);
    const int axis = static_cast<int>(p.axis < 0 ? p.axis + p.full.rank() : p.axis);
    Dims band = p.full, shift = Dims::filled(p.full.rank(), 1);
    band[axis] = p.lower + p.upper + 1;
    if (axis > 1) shift[0] = p.full[0];
    const auto add = [=](CaseBuilder& b, auto op, const Dims& from, const Dims& to) {
      using Op = decltype(op);
      op.lower_bandwidth = p.lower;
      op.upper_bandwidth = p.upper;
      op.axis = p.axis;
      op.pad_value = 2.0;
      OutputSpec spec;
      spec.dims = to;
      b.result(
          b.graph().apply(op,
                          {{Op::x, b.operand("x", from)},
                           {Op::kv_token_offset, p.shift ? b.input("shift", shift, i32) : Value()}},
                          {Op::y}, spec));
    };
    cases.push_back({"expand_band_matrix", label, kMoved,
                     [=](CaseBuilder& b) { add(b, ExpandBandMatrix{}, band, p.full); }, true});
    cases.push_back({"contract_band_matrix", label, kMoved,
                     [=](CaseBuilder& b) { add(b, ContractBandMatrix{}, p.full, band); }, true});
  }
}

void add_causal_convolutions(std::vector<OpCase>& cases) {
  struct Conv {
    Dims x;
    std::int64_t taps;
    bool full;  // with bias and states
  };
  for (const Conv& c :
       {Conv{{2, 5, 9}, 4, true}, Conv{{1, 3, 20}, 3, false}, Conv{{2, 70, 3}, 2, true},
        Conv{{2, 2, 2}, 5, true}, Conv{{1, 4, 6}, 1, true}, Conv{{2, 3, 0}, 3, true},
        Conv{{1, 2, 5}, 40, true}})
    for (const auto activation : {CausalConvActivation::identity, CausalConvActivation::silu}) {
      const std::string label = to_string(c.x) + ", " + std::to_string(c.taps) + " taps, " +
                                std::string(enum_name(activation)) + (c.full ? ", states" : "");
      const Dims w = {c.x[1], c.taps}, state = {c.x[0], c.x[1], c.taps - 1};
      const bool one_shape = c.taps != 4;
      cases.push_back({"causal_conv_forward", label, kFloating,
                       [=](CaseBuilder& b) {
                         using Op = CausalConvForward;
                         Op op;
                         op.activation = activation;
                         std::vector<Operand<Op>> operands = {{Op::x, b.operand("x", c.x)},
                                                              {Op::w, b.operand("w", w)}};
                         std::vector<Wanted<Op>> wanted = {Op::y};
                         if (c.full) {
                           operands.push_back({Op::bias, b.operand("b", {c.x[1]})});
                           operands.push_back({Op::initial_state, b.operand("state", state)});
                           wanted.emplace_back(Op::final_state);
                         }
                         const auto results = b.graph().apply(op, operands, wanted);
                         b.result(results[Op::y]);
                         if (c.full) b.result("final", results[Op::final_state]);
                       },
                       activation == CausalConvActivation::identity, one_shape});
      cases.push_back({"causal_conv_backward", label, kFloating,
                       [=](CaseBuilder& b) {
                         using Op = CausalConvBackward;
                         Op op;
                         op.activation = activation;
                         std::vector<Operand<Op>> operands = {{Op::x, b.operand("x", c.x)},
                                                              {Op::w, b.operand("w", w)},
                                                              {Op::dy, b.operand("dy", c.x)}};
                         std::vector<Wanted<Op>> wanted = {Op::dx, Op::dw};
                         if (c.full) {
                           operands.push_back({Op::bias, b.operand("b", {c.x[1]})});
                           operands.push_back({Op::initial_state, b.operand("state", state)});
                           wanted.emplace_back(Op::dbias);
                           wanted.emplace_back(Op::dinitial_state);
                         }
                         const auto results = b.graph().apply(op, operands, wanted);
                         b.result(results[Op::dx]);
                         b.result("dw", results[Op::dw]);
                         if (!c.full) return;
                         b.result("dbias", results[Op::dbias]);
                         b.result("dstate", results[Op::dinitial_state]);
                       },
                       activation == CausalConvActivation::identity, one_shape});
    }
}

void add_dropouts(std::vector<OpCase>& cases) {
  for (const Dims& dims : {Dims{3, 5, 7}, Dims{1}, Dims{2, 0}, Dims{1031}, Dims{2, 3, 2, 2}})
    for (const double probability : {0.0, 0.3, 1.0}) {
      const std::string label = to_string(dims) + ", " + std::to_string(probability);
      const bool tensors = probability == 0.3;  // the state comes from tensors
      cases.push_back({"dropout_forward", label, kFloating,
                       [=](CaseBuilder& b) {
                         using Op = DropoutForward;
                         Op op;
                         op.probability = probability;
                         op.seed = 1234567;
                         op.offset = 89;
                         const Value seed = tensors ? b.input("seed", {1}, i64) : Value();
                         const Value offset = tensors ? b.input("offset", {1, 1}, i32) : Value();
                         const auto results = b.graph().apply(op,
                                                              {{Op::x, b.operand("x", dims)},
                                                               {Op::seed_tensor, seed},
                                                               {Op::offset_tensor, offset}},
                                                              {Op::y, Op::mask, Op::next_offset});
                         b.result(results[Op::y]);
                         b.result("mask", results[Op::mask]);
                         b.result("next", results[Op::next_offset]);
                       },
                       false, dims.rank() < 3});
      cases.push_back({"dropout_backward", label, kFloating,
                       [=](CaseBuilder& b) {
                         using Op = DropoutBackward;
                         Op op;
                         op.probability = probability;
                         op.offset = 3;
                         const Value mask = tensors ? b.input("mask", dims, boolean) : Value();
                         b.result(b.graph().apply(
                             op, {{Op::dy, b.operand("dy", dims)}, {Op::mask, mask}}, {Op::dx}));
                       },
                       false, dims.rank() < 3});
    }
}

}  // namespace

std::vector<OpCase> sequence_cases() {
  std::vector<OpCase> cases;
  add_mixtures(cases);
  add_caches(cases);
  add_bands(cases);
  add_causal_convolutions(cases);
  add_dropouts(cases);
  return cases;
}

}  // namespace ashlar::ops

// Cases of every pointwise mode.
#include <ashlar/composites.hpp>

#include "graph/enum_names.hpp"
#include "graph/pointwise_traits.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

// Non-default attributes, so that an ignored one is detected.
constexpr Pointwise kTuned{.mode = PointwiseMode::identity,
                           .alpha1 = 0.5,
                           .alpha2 = -2.0,
                           .relu_lower_clip = -0.25,
                           .relu_upper_clip = 0.75,
                           .relu_lower_slope = 0.125,
                           .elu_alpha = 0.5,
                           .softplus_beta = 2.0,
                           .swish_beta = 1.5,
                           .axis = 1};

const std::vector<DType> kIntegers = {i64, i32, i8, u8, u32, i4, u4};
const std::vector<DType> kBits = {i64, i32, i8, u8, u32, i4, u4, boolean};

// Identity and gen_index to larger dims, as results and as operands of other operations.
void add_expansions(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& label, const std::vector<DType>& dtypes,
                       std::function<void(CaseBuilder&)> build) {
    cases.push_back({"pointwise", "expansion, " + label, dtypes, std::move(build), false, true});
  };
  const auto expanded = [](CaseBuilder& b, const Dims& from, const Dims& to) {
    return expand(b.operand("x", from), to);
  };
  add("of columns", kPointwise, [=](CaseBuilder& b) { b.result(expanded(b, {5, 1}, {5, 37})); });
  add("of rows", kMovable, [=](CaseBuilder& b) { b.result(expanded(b, {37}, {3, 2, 37})); });
  add("of one element", kPointwise, [=](CaseBuilder& b) { b.result(expanded(b, {1}, {4, 9})); });
  add("of a conversion", kPointwise, [](CaseBuilder& b) {
    b.result(b.graph().pointwise(PointwiseMode::identity, std::array{b.operand("x", {3, 1, 5})},
                                 {.alpha1 = 2.0}, {.dtype = f32, .dims = {2, 3, 4, 5}}));
  });
  add("of a constant", {f32, i32}, [](CaseBuilder& b) {
    b.result(full(b.graph(), {3, 19}, 3.0, b.dtype()) + b.operand("x", {3, 1}));
  });
  add("only of a constant", kPointwise, [](CaseBuilder& b) {
    b.result(full(b.graph(), {3, 19}, 1.0, b.dtype()));
  });
  add("to nothing", {f32}, [=](CaseBuilder& b) { b.result(expanded(b, {5, 1}, {5, 0})); });
  add("indices", {f32, i32, i64}, [](CaseBuilder& b) {
    b.result(iota(b.graph(), {3, 41}, -1, b.dtype(), 2.0, 3.0) + b.operand("x", {3, 1}));
  });
  add("of a factor of matmul", kFloating, [=](CaseBuilder& b) {
    b.result(b.graph().matmul(expanded(b, {1, 1, 24}, {3, 17, 24}), b.operand("b", {3, 24, 9})));
  });
  add("of weights of matmul", kFloating, [=](CaseBuilder& b) {
    const Value w = expand(b.operand("w", {8, 1}), {8, 16});
    b.result(b.graph().matmul(b.operand("x", {5, 8}), w));
  });
  add("of rows of softmax", kFloating, [=](CaseBuilder& b) {
    b.result(b.graph().softmax(expanded(b, {1, 33}, {6, 33})));
  });
  add("of columns of a sum", kArithmetic, [=](CaseBuilder& b) {
    b.result(b.graph().reduce(expanded(b, {6, 1}, {6, 33}), ReductionMode::add, {1}));
  });
  add("widened", {f16, bf16, e4m3}, [](CaseBuilder& b) {
    const Value wide =
        b.graph().pointwise(PointwiseMode::identity, std::array{b.operand("x", {4, 1})}, {},
                            {.dtype = f32, .dims = {4, 12}});
    b.result(b.graph().softmax(wide));
  });
  add("concatenated", kMovable, [=](CaseBuilder& b) {
    const std::array parts = {expanded(b, {3, 1}, {3, 5}), b.operand("b", {3, 2})};
    b.result(b.graph().concat(parts, 1));
  });
  add("transposed", kMovable, [=](CaseBuilder& b) {
    b.result(b.graph().transpose(expanded(b, {3, 1}, {3, 5}), {1, 0}));
  });
}

struct Operands {
  std::string label;
  Dims x, b, predicate;
  Pointwise attributes = {};
  bool one_shape = true;
};

}  // namespace

std::vector<OpCase> pointwise_cases() {
  const std::vector<Operands> operands = {
      {"same extents", {3, 5, 7}, {3, 5, 7}, {3, 5, 7}, {}, false},
      {"broadcast", {3, 1, 67}, {1, 4, 67}, {3, 4, 1}},
      {"broadcast ranks", {8, 1, 6}, {7, 1}, {6}},
      {"broadcast a lower rank", {5}, {2, 3, 1}, {1}},
      {"tuned", {2, 3, 11}, {2, 3, 11}, {1, 1, 1}, kTuned},
      {"nothing", {2, 0, 3}, {2, 0, 3}, {2, 0, 3}},
  };
  std::vector<OpCase> cases;
  for (int m = 0; m < kPointwiseModeCount; ++m) {
    const auto mode = static_cast<PointwiseMode>(m);
    const std::vector<DType>& dtypes = is_shift(mode)     ? kIntegers
                                       : is_bitwise(mode) ? kBits
                                                          : kPointwise;
    for (const Operands& p : operands) {
      if (is_bitwise(mode) && p.attributes.alpha1 != 1.0) continue;
      cases.push_back({"pointwise", std::string(enum_name(mode)) + ", " + p.label, dtypes,
                       [p, mode](CaseBuilder& b) {
                         std::vector<Value> values = {b.operand("x", p.x)};
                         if (operand_count(mode) > 1) values.push_back(b.operand("b", p.b));
                         if (operand_count(mode) > 2)
                           values.push_back(b.input("predicate", p.predicate, boolean));
                         b.result(b.graph().pointwise(mode, values, p.attributes));
                       },
                       is_bitwise(mode), p.one_shape});
    }
  }
  add_expansions(cases);
  const std::vector<std::pair<std::string, Dims>> shapes = {
      {"one axis", {1}}, {"a prime", {127}}, {"eight axes", {2, 1, 3, 1, 2, 1, 1, 5}}};
  for (const auto& [label, dims] : shapes)
    cases.push_back({"pointwise", "add, " + label, kPointwise, [dims = dims](CaseBuilder& b) {
                       b.result(b.operand("x", dims) + b.operand("b", dims));
                     }});
  for (DType to : kMovable)
    cases.push_back({"pointwise", "cast to " + std::string(to_string(to)), kMovable,
                     [to](CaseBuilder& b) {
                       b.result(b.graph().pointwise(PointwiseMode::identity,
                                                    std::array{b.operand("x", {3, 41})}, {},
                                                    {.dtype = to}));
                     },
                     false, true});
  return cases;
}

}  // namespace ashlar::ops

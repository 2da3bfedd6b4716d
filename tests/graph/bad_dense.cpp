// Invalid inputs of matmul, pointwise, reduction and softmax.
#include <limits>

#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

void add_matmuls(BadInputs& rows) {
  const auto matmul = [&](const char* name, const Dims& a, const Dims& b,
                          std::vector<std::string> says) {
    rows.push_back({name, "matmul", [=](Graph& g) { g.matmul(in(g, a), in(g, b), kBad); }, says});
  };
  matmul("matmul of vectors", {4}, {4}, {"rank of a 'i", "got 1", "expected 2 to 8"});
  matmul("matmul of unequal ranks", {2, 3, 4}, {4, 5}, {"rank of b 'i", "got 2", "expected 3"});
  matmul("matmul k", {3, 4}, {5, 6}, {"k", "got 4 columns in a and 5 rows in b", "expected equal"});
  matmul("matmul batch", {2, 3, 4}, {3, 4, 5},
         {"batch axis 0", "got 2 and 3", "expected equal extents, or 1"});
  const auto override_by = [&](const char* name, const char* slot, const Dims& dims, DType dtype,
                               std::vector<std::string> says) {
    rows.push_back({name, "matmul",
                    [=](Graph& g) {
                      Node node{.name = "bad", .op = Matmul{}, .inputs = {}, .outputs = {}};
                      node.inputs = {in(g, {2, 3, 4}).id(), in(g, {2, 4, 5}).id(), kNoTensor,
                                     kNoTensor, kNoTensor};
                      const int position = slot[0] == 'm' ? 2 : slot[0] == 'n' ? 3 : 4;
                      node.inputs[static_cast<std::size_t>(position)] = in(g, dims, dtype).id();
                      node.outputs = {g.add_tensor({.name = "c", .infer_dtype = true})};
                      g.add_node(node);
                    },
                    says});
  };
  override_by("matmul m_override dims", "m", {3, 1, 1}, i32,
              {"dims of m_override 'i", "got [3, 1, 1]", "expected extents equal to [2, 1, 1]"});
  override_by("matmul n_override dtype", "n", {2, 1, 1}, f32,
              {"dtype of n_override 'i", "got f32", "expected an integer type"});
  override_by("matmul k_override rank", "k", {2, 1}, i32,
              {"dims of k_override 'i", "got [2, 1]", "the same number of axes"});
  rows.push_back({"matmul of booleans",
                  "matmul",
                  [](Graph& g) {
                    g.matmul(in(g, {2, 2}, boolean), in(g, {2, 2}), kBad);
                  },
                  {"dtype of a 'i", "got bool", "expected a numeric type"}});
  rows.push_back({"matmul with a boolean b",
                  "matmul",
                  [](Graph& g) {
                    g.matmul(in(g, {2, 2}), in(g, {2, 2}, boolean), kBad);
                  },
                  {"dtype of b 'i", "got bool", "expected a numeric type"}});
  rows.push_back({"matmul without b",
                  "matmul",
                  [](Graph& g) {
                    g.matmul(in(g, {2, 2}), {}, kBad);
                  },
                  {"input b", "got nothing", "expected a tensor"}});
  rows.push_back({"matmul result too large",
                  "matmul",
                  [](Graph& g) {
                    const std::int64_t m = std::int64_t{1} << 40;
                    g.matmul(in(g, {m, 1}), in(g, {1, m}), kBad);
                  },
                  {"size overflow", "got 1099511627776 * 1099511627776", "expected at most"},
                  ErrorCode::size_overflow});
}

void add_pointwise(BadInputs& rows) {
  const auto pointwise = [&](const char* name, PointwiseMode mode, std::vector<Dims> operands,
                             Pointwise attributes, std::vector<std::string> says) {
    rows.push_back({name, "pointwise",
                    [=](Graph& g) {
                      std::vector<Value> values;
                      for (const Dims& dims : operands) values.push_back(in(g, dims));
                      g.pointwise(mode, values, attributes, kBad);
                    },
                    says});
  };
  using enum PointwiseMode;
  pointwise("add of one operand", add, {{2, 2}}, {},
            {"input b", "got nothing", "expected a tensor: add takes 2"});
  pointwise("exp of two operands", exp, {{2, 2}, {2, 2}}, {},
            {"input b", "got 'i1'", "expected nothing: exp takes 1"});
  pointwise("select without predicate", binary_select, {{2, 2}, {2, 2}}, {},
            {"input predicate", "got nothing", "expected a tensor: binary_select takes 3"});
  pointwise("add of three operands", add, {{2, 2}, {2, 2}, {2, 2}}, {},
            {"input predicate", "got 'i2'", "expected nothing: add takes 2"});
  pointwise("relu of four operands", relu_fwd, {{2}, {2}, {2}, {2}}, {},
            {"number of inputs", "got 4", "expected at most 3"});
  pointwise("add of unequal ranks", add, {{2, 3}, {2}}, {},
            {"axis 0 of b 'i1'", "got 2", "expected 3 or 1"});
  pointwise("add to a lower rank", add, {{3}, {4, 2, 2}}, {},
            {"axis 2 of b 'i1'", "got 2", "expected 3 or 1"});
  pointwise("add of unequal extents", add, {{2, 3}, {2, 4}}, {},
            {"axis 1 of b 'i", "got 4", "expected 3 or 1"});
  pointwise("select of unequal extents", binary_select, {{2, 3}, {2, 1}, {5, 3}}, {},
            {"axis 0 of predicate 'i", "got 5", "expected 2 or 1"});
  pointwise("gen_index axis", gen_index, {{2, 3}}, {.axis = 2},
            {"axis", "got 2", "expected -2 to 1"});
  pointwise("relu clips", relu_fwd, {{2, 3}}, {.relu_lower_clip = 3.0, .relu_upper_clip = 1.0},
            {"relu_lower_clip", "got 3", "expected at most relu_upper_clip = 1"});
  pointwise("softplus beta", softplus_fwd, {{2, 3}}, {.softplus_beta = 0.0},
            {"softplus_beta", "got 0", "expected a value other than 0"});
  const auto bitwise = [&](const char* name, PointwiseMode mode, DType x, DType b,
                           Pointwise attributes, std::vector<std::string> says) {
    rows.push_back({name, "pointwise",
                    [=](Graph& g) {
                      const std::array operands = {in(g, {2, 3}, x), in(g, {2, 3}, b)};
                      g.pointwise(mode, operands, attributes, kBad);
                    },
                    says});
  };
  bitwise("bits of floats", bit_and, f32, f32, {},
          {"dtype of x 'i", "got f32", "expected an integer type"});
  bitwise("bits of two types", bit_or, i32, u32, {},
          {"dtype of b 'i", "got u32", "expected i32, that of x: cast first"});
  bitwise("shift of booleans", shift_left, boolean, i32, {},
          {"dtype of x 'i", "got bool", "expected an integer type"});
  bitwise("shift by a float", shift_right, i32, f32, {},
          {"dtype of b 'i", "got f32", "expected an integer type"});
  bitwise("scaled bits", bit_xor, i8, i8, {.alpha2 = 0.5},
          {"alpha2", "got 0.5", "expected 1: bit_xor takes no factors"});
  const auto expansion = [&](const char* name, PointwiseMode mode, const Dims& dims,
                             std::vector<std::string> says) {
    rows.push_back({name, "pointwise",
                    [=](Graph& g) {
                      g.pointwise(mode, std::array{in(g, {2, 1})}, {}, bad_with_dims(dims));
                    },
                    says});
  };
  expansion("expansion of an extent", identity, {3, 4},
            {"dims of y 'bad'", "got [3, 4]", "expected [2, 1], or dims to which it broadcasts"});
  expansion("expansion to a lower rank", identity, {2},
            {"dims of y 'bad'", "got [2]", "expected [2, 1]"});
  expansion("indices of other dims", gen_index, {5, 3},
            {"dims of y 'bad'", "got [5, 3]", "expected [2, 1]"});
  expansion("expansion by exp", exp, {2, 4}, {"dims of y 'bad'", "got [2, 4]", "expected [2, 1]"});
  rows.push_back(
      {"pointwise result dims",
       "pointwise",
       [](Graph& g) {
         g.pointwise(PointwiseMode::neg, std::array{in(g, {2, 3})}, {}, bad_with_dims({2, 4}));
       },
       {"dims of y 'bad'", "got [2, 4]", "expected [2, 3]"}});
  rows.push_back({"pointwise of nothing",
                  "pointwise",
                  [](Graph& g) { g.pointwise(PointwiseMode::neg, {}, {}, kBad); },
                  {"input x", "got nothing", "expected a tensor"}});
  rows.push_back(
      {"broadcast result too large",
       "pointwise",
       [](Graph& g) {
         const std::int64_t m = std::int64_t{1} << 40;
         g.pointwise(PointwiseMode::add, std::array{in(g, {m, 1}), in(g, {1, m})}, {}, kBad);
       },
       {"size overflow", "got 1099511627776 * 1099511627776", "expected at most"},
       ErrorCode::size_overflow});
}

void add_reductions_and_softmax(BadInputs& rows) {
  const auto reduce = [&](const char* name, const Dims& axes, const OutputSpec& spec,
                          std::vector<std::string> says) {
    rows.push_back({name, "reduction",
                    [=](Graph& g) {
                      g.reduce(in(g, {2, 3}), ReductionMode::add, axes, spec);
                    },
                    says});
  };
  reduce("reduction axis", {2}, kBad, {"axes", "got 2", "expected -2 to 1"});
  reduce("reduction axis too negative", {-3}, kBad, {"axes", "got -3", "expected -2 to 1"});
  reduce("reduction axis twice", {1, -1}, kBad, {"axes", "got [1, 1]", "expected each axis once"});
  reduce("reduction rank", {}, bad_with_dims({2}), {"rank of y", "got 1", "expected 2"});
  reduce("reduction extent", {}, bad_with_dims({2, 2}),
         {"axis 1 of y", "got 2", "expected 1 (reduced) or 3 (kept)"});
  reduce("reduction axes against dims", {1}, bad_with_dims({1, 1}),
         {"dims of y 'bad'", "got [1, 1]", "expected [2, 1]"});
  rows.push_back({"product of booleans",
                  "reduction",
                  [](Graph& g) {
                    g.reduce(in(g, {2, 3}, boolean), ReductionMode::mul, {}, kBad);
                  },
                  {"mode", "got mul", "expected min, max, amax, add or avg for bool x"}});
  rows.push_back({"number of booleans as a boolean",
                  "reduction",
                  [](Graph& g) {
                    g.reduce(in(g, {2, 3}, boolean), ReductionMode::add, {},
                             {.name = "bad", .dtype = boolean});
                  },
                  {"dtype of y", "got bool", "expected a numeric type: add of booleans counts"}});

  const auto softmax = [&](const char* name, DType dtype, std::int64_t axis,
                           std::vector<std::string> says) {
    rows.push_back({name, "softmax_forward",
                    [=](Graph& g) {
                      g.softmax(in(g, {2, 3}, dtype), {.axis = axis}, kBad);
                    },
                    says});
  };
  softmax("softmax axis", f32, 2, {"axis", "got 2", "expected -2 to 1"});
  softmax("softmax axis far away", f32, std::numeric_limits<std::int64_t>::min(),
          {"axis", "got -9223372036854775808", "expected -2 to 1"});
  softmax("softmax of integers", i32, -1,
          {"dtype of x 'i", "got i32", "expected a floating-point type"});
  rows.push_back({"softmax_backward dims",
                  "softmax_backward",
                  [](Graph& g) {
                    g.softmax_backward(in(g, {2, 3}), in(g, {2, 4}), {}, kBad);
                  },
                  {"dims of dy 'i", "got [2, 4]", "expected [2, 3]"}});
  rows.push_back({"softmax_backward axis",
                  "softmax_backward",
                  [](Graph& g) {
                    g.softmax_backward(in(g, {2, 3}), in(g, {2, 3}), {.axis = 7}, kBad);
                  },
                  {"axis", "got 7", "expected -2 to 1"}});
  rows.push_back({"softmax_backward of integers",
                  "softmax_backward",
                  [](Graph& g) { g.softmax_backward(in(g, {2}, u8), in(g, {2}), {}, kBad); },
                  {"dtype of y 'i", "got u8", "expected a floating-point type"}});
  rows.push_back({"softmax_backward of an integer gradient",
                  "softmax_backward",
                  [](Graph& g) { g.softmax_backward(in(g, {2}), in(g, {2}, i8), {}, kBad); },
                  {"dtype of dy 'i", "got i8", "expected a floating-point type"}});
}

}  // namespace

void add_bad_dense(BadInputs& rows) {
  add_matmuls(rows);
  add_pointwise(rows);
  add_reductions_and_softmax(rows);
}

}  // namespace ashlar::tests

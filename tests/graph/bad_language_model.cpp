// Invalid inputs of cross-entropy and rotary position embedding.
#include <cmath>

#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

// A valid cross-entropy; each row changes one property.
struct Loss {
  Dims x = {4, 7}, target = {4, 1}, stats = {4, 1}, dloss = {4, 1}, result = {};
  DType dtype = f32, integer = i64, statistics = f32;
  double smoothing = 0.0;
  bool mean = false;
};

template <class Op>
Op loss_of(const Loss& loss) {
  Op op;
  op.label_smoothing = loss.smoothing;
  op.mean = loss.mean;
  return op;
}

void add_cross_entropies(BadInputs& rows) {
  const auto forward = [&](const std::string& name, const Loss& c, std::vector<std::string> says) {
    rows.push_back({name, "cross_entropy_forward",
                    [=](Graph& g) {
                      using Op = CrossEntropyForward;
                      g.apply(
                          loss_of<Op>(c),
                          {{Op::x, in(g, c.x, c.dtype)}, {Op::target, in(g, c.target, c.integer)}},
                          {Op::loss}, bad_with_dims(c.result));
                    },
                    says});
  };
  const auto backward = [&](const std::string& name, const Loss& c, std::vector<std::string> says) {
    rows.push_back(
        {name, "cross_entropy_backward",
         [=](Graph& g) {
           using Op = CrossEntropyBackward;
           const Value x = in(g, c.x, c.dtype), target = in(g, c.target, c.integer),
                       stats = in(g, c.stats, c.statistics), dloss = in(g, c.dloss);
           g.apply(loss_of<Op>(c),
                   {{Op::x, x}, {Op::target, target}, {Op::stats, stats}, {Op::dloss, dloss}},
                   {Op::dx}, bad_with_dims(c.result));
         },
         says});
  };
  const auto both = [&](const std::string& name, const Loss& c,
                        const std::vector<std::string>& says) {
    forward(name, c, says);
    backward(name + ", gradient", c, says);
  };
  both("cross-entropy of integers", {.dtype = i32},
       {"dtype of x", "got i32", "expected a floating-point type"});
  both("cross-entropy without classes", {.x = {4, 0}}, {"classes of x", "got 0", "at least 1"});
  both("cross-entropy targets of floats", {.integer = f32},
       {"dtype of target", "got f32", "expected an integer type"});
  both("cross-entropy targets per class", {.target = {4, 7}},
       {"dims of target", "got [4, 7]", "expected [4, 1]"});
  both("cross-entropy smoothing", {.smoothing = 1.5},
       {"label_smoothing", "got 1.5", "expected a value in [0, 1]"});
  both("cross-entropy smoothing NaN", {.smoothing = std::nan("")},
       {"label_smoothing", "got nan", "expected a value in [0, 1]"});
  forward("cross-entropy loss", {.result = {4, 7}},
          {"dims of loss", "got [4, 7]", "expected [4, 1]"});
  forward("cross-entropy mean", {.result = {4, 1}, .mean = true},
          {"dims of loss", "got [4, 1]", "expected [1, 1]"});
  backward("cross-entropy stats", {.stats = {4, 7}},
           {"dims of stats", "got [4, 7]", "expected [4, 1]"});
  backward("cross-entropy stats of integers", {.statistics = i32},
           {"dtype of stats", "got i32", "expected a floating-point type"});
  backward("cross-entropy dloss", {.mean = true},
           {"dims of dloss", "got [4, 1]", "expected [1, 1]"});
}

// A valid embedding; each row changes one property.
struct Rotation {
  Dims x = {2, 3, 5, 8}, positions = {}, cos = {}, sin = {}, y = {};
  DType dtype = f32, integer = i32, table = f32;
  Rope op = {};
};

void add_ropes(BadInputs& rows) {
  const auto add = [&](const char* name, const Rotation& c, std::vector<std::string> says) {
    rows.push_back(
        {name, "rope",
         [=](Graph& g) {
           const auto optional = [&](const Dims& dims, DType dtype) {
             return dims.empty() ? Value() : in(g, dims, dtype);
           };
           const Value x = in(g, c.x, c.dtype), positions = optional(c.positions, c.integer),
                       cos = optional(c.cos, c.table), sin = optional(c.sin, c.table);
           g.apply(c.op,
                   {{Rope::x, x}, {Rope::positions, positions}, {Rope::cos, cos}, {Rope::sin, sin}},
                   {Rope::y}, bad_with_dims(c.y));
         },
         says});
  };
  const auto with = [](auto Rope::*attribute, auto value) {
    Rope op;
    op.*attribute = value;
    return op;
  };
  const Dims table = {1, 1, 5, 4};
  add("rope rank", {.x = {3, 5, 8}}, {"rank of x", "got 3", "expected 4 to 4"});
  add("rope of integers", {.dtype = i8},
      {"dtype of x", "got i8", "expected a floating-point type"});
  add("rope of odd rows", {.x = {2, 3, 5, 7}},
      {"width", "got 7", "expected an even number from 0 to 7"});
  add("rope width", {.op = with(&Rope::width, std::int64_t{10})},
      {"width", "got 10", "expected an even number from 0 to 8"});
  add("rope positions per head", {.positions = {2, 3, 5}},
      {"rank of positions", "got 3", "expected 2 to 2"});
  add("rope positions of another batch", {.positions = {3, 5}},
      {"dims of positions", "got [3, 5]", "expected [2, 5]"});
  add("rope positions of floats", {.positions = {1, 5}, .integer = f32},
      {"dtype of positions", "got f32", "expected an integer type"});
  add("rope cosines alone", {.cos = table},
      {"inputs cos and sin", "got one of them", "expected both or neither"});
  add("rope tables and positions", {.positions = {1, 5}, .cos = table, .sin = table},
      {"input positions", "got a tensor", "cos and sin already hold the angles"});
  add("rope tables of full width", {.cos = {1, 1, 5, 8}, .sin = table},
      {"dims of cos", "got [1, 1, 5, 8]", "expected [1, 1, 5, 4]"});
  add("rope tables of integers", {.cos = table, .sin = table, .table = i32},
      {"dtype of cos", "got i32", "expected a floating-point type"});
  add("rope base", {.op = with(&Rope::base, 1.0)}, {"base", "got 1", "a finite number above 1"});
  add("rope factor", {.op = with(&Rope::factor, 0.5)},
      {"factor", "got 0.5", "a finite number of at least 1"});
  add("rope original length", {.op = with(&Rope::original_length, std::int64_t{0})},
      {"original_length", "got 0", "expected at least 1"});
  add("rope slow pairs", {.op = with(&Rope::beta_slow, 0.0)},
      {"beta_slow", "got 0", "expected a number above 0"});
  add("rope fast pairs", {.op = with(&Rope::beta_fast, 1.0)},
      {"beta_fast", "got 1", "a finite number above beta_slow, 1"});
  add("rope attention factor", {.op = with(&Rope::attention_factor, -1.0)},
      {"attention_factor", "got -1", "a finite number of at least 0"});
  add("rope result", {.y = {2, 3, 5, 6}},
      {"dims of y", "got [2, 3, 5, 6]", "expected [2, 3, 5, 8]"});
}

}  // namespace

void add_bad_language_model(BadInputs& rows) {
  add_cross_entropies(rows);
  add_ropes(rows);
}

}  // namespace ashlar::tests

// Cases of gather and scatter.
#include "graph/enum_names.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

struct Indexed {
  Dims whole;  // x of gather, y of scatter
  Dims index;
  std::int64_t axis;
  IndexMode mode = IndexMode::slices;

  // y of gather, source of scatter
  Dims selection() const {
    if (mode == IndexMode::elements) return index;
    Dims result;
    const int at = static_cast<int>(axis < 0 ? axis + whole.rank() : axis);
    for (int a = 0; a < whole.rank(); ++a) {
      if (a != at) result.push_back(whole[a]);
      for (int i = 0; a == at && i < index.rank(); ++i) result.push_back(index[i]);
    }
    return result;
  }
  std::string label() const {
    return std::string(enum_name(mode)) + " of " + to_string(whole) + " by " + to_string(index) +
           " on axis " + std::to_string(axis);
  }
};

constexpr IndexMode kElements = IndexMode::elements;

// Rows inside and across slices, axes that merge, rows longer than a buffer, sizes of 0 and 1.
const std::vector<Indexed> kShared = {{{5, 7}, {9}, 0},
                                      {{5, 7}, {2, 4}, -1},
                                      {{2, 30, 3, 4}, {5}, 1},
                                      {{4, 6, 3}, {2, 3}, 1},
                                      {{37}, {50}, 0},
                                      {{3, 2100}, {4}, 0},
                                      {{2, 5}, {2100}, 1},
                                      {{1, 6}, {3}, 0},
                                      {{4, 1}, {7}, 0},
                                      {{5, 3}, {0}, 0},
                                      {{0, 3}, {4}, 0},
                                      {{5, 7}, {3, 7}, 0, kElements},
                                      {{5, 7}, {5, 11}, 1, kElements},
                                      {{2, 6, 19}, {2, 9, 19}, -2, kElements},
                                      {{3, 0}, {3, 2}, 1, kElements},
                                      {{4, 1}, {4, 3}, 1, kElements}};

DType index_dtype(std::size_t number) { return number % 2 == 0 ? i64 : i32; }

void add_gathers(std::vector<OpCase>& cases) {
  std::size_t number = 0;
  for (const Indexed& c : kShared)
    for (const auto out_of_range : {OutOfRange::zero, OutOfRange::clamp}) {
      const DType integer = index_dtype(++number);
      cases.push_back({"gather", c.label() + ", " + std::string(enum_name(out_of_range)), kMovable,
                       [=](CaseBuilder& b) {
                         using Op = Gather;
                         b.result(b.graph().apply(
                             Op{.axis = c.axis, .mode = c.mode, .out_of_range = out_of_range},
                             {{Op::x, b.operand("x", c.whole)},
                              {Op::index, b.input("index", c.index, integer)}},
                             {Op::y}));
                       },
                       true, number > 4});
    }
}

void add_scatters(std::vector<OpCase>& cases) {
  const auto add = [&](const Indexed& c, ScatterMode combine, bool base, bool one_shape) {
    std::vector<DType> dtypes = combine == ScatterMode::set ? kMovable : kArithmetic;
    if (combine == ScatterMode::max)
      dtypes.insert(dtypes.end(), kRareArithmetic.begin(), kRareArithmetic.end());
    const DType integer = index_dtype(cases.size());
    cases.push_back(
        {"scatter", std::string(enum_name(combine)) + ", " + c.label() + (base ? ", base" : ""),
         dtypes,
         [=](CaseBuilder& b) {
           using Op = Scatter;
           OutputSpec spec;
           spec.dims = c.whole;
           b.result(b.graph().apply(Op{.axis = c.axis, .mode = c.mode, .combine = combine},
                                    {{Op::source, b.operand("source", c.selection())},
                                     {Op::index, b.input("index", c.index, integer)},
                                     {Op::base, base ? b.operand("base", c.whole) : Value()}},
                                    {Op::y}, spec));
         },
         true, one_shape});
  };
  for (const Indexed& c : kShared) {
    add(c, ScatterMode::add, false, c.whole[0] != 5);
    add(c, ScatterMode::set, true, true);
    if (c.whole[0] != 5) continue;
    add(c, ScatterMode::add, true, true);
    add(c, ScatterMode::set, false, true);
  }
  for (const auto combine : {ScatterMode::mul, ScatterMode::min, ScatterMode::max})
    for (const Indexed& c :
         {Indexed{{5, 7}, {9}, 0}, Indexed{{5, 7}, {9}, 1}, Indexed{{6, 5}, {8, 5}, 0, kElements}})
      add(c, combine, true, true);
  add({{300, 4}, {9}, 0}, ScatterMode::add, false, true);  // long runs without contributions
  add({{2, 300, 4}, {9}, 1}, ScatterMode::set, true, true);
}

}  // namespace

std::vector<OpCase> indexing_cases() {
  std::vector<OpCase> cases;
  add_gathers(cases);
  add_scatters(cases);
  return cases;
}

}  // namespace ashlar::ops

// Invalid inputs of gather and scatter.
#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

void add_gathers(BadInputs& rows) {
  const auto gather = [&](const char* name, const Dims& x, const Dims& index, const Gather& op,
                          std::vector<std::string> says, DType integer = i32, const Dims& y = {}) {
    rows.push_back({name, "gather",
                    [=](Graph& g) {
                      const Value from = in(g, x);
                      g.apply(op, {{Gather::x, from}, {Gather::index, in(g, index, integer)}},
                              {Gather::y}, bad_with_dims(y));
                    },
                    says});
  };
  const Gather elements{.axis = 1, .mode = IndexMode::elements};
  gather("gather axis", {4, 3}, {2}, {.axis = 2}, {"axis", "got 2", "expected -2 to 1"});
  gather("gather by floats", {4, 3}, {2}, {},
         {"dtype of index 'i1'", "got f32", "expected an integer type"}, f32);
  gather("gather to too many axes", {2, 2, 2, 2, 2}, {1, 1, 1, 1, 1}, {},
         {"rank of index 'i1'", "got 5", "expected at most 4", "tensors have at most 8"});
  gather("gather of elements in other lines", {4, 3}, {5, 2}, elements,
         {"dims of index 'i1'", "got [5, 2]", "expected [4, 2]"});
  gather("gather of elements by another rank", {4, 3}, {4}, elements,
         {"dims of index 'i1'", "got [4]", "expected [4, 3]"});
  gather("gather y", {4, 3}, {2}, {}, {"dims of y", "got [4, 3]", "expected [2, 3]"}, i32, {4, 3});
}

void add_scatters(BadInputs& rows) {
  struct Case {
    Dims source = {2, 3}, index = {2}, base = {}, y = {4, 3};
    DType dtype = f32, integer = i64;
    Scatter op = {};
  };
  const auto scatter = [&](const char* name, const Case& c, std::vector<std::string> says) {
    rows.push_back(
        {name, "scatter",
         [=](Graph& g) {
           const Value source = in(g, c.source, c.dtype);
           const Value index = in(g, c.index, c.integer);
           const Value base = c.base.empty() ? Value() : in(g, c.base);
           g.apply(c.op,
                   {{Scatter::source, source}, {Scatter::index, index}, {Scatter::base, base}},
                   {Scatter::y}, bad_with_dims(c.y));
         },
         says});
  };
  scatter("scatter without dims", {.y = {}},
          {"dims of y", "got none", "expected explicit dims, or those of a base"});
  scatter("scatter axis", {.op = {.axis = -3}}, {"axis", "got -3", "expected -2 to 1"});
  scatter("scatter of other slices", {.source = {2, 4}},
          {"dims of source 'i0'", "got [2, 4]", "expected [2, 3]"});
  scatter("scatter by floats", {.integer = f16},
          {"dtype of index 'i1'", "got f16", "expected an integer type"});
  scatter("scatter adding booleans", {.dtype = boolean},
          {"dtype of source 'i0'", "got bool", "expected a numeric type"});
  scatter("scatter adding scales", {.dtype = e8m0}, {"dtype of source 'i0'", "got e8m0"});
  scatter("scatter onto another shape", {.base = {5, 3}},
          {"dims of y", "got [4, 3]", "expected [5, 3]"});
  scatter("scatter of elements in other lines",
          {.source = {2, 2}, .index = {2, 2}, .op = {.mode = IndexMode::elements}},
          {"dims of index 'i1'", "got [2, 2]", "expected [2, 3]"});
  scatter("scatter of elements by another shape",
          {.source = {3, 3}, .index = {2, 3}, .op = {.mode = IndexMode::elements}},
          {"dims of source 'i0'", "got [3, 3]", "expected [2, 3]"});
}

}  // namespace

void add_bad_indexing(BadInputs& rows) {
  add_gathers(rows);
  add_scatters(rows);
}

}  // namespace ashlar::tests

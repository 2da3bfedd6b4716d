// Cases of rng and data movement.
#include "graph/enum_names.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

void add_rng(std::vector<OpCase>& cases) {
  for (int d = 0; d <= static_cast<int>(RngDistribution::normal); ++d) {
    const auto distribution = static_cast<RngDistribution>(d);
    const std::string name(enum_name(distribution));
    const Rng attributes{.distribution = distribution,
                         .probability = 0.3,
                         .minimum = -2.0,
                         .maximum = 3.0,
                         .mean = 0.5,
                         .standard_deviation = 2.0,
                         .seed = 1234567,
                         .offset = 89};
    for (const Dims& dims : {Dims{3, 5, 7}, Dims{1}, Dims{2, 0}, Dims{1031}})
      cases.push_back(
          {"rng", name + ", " + to_string(dims), kPointwise,
           [=](CaseBuilder& b) { b.result(b.graph().rng(dims, attributes, {.dtype = b.dtype()})); },
           false, dims.rank() < 3});
    cases.push_back(
        {"rng", name + ", seed and offset as tensors", kPointwise,
         [=](CaseBuilder& b) {
           const Value seed = b.graph().scalar("seed", i64, 1);
           const Value offset = b.input("offset", {1}, i32);
           b.result(b.graph().rng({4, 9}, attributes, {.dtype = b.dtype()}, seed, offset));
         },
         false, true});
  }
}

}  // namespace

std::vector<OpCase> movement_cases() {
  std::vector<OpCase> cases;
  add_rng(cases);
  const auto add = [&](std::string op, std::string label, std::function<void(CaseBuilder&)> build) {
    cases.push_back({std::move(op), std::move(label), kMovable, std::move(build), true});
  };
  const std::vector<std::pair<Dims, Dims>> reshapes = {{{3, 4, 5}, {12, 5}}, {{6, 7}, {2, 3, 7}},
                                                       {{4, 6}, {3, 8}},     {{5}, {1, 5, 1}},
                                                       {{2, 0}, {0, 7}},     {{1, 1}, {1}}};
  for (const auto& [from, to] : reshapes)
    add("reshape", to_string(from) + " to " + to_string(to),
        [from = from, to = to](CaseBuilder& b) {
          b.result(b.graph().reshape(b.operand("x", from), to));
        });
  const std::vector<std::pair<Dims, Dims>> transposes = {
      {{3, 5}, {1, 0}}, {{2, 3, 4, 5}, {0, 2, 3, 1}}, {{7, 1, 3}, {2, 0, 1}},
      {{0, 3}, {1, 0}}, {{33, 35}, {1, 0}},           {{4}, {0}}};
  for (const auto& [dims, order] : transposes)
    add("transpose", to_string(dims) + " by " + to_string(order),
        [dims = dims, order = order](CaseBuilder& b) {
          b.result(b.graph().transpose(b.operand("x", dims), order));
        });
  struct Part {
    Dims x, start, limit, step;
  };
  for (const Part& p : {Part{{7, 9}, {1, 2}, {6, 9}, {}}, Part{{7, 9}, {0, 1}, {7, 8}, {3, 2}},
                        Part{{5, 3, 4}, {4, 0, 0}, {5, 3, 4}, {}}, Part{{4, 4}, {2, 2}, {2, 4}, {}},
                        Part{{11}, {3}, {11}, {5}}})
    add("slice", to_string(p.x) + " from " + to_string(p.start), [p](CaseBuilder& b) {
      b.result(b.graph().slice(b.operand("x", p.x), p.start, p.limit, p.step));
    });
  struct Parts {
    std::vector<Dims> dims;
    std::int64_t axis;
  };
  for (const Parts& p :
       {Parts{{{2, 3}, {5, 3}}, 0}, Parts{{{2, 3}, {2, 1}, {2, 7}}, 1}, Parts{{{2, 3, 5}}, 1},
        Parts{{{2, 0, 3}, {2, 4, 3}}, -2}, Parts{{{1}, {1}, {1}}, 0}})
    add("concat", std::to_string(p.dims.size()) + " parts on axis " + std::to_string(p.axis),
        [p](CaseBuilder& b) {
          std::vector<Value> parts;
          for (const Dims& dims : p.dims)
            parts.push_back(b.operand("x" + std::to_string(parts.size()), dims));
          b.result(b.graph().concat(parts, p.axis));
        });
  return cases;
}

}  // namespace ashlar::ops

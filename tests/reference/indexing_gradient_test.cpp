// gradients() of gather and scatter against central differences.
#include "graph/enum_names.hpp"
#include "reference/differences.hpp"

namespace ashlar::reference {
namespace {

struct Indexing {
  Dims whole, index, selection;
  std::int64_t axis;
  IndexMode mode;
  std::vector<double> positions;  // with duplicates, and outside
};

class IndexingGradients : public testing::TestWithParam<Indexing> {
 protected:
  void expect_matching(const Build& build) {
    expect_matching_gradients(build, -1.0, 1.0, [](Evaluation& evaluation) {
      evaluation.set("index", GetParam().positions);
    });
  }
};

TEST_P(IndexingGradients, OfGather) {
  const Indexing& c = GetParam();
  for (const auto out_of_range : {OutOfRange::zero, OutOfRange::clamp}) {
    SCOPED_TRACE(enum_name(out_of_range));
    expect_matching([&](Graph& g) {
      const Value x = g.input("x", c.whole, f64);
      const Value y =
          g.apply(Gather{.axis = c.axis, .mode = c.mode, .out_of_range = out_of_range},
                  {{Gather::x, x}, {Gather::index, g.input("index", c.index, i32)}}, {Gather::y});
      return Function{y, {x}};
    });
  }
}

TEST_P(IndexingGradients, OfScatter) {
  const Indexing& c = GetParam();
  for (const auto combine : {ScatterMode::add, ScatterMode::set})
    for (const bool has_base : {false, true}) {
      SCOPED_TRACE(enum_name(combine));
      expect_matching([&](Graph& g) {
        const Value source = g.input("source", c.selection, f64);
        const Value base = has_base ? g.input("base", c.whole, f64) : Value();
        std::vector<Value> wrt = {source};
        if (has_base) wrt.push_back(base);
        const Value y = g.apply(Scatter{.axis = c.axis, .mode = c.mode, .combine = combine},
                                {{Scatter::source, source},
                                 {Scatter::index, g.input("index", c.index, i64)},
                                 {Scatter::base, base}},
                                {Scatter::y}, of_dims(c.whole));
        return Function{y, wrt};
      });
    }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, IndexingGradients,
    testing::Values(Indexing{{4, 3}, {5}, {5, 3}, 0, IndexMode::slices, {1, 3, 1, -1, 9}},
                    Indexing{{2, 4}, {2, 2}, {2, 2, 2}, 1, IndexMode::slices, {1, 3, 1, 4}},
                    Indexing{{3, 2}, {3, 2}, {3, 2}, 0, IndexMode::elements, {1, 2, 1, 0, 7, 2}}));

TEST(ScatterGradient, IsRefusedForProducts) {
  Graph g;
  const Value source = g.input("source", {2}, f64);
  const Value y = g.apply(Scatter{.combine = ScatterMode::mul},
                          {{Scatter::source, source}, {Scatter::index, g.input("index", {2}, i64)}},
                          {Scatter::y}, of_dims({1}));
  EXPECT_THROW(gradients(g, std::array{y}, std::array{source}), Error);
}

}  // namespace
}  // namespace ashlar::reference

// Invalid inputs of rng and data movement.
#include <cmath>

#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

void add_rngs(BadInputs& rows) {
  const auto rng = [&](const char* name, const Dims& dims, const Rng& op,
                       std::vector<std::string> says) {
    rows.push_back({name, "rng", [=](Graph& g) { g.rng(dims, op, kBad); }, says});
  };
  rng("rng without dims", {}, {}, {"dims of y", "got none", "expected explicit dims"});
  rng("rng probability", {4}, {.probability = 1.5},
      {"probability", "got 1.5", "expected a value in [0, 1]"});
  rng("rng probability NaN", {4}, {.probability = std::nan("")},
      {"probability", "got nan", "expected a value in [0, 1]"});
  rng("rng range", {4}, {.minimum = 2.0, .maximum = 1.0},
      {"minimum", "got 2", "expected at most maximum = 1"});
  rng("rng deviation", {4}, {.standard_deviation = -1.0},
      {"standard_deviation", "got -1", "expected at least 0"});
  rows.push_back({"rng seed of many",
                  "rng",
                  [](Graph& g) { g.rng({4}, {}, kBad, in(g, {2}, i64)); },
                  {"dims of seed_tensor 'i0'", "got [2]", "expected a single element"}});
  rows.push_back({"rng offset of floats",
                  "rng",
                  [](Graph& g) { g.rng({4}, {}, kBad, in(g, {1}, i64), in(g, {1})); },
                  {"dtype of offset_tensor 'i", "got f32", "expected an integer type"}});
}

void add_reshapes(BadInputs& rows) {
  const auto reshape = [&](const char* name, const Dims& x, const Dims& dims,
                           std::vector<std::string> says,
                           ErrorCode code = ErrorCode::invalid_graph) {
    rows.push_back(
        {name, "reshape", [=](Graph& g) { g.reshape(in(g, x), dims, kBad); }, says, code});
  };
  reshape("reshape to nothing", {2, 3}, {}, {"dims", "got none", "expected the extents of y"});
  reshape("reshape count", {2, 3}, {7}, {"dims", "got [7]", "expected 6 elements"});
  reshape("reshape two open", {2, 3}, {-1, -1}, {"dims", "got [-1, -1]", "at most one -1"});
  reshape("reshape negative", {2, 3}, {-6}, {"dims", "got [-6]", "expected extents of at least 0"});
  reshape("reshape indivisible", {2, 3}, {-1, 4},
          {"dims", "got [-1, 4]", "expected extents whose product divides 6"});
  reshape("reshape inferred extent with zero extent", {2, 0}, {-1, 0},
          {"dims", "got [-1, 0]", "expected extents whose product divides 0"});
  reshape("reshape overflow", {2, 3}, {std::int64_t{1} << 40, std::int64_t{1} << 40},
          {"size overflow", "got 1099511627776 * 1099511627776"}, ErrorCode::size_overflow);
}

void add_transposes_and_slices(BadInputs& rows) {
  const auto transpose = [&](const char* name, const Dims& permutation,
                             std::vector<std::string> says) {
    rows.push_back({name, "transpose",
                    [=](Graph& g) {
                      g.transpose(in(g, {2, 3, 4}), permutation, kBad);
                    },
                    says});
  };
  transpose("transpose without permutation", {}, {"permutation", "got []", "expected 3 axes"});
  transpose("transpose too short", {1, 0}, {"permutation", "got [1, 0]", "expected 3 axes"});
  transpose("transpose twice", {0, 1, 1},
            {"permutation", "got [0, 1, 1]", "expected each of 0 to 2 once"});
  transpose("transpose outside", {0, 1, 3},
            {"permutation", "got [0, 1, 3]", "expected each of 0 to 2 once"});
  transpose("transpose negative", {0, 1, -1},
            {"permutation", "got [0, 1, -1]", "expected each of 0 to 2 once"});

  const auto slice = [&](const char* name, const Dims& start, const Dims& limit, const Dims& step,
                         std::vector<std::string> says) {
    rows.push_back({name, "slice",
                    [=](Graph& g) {
                      g.slice(in(g, {4, 5}), start, limit, step, kBad);
                    },
                    says});
  };
  slice("slice start length", {0}, {4, 5}, {}, {"start", "got [0]", "expected 2 values"});
  slice("slice limit length", {0, 0}, {4}, {}, {"limit", "got [4]", "expected 2 values"});
  slice("slice step length", {0, 0}, {4, 5}, {1}, {"step", "got [1]", "expected 2 values"});
  slice("slice step zero", {0, 0}, {4, 5}, {1, 0},
        {"step", "got [1, 0]", "expected values of at least 1"});
  slice("slice negative start", {-1, 0}, {4, 5}, {},
        {"range of axis 0", "got [-1, 4)", "expected a part of [0, 4)"});
  slice("slice past the end", {0, 0}, {4, 6}, {},
        {"range of axis 1", "got [0, 6)", "expected a part of [0, 5)"});
  slice("slice backwards", {3, 0}, {2, 5}, {},
        {"range of axis 0", "got [3, 2)", "expected a part of [0, 4)"});
}

void add_concats(BadInputs& rows) {
  const auto concat = [&](const char* name, std::vector<Dims> inputs, std::int64_t axis,
                          std::vector<std::string> says) {
    rows.push_back({name, "concat",
                    [=](Graph& g) {
                      std::vector<Value> values;
                      for (const Dims& dims : inputs) values.push_back(in(g, dims));
                      g.concat(values, axis, kBad);
                    },
                    says});
  };
  concat("concat of nothing", {}, 0, {"input x", "got no tensor", "expected at least one"});
  concat("concat axis", {{2, 3}}, 2, {"axis", "got 2", "expected -2 to 1"});
  concat("concat dims", {{2, 3}, {2, 3}, {4, 3}}, 1,
         {"dims of x 'i2'", "got [4, 3]", "expected those of 'i0', [2, 3], except on axis 1"});
  concat("concat ranks", {{2, 3}, {2, 3, 1}}, 0,
         {"dims of x 'i1'", "got [2, 3, 1]", "expected those of 'i0'"});
  rows.push_back({"concat overflow",
                  "concat",
                  [](Graph& g) {
                    const Dims huge = {std::int64_t{1} << 62};
                    g.concat(std::array{in(g, huge, boolean), in(g, huge, boolean)}, 0, kBad);
                  },
                  {"size overflow", "got 4611686018427387904 + 4611686018427387904"},
                  ErrorCode::size_overflow});
  rows.push_back({"concat dtypes",
                  "concat",
                  [](Graph& g) {
                    g.concat(std::array{in(g, {2}), in(g, {2}, f16)}, 0, kBad);
                  },
                  {"dtype of x 'i1'", "got f16", "expected f32"}});
}

}  // namespace

void add_bad_data_movement(BadInputs& rows) {
  add_rngs(rows);
  add_reshapes(rows);
  add_transposes_and_slices(rows);
  add_concats(rows);
}

}  // namespace ashlar::tests

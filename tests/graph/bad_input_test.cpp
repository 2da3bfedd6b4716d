// Every invalid input throws the expected error and leaves the graph unchanged.
#include "graph/bad_input.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/op_traits.hpp"

namespace ashlar::tests {

const BadInputs& bad_inputs() {
  static const BadInputs rows = [] {
    BadInputs all;
    for (auto* add :
         {add_bad_convolutions, add_bad_dense, add_bad_resamples, add_bad_norms, add_bad_attentions,
          add_bad_data_movement, add_bad_recurrent, add_bad_low_precision, add_bad_statistics,
          add_bad_spatial, add_bad_sequence, add_bad_multi_head, add_bad_indexing,
          add_bad_language_model, add_bad_lines, add_bad_graphs, add_bad_json})
      add(all);
    return all;
  }();
  return rows;
}

namespace {

TEST(BadInput, TableIsLarge) {
  EXPECT_GE(bad_inputs().size(), 150u);
  std::set<std::string> names;
  for (const BadInput& row : bad_inputs()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

class BadInputRow : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputRow, ReportsItsError) {
  const BadInput& row = GetParam();
  Graph graph;
  try {
    row.attempt(graph);
    FAIL() << "was accepted";
  } catch (const Error& error) {
    const std::string sentence = error.what();
    EXPECT_EQ(to_string(error.code()), std::string(to_string(row.code))) << sentence;
    for (const std::string& part : row.says) EXPECT_THAT(sentence, testing::HasSubstr(part));
    if (find_traits(row.op) != nullptr) {
      EXPECT_THAT(sentence, testing::HasSubstr(row.op + " '"));
    }
    EXPECT_LT(sentence.size(), 3000u);
  }
}

std::string test_name(const testing::TestParamInfo<BadInput>& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, BadInputRow, testing::ValuesIn(bad_inputs()), test_name);

}  // namespace

}  // namespace ashlar::tests

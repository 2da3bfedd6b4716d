// docs/ops against the table of operations: a page for every operation, with everything the table
// names.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "graph/enum_names.hpp"
#include "graph/op_traits.hpp"
#include "graph/visit_attributes.hpp"

namespace ashlar {
namespace {

using Json = nlohmann::json;

constexpr const char* kHeadings[] = {"## What it computes",
                                     "## Gradient",
                                     "## Operands",
                                     "## Attributes",
                                     "## Layouts and dtypes",
                                     "## Edge cases",
                                     "## Error bound",
                                     "## Engines",
                                     "## Example"};

std::string read_page(std::string_view name) {
  const auto path =
      std::filesystem::path(ASHLAR_SOURCE_DIR) / "docs/ops" / (std::string(name) + ".md");
  std::ifstream stream(path);
  EXPECT_TRUE(stream.good()) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool mentions(const std::string& page, std::string_view word) {
  return page.find("`" + std::string(word) + "`") != std::string::npos;
}

// The attributes of an operation, and the values of those that are enumerations.
struct Words {
  std::set<std::string> attributes = {}, values = {};

  template <class T>
  void operator()(std::string_view name, const T& attribute) {
    attributes.emplace(name);
    if constexpr (std::is_enum_v<T>)
      for (std::string_view value : enum_names(attribute)) values.emplace(value);
  }
};

Words words_of(const OpTraits& row) {
  Words words;
  visit_attributes(default_op(row.name), words);
  return words;
}

TEST(OpPages, NameEveryOperandAttributeAndMode) {
  for (const OpTraits& row : op_table()) {
    SCOPED_TRACE(std::string(row.name));
    const std::string page = read_page(row.doc_page);
    EXPECT_TRUE(mentions(page, row.name));
    for (std::span<const Slot> slots : {row.inputs, row.outputs})
      for (const Slot& slot : slots) EXPECT_TRUE(mentions(page, slot.name)) << slot.name;
    const Words words = words_of(row);
    for (const std::string& name : words.attributes) EXPECT_TRUE(mentions(page, name)) << name;
    for (const std::string& value : words.values) EXPECT_TRUE(mentions(page, value)) << value;
    EXPECT_TRUE(mentions(read_page("README"), row.name));
  }
}

TEST(OpPages, HaveTheSameHeadings) {
  for (const OpTraits& row : op_table()) {
    const std::string page = read_page(row.doc_page);
    std::size_t position = 0;
    for (const char* heading : kHeadings) {
      const std::size_t found = page.find(std::string("\n") + heading + "\n", position);
      ASSERT_NE(found, std::string::npos) << row.doc_page << ": " << heading;
      position = found;
    }
  }
}

// The JSON examples of a page, one node each.
std::vector<Json> example_nodes(const std::string& page) {
  std::vector<Json> nodes;
  const std::string open = "```json\n", close = "```";
  for (std::size_t begin = page.find(open); begin != std::string::npos;
       begin = page.find(open, begin)) {
    begin += open.size();
    const Json json = Json::parse(page.substr(begin, page.find(close, begin) - begin));
    if (json.is_array())
      nodes.insert(nodes.end(), json.begin(), json.end());
    else
      nodes.push_back(json);
  }
  return nodes;
}

void check_operands(const Json& operands, std::span<const Slot> slots) {
  for (const auto& [name, tensor] : operands.items()) {
    const auto is_named = [&, wanted = name](const Slot& slot) { return slot.name == wanted; };
    EXPECT_TRUE(std::any_of(slots.begin(), slots.end(), is_named)) << name;
  }
  for (const Slot& slot : slots) {
    if (slot.need == Slot::Need::optional) continue;
    EXPECT_TRUE(operands.contains(slot.name)) << slot.name;
  }
}

TEST(OpPages, ShowNodesThatFitTheTable) {
  for (const OpTraits& row : op_table()) {
    const std::vector<Json> nodes = example_nodes(read_page(row.doc_page));
    EXPECT_FALSE(nodes.empty()) << row.doc_page;
    for (const Json& node : nodes) {
      SCOPED_TRACE(node.dump());
      const OpTraits* traits = find_traits(node.at("op").get<std::string>());
      ASSERT_NE(traits, nullptr);
      check_operands(node.value("inputs", Json::object()), traits->inputs);
      check_operands(node.at("outputs"), traits->outputs);
      const Words words = words_of(*traits);
      const Json attributes = node.value("attributes", Json::object());
      for (const auto& [name, value] : attributes.items()) {
        EXPECT_TRUE(words.attributes.contains(name)) << name;
        if (!value.is_string()) continue;
        EXPECT_TRUE(words.values.contains(value.get<std::string>())) << name;
      }
    }
  }
}

}  // namespace
}  // namespace ashlar

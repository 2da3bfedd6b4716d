// Every operation has a reference, a JSON form, a validation case and a page.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "graph/bad_input.hpp"
#include "graph/op_traits.hpp"
#include "graph/sample_graphs.hpp"
#include "reference/reference.hpp"

namespace ashlar::tests {
namespace {

constexpr std::size_t kSlackBytes = 64;

// Runs every node of a graph with the reference; every tensor has its own zeroed memory.
void evaluate(const Graph& graph) {
  std::vector<std::vector<std::byte>> memory;
  for (const Tensor& tensor : graph.tensors())
    memory.emplace_back(static_cast<std::size_t>(byte_size(tensor)) + kSlackBytes);
  for (const Node& node : graph.nodes()) {
    std::vector<const void*> inputs, input_offsets, output_offsets;
    std::vector<void*> outputs;
    const auto memory_of = [&](TensorId id) -> void* {
      return id == kNoTensor ? nullptr : memory[static_cast<std::size_t>(id)].data();
    };
    const auto offsets_of = [&](TensorId id) {
      return id == kNoTensor ? nullptr : memory_of(graph.tensor(id).ragged_offset);
    };
    for (TensorId id : node.inputs) {
      const bool constant = id != kNoTensor && graph.tensor(id).kind == TensorKind::constant;
      inputs.push_back(constant ? nullptr : memory_of(id));
      input_offsets.push_back(offsets_of(id));
    }
    for (TensorId id : node.outputs) {
      outputs.push_back(memory_of(id));
      output_offsets.push_back(offsets_of(id));
    }
    reference::evaluate_node(graph, node, {inputs, outputs, input_offsets, output_offsets});
  }
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Operation : public testing::TestWithParam<OpTraits> {
 protected:
  static const std::vector<SampleGraph>& samples() {
    static const std::vector<SampleGraph> all = sample_graphs();
    return all;
  }
  std::vector<const Graph*> samples_of_operation() const {
    std::vector<const Graph*> found;
    for (const SampleGraph& sample : samples())
      if (sample.op == GetParam().name) found.push_back(&sample.graph);
    return found;
  }
};

INSTANTIATE_TEST_SUITE_P(Table, Operation,
                         testing::ValuesIn(std::vector<OpTraits>(op_table().begin(),
                                                                 op_table().end())),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(Operation, HasAReference) {
  ASSERT_FALSE(samples_of_operation().empty());
  for (const Graph* graph : samples_of_operation()) EXPECT_NO_THROW(evaluate(*graph));
}

TEST_P(Operation, HasAJsonForm) {
  ASSERT_FALSE(samples_of_operation().empty());
  for (const Graph* graph : samples_of_operation()) {
    const std::string json = graph->to_json();
    EXPECT_NE(json.find("\"op\": \"" + std::string(GetParam().name) + "\""), std::string::npos);
    EXPECT_EQ(Graph::from_json(json).to_json(), json);
  }
}

TEST_P(Operation, HasAValidationCase) {
  const auto& rows = bad_inputs();
  EXPECT_GE(std::count_if(rows.begin(), rows.end(),
                          [&](const BadInput& row) { return row.op == GetParam().name; }),
            3);
}

TEST_P(Operation, HasAPage) {
  const std::string folder = ASHLAR_SOURCE_DIR "/docs/ops/";
  const std::string page = read_file(folder + std::string(GetParam().doc_page) + ".md");
  ASSERT_FALSE(page.empty()) << GetParam().doc_page;
  EXPECT_NE(page.find(GetParam().name), std::string::npos);
}

}  // namespace
}  // namespace ashlar::tests

// The harness of the reference tests.
#include "reference/harness.hpp"

#include <cmath>
#include <cstring>

namespace ashlar::reference {

namespace {

std::size_t at(TensorId id) { return static_cast<std::size_t>(id); }

}  // namespace

Evaluation::Evaluation(const Graph& graph) : graph_(graph), memory_(graph.tensors().size()) {
  // One extra byte, so that an empty tensor has an address.
  for (std::size_t id = 0; id < memory_.size(); ++id)
    memory_[id].resize(static_cast<std::size_t>(byte_size(graph.tensors()[id])) + 1);
}

const Tensor& Evaluation::tensor(const std::string& name) const {
  const TensorId id = graph_.find_tensor(name);
  if (id == kNoTensor) throw std::runtime_error("no tensor '" + name + "'");
  return graph_.tensor(id);
}

std::byte* Evaluation::data(const std::string& name) {
  tensor(name);
  return memory_[at(graph_.find_tensor(name))].data();
}

void Evaluation::set(const std::string& name, const std::vector<double>& values) {
  ASSERT_EQ(static_cast<std::int64_t>(values.size()), number_count(tensor(name))) << name;
  for (std::size_t i = 0; i < values.size(); ++i)
    write_element(tensor(name), data(name), static_cast<std::int64_t>(i), values[i]);
}

std::vector<double> Evaluation::get(const std::string& name) const {
  const Tensor& tensor = this->tensor(name);
  const std::vector<std::byte>& memory = memory_[at(graph_.find_tensor(name))];
  std::vector<double> values(static_cast<std::size_t>(number_count(tensor)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = read_element(tensor, memory.data(), static_cast<std::int64_t>(i));
  return values;
}

void Evaluation::fill_inputs(std::uint64_t seed, double low, double high) {
  for (const Tensor& tensor : graph_.tensors())
    if (tensor.kind == TensorKind::input || tensor.kind == TensorKind::scalar)
      fill_random(tensor, data(tensor.name), seed++, low, high);
}

const void* Evaluation::offsets_of(TensorId id) const {
  const TensorId offsets = graph_.tensor(id).ragged_offset;
  return offsets == kNoTensor ? nullptr : memory_[at(offsets)].data();
}

void Evaluation::run_nodes() {
  for (const Node& node : graph_.nodes()) {
    std::vector<const void*> inputs, input_offsets, output_offsets;
    std::vector<void*> outputs;
    for (TensorId id : node.inputs) {
      inputs.push_back(id == kNoTensor ? nullptr : memory_[at(id)].data());
      input_offsets.push_back(id == kNoTensor ? nullptr : offsets_of(id));
    }
    for (TensorId id : node.outputs) {
      outputs.push_back(id == kNoTensor ? nullptr : memory_[at(id)].data());
      output_offsets.push_back(id == kNoTensor ? nullptr : offsets_of(id));
    }
    evaluate_node(graph_, node, {inputs, outputs, input_offsets, output_offsets});
  }
}

std::map<std::string, Expected> Evaluation::oracle(const PlanNotes& notes) const {
  std::vector<const void*> pointers;
  for (TensorId id : graph_.bound_tensors()) pointers.push_back(memory_[at(id)].data());
  std::map<std::string, Expected> results;
  for (Expected& expected : evaluate_reference(graph_, pointers, notes))
    results.emplace(graph_.tensor(expected.tensor).name, std::move(expected));
  return results;
}

void Evaluation::expect_nodes_agree() {
  run_nodes();
  for (const auto& [name, expected] : oracle()) {
    const Comparison comparison = expected.compare(tensor(name), data(name));
    EXPECT_TRUE(comparison.ok) << comparison.summary;
  }
}

void expect_result(Evaluation& evaluation, const std::string& output,
                   const std::vector<double>& expected, double tolerance) {
  evaluation.run_nodes();
  const std::vector<double> direct = evaluation.get(output);
  const Expected oracle = evaluation.oracle(output);
  ASSERT_EQ(direct.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(direct[i])) << output << " at " << i;
      EXPECT_TRUE(std::isnan(oracle.values[i])) << output << " at " << i;
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(direct[i], expected[i]) << output << " at " << i;
      EXPECT_EQ(oracle.values[i], expected[i]) << output << " at " << i;
    } else {
      EXPECT_NEAR(direct[i], expected[i], tolerance) << output << " at " << i;
      EXPECT_NEAR(oracle.values[i], expected[i], tolerance) << output << " at " << i << ", oracle";
    }
  }
}

void expect_gradients(Evaluation& forward, const std::string& y, Evaluation& backward,
                      const std::vector<std::string>& inputs, const std::string& dy) {
  forward.run_nodes();
  backward.fill_inputs(4711);
  for (const Tensor& tensor : backward.graph().tensors())
    if (tensor.kind == TensorKind::input && forward.has(tensor.name))
      backward.set(tensor.name, forward.get(tensor.name));
  backward.run_nodes();

  const std::vector<double> weights = backward.get(dy);
  const auto loss = [&] {
    forward.run_nodes();
    const std::vector<double> values = forward.get(y);
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
    return sum;
  };
  constexpr double kStep = 1e-5;
  for (const std::string& name : inputs) {
    const std::vector<double> original = forward.get(name);
    const std::vector<double> gradient = backward.get("d" + name);
    const std::vector<double> oracle = backward.oracle("d" + name).values;
    ASSERT_EQ(original.size(), gradient.size());
    double largest = 0.0;
    for (std::size_t i = 0; i < original.size(); ++i) {
      std::vector<double> moved = original;
      moved[i] = original[i] + kStep;
      forward.set(name, moved);
      const double above = loss();
      moved[i] = original[i] - kStep;
      forward.set(name, moved);
      const double difference = (above - loss()) / (2.0 * kStep);
      EXPECT_NEAR(gradient[i], difference, 1e-7 * std::max(1.0, std::fabs(difference)))
          << "d" << name << " at " << i;
      EXPECT_NEAR(gradient[i], oracle[i], 1e-12 * std::max(1.0, std::fabs(oracle[i])))
          << "d" << name << " at " << i;
      largest = std::max(largest, std::fabs(difference));
    }
    EXPECT_GT(largest, 1e-3) << "d" << name << " is zero everywhere: the case tests nothing";
    forward.set(name, original);
  }
  forward.run_nodes();
}

}  // namespace ashlar::reference

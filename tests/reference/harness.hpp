// A graph with memory for all of its tensors, evaluated by the oracle and node by node with
// evaluate_node.
#pragma once

#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>
#include <map>
#include <string>
#include <vector>

#include "reference/reference.hpp"

namespace ashlar::reference {

class Evaluation {
 public:
  explicit Evaluation(const Graph& graph);

  const Tensor& tensor(const std::string& name) const;
  bool has(const std::string& name) const { return graph_.find_tensor(name) != kNoTensor; }
  std::byte* data(const std::string& name);
  void set(const std::string& name, const std::vector<double>& row_major_values);
  std::vector<double> get(const std::string& name) const;
  // Every input gets its own random stream; floating-point values are in [low, high].
  void fill_inputs(std::uint64_t seed, double low = -1.0, double high = 1.0);

  void run_nodes();  // evaluate_node, into memory
  std::map<std::string, Expected> oracle(const PlanNotes& notes = {}) const;
  Expected oracle(const std::string& output, const PlanNotes& notes = {}) const {
    return oracle(notes).at(output);
  }
  // run_nodes() and compare every output with the oracle.
  void expect_nodes_agree();

  const Graph& graph() const { return graph_; }

 private:
  const void* offsets_of(TensorId id) const;
  const Graph& graph_;
  std::vector<std::vector<std::byte>> memory_;  // by tensor
};

// Expects both evaluations to yield these values, up to `tolerance` (for values that are not exact
// in the dtype).
void expect_result(Evaluation& evaluation, const std::string& output,
                   const std::vector<double>& expected, double tolerance = 0.0);

// `backward` computes d<name> for inputs <name> of `forward` from "dy" (the gradient of output y)
// and the inputs and outputs of `forward` that it names. Compares them with central differences of
// sum(dy * y), all in f64. The inputs of `forward` must be filled.
void expect_gradients(Evaluation& forward, const std::string& y, Evaluation& backward,
                      const std::vector<std::string>& inputs, const std::string& dy = "dy");

inline OutputSpec of_dims(const Dims& dims) {
  OutputSpec spec;
  spec.dims = dims;
  return spec;
}

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline const double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace ashlar::reference

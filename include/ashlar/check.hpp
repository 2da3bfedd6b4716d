// The oracle: double-precision evaluation of any graph with a rigorous bound on what a correct
// implementation may differ by, and the comparison against it.
#pragma once

#include <ashlar/graph.hpp>
#include <ashlar/plan.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

// One output of the oracle, row-major over its dims (not its strides). A complex element is two
// numbers side by side, here and in the functions below: real part, imaginary part.
struct Expected {
  TensorId tensor = kNoTensor;
  std::vector<double> values;  // in the tensor's dtype, widened
  std::vector<double>
      bounds;  // |correct implementation - value| <= bound; +inf where anything goes
  // Ragged outputs only: the B + 1 offsets. Elements past the end of a row are not compared.
  std::vector<std::int64_t> row_starts;
};

// Evaluates the graph on the memory bound to its inputs and scalars, given in the order of
// Graph::bound_tensors(); output pointers are ignored. `notes` says what the implementation may do
// (Plan::notes() for results of a plan); by default it does nothing out of the ordinary. See
// docs/numerics.md for the bounds.
std::vector<Expected> evaluate_reference(const Graph& graph, std::span<const void* const> pointers,
                                         const PlanNotes& notes = {});

struct Comparison {
  bool ok = true;
  std::int64_t compared = 0;  // elements with a finite bound
  std::int64_t mismatches = 0;
  std::int64_t worst_index = -1;  // row-major, of the largest error / bound
  double worst_error = 0.0;       // absolute, at worst_index
  double worst_bound = 0.0;
  std::string summary;  // a sentence: "y: worst error 3.1e-4 (bound 9.8e-4) at [0, 3, 1, 2]"
};

// Compares memory holding `tensor` with the oracle, element by element. NaN and infinities must
// match.
Comparison compare(const Tensor& tensor, const void* actual, const Expected& expected);

// --- element access, for tests and tools: row-major index -> value, through strides and dtype.
std::int64_t number_count(const Tensor& tensor);  // its elements; twice as many if it is complex
double read_element(const Tensor& tensor, const void* data, std::int64_t row_major_index);
void write_element(const Tensor& tensor, void* data, std::int64_t row_major_index, double value);
// Fills a tensor with seeded values suited to its dtype (uniform in [low, high], rounded to the
// dtype).
void fill_random(const Tensor& tensor, void* data, std::uint64_t seed, double low = -1.0,
                 double high = 1.0);

}  // namespace ashlar

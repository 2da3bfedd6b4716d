// The reference oracle: double-precision evaluation of any graph with a rigorous error bound for
// every output element, and the comparison of results against it.
#pragma once

#include <ashlar/graph.hpp>
#include <ashlar/plan.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

#pragma GCC visibility push(default)

struct Comparison {
  bool ok = true;
  std::int64_t compared = 0;  // elements with a finite bound
  std::int64_t mismatches = 0;
  std::int64_t worst_index = -1;  // row-major, of the largest ratio error / bound
  double worst_error = 0.0;       // absolute, at worst_index
  double worst_bound = 0.0;
  std::string summary;  // one line: "y: worst error 3.1e-4 (bound 9.8e-4) at [0, 3, 1, 2]"
};

// One output of the oracle, row-major over its dims (strides do not matter). A complex element is
// two consecutive doubles, here and in the functions below: real part, then imaginary part.
struct Expected {
  TensorId tensor = kNoTensor;
  std::vector<double> values;  // rounded to the tensor's dtype, then widened
  std::vector<double>
      bounds;  // |correct implementation - value| <= bound; +inf where any result is accepted
  // Ragged outputs only: the B + 1 offsets. Elements past the end of a sequence are not compared.
  std::vector<std::int64_t> row_starts;

  // Compares the host memory of `candidate` with the values, element by element. NaN and infinities
  // must match exactly.
  Comparison compare(const Tensor& candidate, const void* actual) const;
};

// Evaluates the graph on host memory. `pointers` are in the order of Graph::bound_tensors(); output
// pointers are ignored. `notes` widens the bounds by what the implementation does: pass
// Plan::notes() for results of a plan; the default allows plain arithmetic in the compute type
// only. docs/numerics.md derives the bounds. Throws Error(invalid_argument) for a missing pointer.
std::vector<Expected> evaluate_reference(const Graph& graph, std::span<const void* const> pointers,
                                         const PlanNotes& notes = {});

// --- element access for tests and tools: by row-major index, applying strides and dtype.
std::int64_t number_count(const Tensor& tensor);  // elements; a complex element counts twice
double read_element(const Tensor& tensor, const void* data, std::int64_t row_major_index);
void write_element(const Tensor& tensor, void* data, std::int64_t row_major_index, double value);
// Fills a tensor with seeded pseudo-random values, uniform in [low, high] and rounded to its dtype.
void fill_random(const Tensor& tensor, void* data, std::uint64_t seed, double low = -1.0,
                 double high = 1.0);

#pragma GCC visibility pop

}  // namespace ashlar

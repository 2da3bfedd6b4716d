// The operations as data: for programs that list, document, bind or try them.
#pragma once

#include <ashlar/graph.hpp>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

#pragma GCC visibility push(default)

struct OperandInfo {
  std::string name;  // the enumerator of In or Out
  bool is_optional = false;
  bool is_variadic = false;  // any number of tensors
};

struct OperationInfo {
  std::string name;                          // "conv_forward", as in JSON
  std::string doc_page;                      // docs/ops/<doc_page>.md
  std::vector<OperandInfo> inputs, outputs;  // by In and Out
};

// All of them, in the order of Op.
const std::vector<OperationInfo>& operations();

// A small graph of one operation with its main operands in `dtype`. Throws Error(invalid_graph) if
// the operation is not defined for that dtype.
Graph sample_graph(std::string_view operation, DType dtype);

// What the values of an input mean, which decides what random values suit it.
struct Contents {
  enum class Kind : std::uint8_t {
    values,       // in [low, high]
    whole,        // whole numbers in [low, high]: lengths, indices, seeds
    keep_mask,    // true with probability `high`
    by_element,   // `element` gives the value of each element
    row_offsets,  // where the rows of ragged tensors begin: packed_row_offsets()
  };
  static constexpr double kAny = std::numeric_limits<double>::infinity();

  Kind kind = Kind::values;
  double low = -1.0, high = 1.0;  // typical values
  // The operation defines its results for values from low - below to high + above.
  double below = kAny, above = kAny;
  // The value of an element (by its row-major position), given a random number in [0, 1).
  std::function<double(std::int64_t position, double random)> element = {};

  bool may_be_anything() const { return below == kAny && above == kAny; }
};

// Of an input or scalar, by the first operation that asks for something particular.
Contents contents_of(const Graph& graph, TensorId input);

// Offsets for an input that holds row_offsets: rows one behind another, each as long as its
// sequence, or whole if no input holds the lengths. length(tensor, row) reads one of these.
std::vector<std::int64_t> packed_row_offsets(
    const Graph& graph, TensorId offsets,
    const std::function<double(TensorId lengths, std::int64_t row)>& length);

#pragma GCC visibility pop

}  // namespace ashlar

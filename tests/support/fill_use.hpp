// The use of a tensor by an operation, so that it can be filled with suitable values.
#pragma once

#include <ashlar/graph.hpp>
#include <optional>
#include <random>
#include <string_view>

namespace ashlar::support {

using Random = std::mt19937_64;

inline double uniform(Random& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
}
inline double whole(Random& random, std::int64_t low, std::int64_t high) {
  return static_cast<double>(
      low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1)));
}

struct Use {
  const Graph* graph = nullptr;
  const Tensor* tensor = nullptr;  // the one being filled
  const Node* node = nullptr;      // the first reader
  std::string_view slot = {};      // as the node's schema names it
  std::int64_t element = 0;        // the one being filled, row-major

  const Dims& dims(int input) const {
    return graph->tensor(node->inputs[static_cast<std::size_t>(input)]).dims;
  }
};

// Lengths, indices, labels and similar operands of one family of operations; nullopt if any value
// is suitable.
std::optional<double> fill_attention(const Use& use, Random& random);
std::optional<double> fill_recurrent(const Use& use, Random& random);
std::optional<double> fill_low_precision(const Use& use, Random& random);
std::optional<double> fill_statistics(const Use& use, Random& random);
std::optional<double> fill_spatial(const Use& use, Random& random);
std::optional<double> fill_sequence(const Use& use, Random& random);
std::optional<double> fill_multi_head(const Use& use, Random& random);

}  // namespace ashlar::support

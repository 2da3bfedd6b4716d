// What an input means to the operations that read it, which decides what random values suit it.
#pragma once

#include <ashlar/graph.hpp>

namespace ashlar::cli {

struct Role {
  enum class Kind : std::uint8_t {
    values,        // uniform in [low, high]
    fixed,         // `low` everywhere
    whole,         // whole numbers in [low, high]: lengths, seeds
    rising,        // whole numbers that rise evenly from 0 to below `high`
    keep_mask,     // true with probability `high`
    row_offsets,   // where the rows of a ragged tensor begin
    window_index,  // positions inside pooling windows, never in the padding
  };
  Kind kind = Kind::values;
  double low = -1.0;
  double high = 1.0;
  const Node* node = nullptr;  // the operation that gave the role, when one did
};

// By the first operation that asks for more than plain values; plain values suit the rest.
Role role_of(const Graph& graph, TensorId tensor);

}  // namespace ashlar::cli

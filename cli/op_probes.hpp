// The smallest graph of every operation, to ask which engines take it.
#pragma once

#include <ashlar/graph.hpp>
#include <functional>
#include <string_view>
#include <vector>

namespace ashlar::cli {

struct OpProbe {
  std::string_view op;  // as in the schema
  // Makes the operation in an empty graph, with its main operands in `dtype`; throws
  // Error(invalid_graph) when the operation is not defined for it. Returns the results to keep.
  std::vector<Value> (*build)(Graph& graph, DType dtype);
};

// One for every operation, in the order of the schema.
const std::vector<OpProbe>& op_probes();

Graph make_probe(const OpProbe& probe, DType dtype);

}  // namespace ashlar::cli

// The table of invalid inputs: each row builds something invalid and lists parts of the error
// message it must produce.
#pragma once

#include <ashlar/graph.hpp>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace ashlar::tests {

struct BadInput {
  std::string name;
  std::string op;  // an operation, or "tensor", "graph", "value", "json"
  std::function<void(Graph&)> attempt;
  std::vector<std::string> says;  // parts of the message: attribute, got, expected
  ErrorCode code = ErrorCode::invalid_graph;
};

inline void PrintTo(const BadInput& row, std::ostream* stream) { *stream << row.name; }

using BadInputs = std::vector<BadInput>;

// Every row, from all the files bad_*.cpp.
const BadInputs& bad_inputs();

void add_bad_convolutions(BadInputs& rows);
void add_bad_dense(BadInputs& rows);  // matmul, pointwise, reduction, softmax
void add_bad_resamples(BadInputs& rows);
void add_bad_norms(BadInputs& rows);
void add_bad_attentions(BadInputs& rows);
void add_bad_data_movement(BadInputs& rows);  // rng, reshape, transpose, slice, concat
void add_bad_recurrent(BadInputs& rows);      // rnn
void add_bad_low_precision(BadInputs& rows);  // block scales, sub-byte and complex types
void add_bad_statistics(
    BadInputs& rows);                   // gen_stats, bn_finalize, bn_backward_weights, local norms
void add_bad_spatial(BadInputs& rows);  // ctc, spatial transformer, im2col, tensor_transform
void add_bad_sequence(
    BadInputs& rows);  // mixture of experts, caches, bands, causal convolution, dropout
void add_bad_multi_head(BadInputs& rows);      // multi-head attention
void add_bad_indexing(BadInputs& rows);        // gather, scatter
void add_bad_language_model(BadInputs& rows);  // cross-entropy, rope
void add_bad_lines(BadInputs& rows);           // scan, top_k, pad
void add_bad_graphs(BadInputs& rows);          // tensors, values, operands, whole graphs
void add_bad_json(BadInputs& rows);

// An input named i0, i1, ... by its position in the graph. (The evaluation order of the arguments
// of one call is unspecified.)
inline Value in(Graph& g, const Dims& dims, DType dtype = f32) {
  return g.input("i" + std::to_string(g.tensors().size()), dims, dtype);
}

// Names the node of a row 'bad'.
inline const OutputSpec kBad{.name = "bad"};

inline OutputSpec bad_with_dims(const Dims& dims) { return {.name = "bad", .dims = dims}; }

}  // namespace ashlar::tests

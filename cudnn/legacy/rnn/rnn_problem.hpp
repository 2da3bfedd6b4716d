// A recurrent network applied to a batch of sequences: its tensors, what its reserve space holds,
// and the graphs of its three passes.
#pragma once

#include "legacy/rnn/rnn_data_descriptor.hpp"
#include "legacy/rnn/rnn_descriptor.hpp"
#include "legacy/rnn/rnn_weights.hpp"

namespace ashlar::cudnn {

// Which of a call's optional tensors there are.
struct RnnStates {
  TensorSpec h, c;
  bool hx = false, cx = false;          // where the forward pass started
  bool h_last = false, c_last = false;  // hy, cy; dhy, dcy
  bool dhx = false, dcx = false;
};

struct RnnProblem {
  RnnAttributes op;
  std::int64_t input_size;
  RnnWeightLayout layout;
  std::int64_t batch, rows;  // rows: of all sequences, padding included where memory has it
  bool has_lengths;          // sequences differ in length
  bool allows_tf32;
  DType state;  // type of `records`, of `dgates` and of arithmetic
  TensorSpec x, y, h, c, weights, records, dgates;

  // Parts of the reserve space, in bytes from its beginning. `random` is where dropout's generator
  // stood (seed and offset, i64), `lengths` those of the sequences (i32).
  std::int64_t dgates_at, random_at, lengths_at, reserve_bytes;

  // A dropout probability of 0: none, as in inference and with one layer.
  RnnProblem(const cudnnRNNStruct& network, const cudnnRNNDataStruct& sequences,
             double dropout_probability, double padding_value);

  bool has_dropout() const { return op.dropout > 0.0; }
  std::int64_t lengths_bytes() const { return has_lengths ? batch * 4 : 0; }
  // Random numbers one forward pass draws.
  std::int64_t draws() const;

  void forward(Graph& graph, const RnnStates& states, bool is_training) const;
  void backward_data(Graph& graph, const RnnStates& states) const;
  void backward_weights(Graph& graph, const RnnStates& states, bool adds) const;
};

void add_to_key(PlanKey& key, const RnnProblem& problem);
void add_to_key(PlanKey& key, const RnnStates& states);

}  // namespace ashlar::cudnn

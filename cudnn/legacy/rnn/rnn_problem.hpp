// A recurrent network applied to a batch of sequences: its tensors, its reserve-space layout and
// the graphs of its three passes.
#pragma once

#include "legacy/rnn/rnn_data_descriptor.hpp"
#include "legacy/rnn/rnn_descriptor.hpp"
#include "legacy/rnn/rnn_weights.hpp"

namespace ashlar::cudnn {

// Which optional tensors of a call are present.
struct RnnStates {
  TensorSpec h, c;
  bool hx = false, cx = false;          // initial states
  bool h_last = false, c_last = false;  // hy, cy; dhy, dcy
  bool dhx = false, dcx = false;
};

struct RnnProblem {
  RnnAttributes op;
  std::int64_t input_size;
  RnnWeightLayout layout;
  std::int64_t batch, rows;  // rows: steps of all sequences, with padding unless packed
  bool has_lengths;          // sequences have different lengths
  bool allows_tf32;
  DType state;  // type of `records` and `dgates`, and the compute type
  TensorSpec x, y, h, c, weights, records, dgates;

  // Byte offsets into the reserve space. `random` is the saved dropout generator state (seed and
  // offset, i64), `lengths` the sequence lengths (i32).
  std::int64_t dgates_at, random_at, lengths_at, reserve_bytes;

  // `dropout` is 0 for no dropout: in inference, and with one layer.
  RnnProblem(const cudnnRNNStruct& network, const cudnnRNNDataStruct& sequences,
             double dropout_probability, double padding_value);

  bool has_dropout() const { return op.dropout > 0.0; }
  std::int64_t lengths_bytes() const { return has_lengths ? batch * 4 : 0; }
  // Random numbers that one forward pass draws.
  std::int64_t draws() const;

  void forward(Graph& graph, const RnnStates& states, bool is_training) const;
  void backward_data(Graph& graph, const RnnStates& states) const;
  void backward_weights(Graph& graph, const RnnStates& states, bool adds) const;
};

void add_to_key(PlanKey& key, const RnnProblem& problem);
void add_to_key(PlanKey& key, const RnnStates& states);

}  // namespace ashlar::cudnn

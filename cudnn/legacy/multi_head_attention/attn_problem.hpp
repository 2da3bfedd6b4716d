// A multi-head attention over sequences: its tensors, the indices it needs on the device, and the
// graphs of its three passes.
#pragma once

#include <span>

#include "legacy/multi_head_attention/attn_descriptor.hpp"
#include "legacy/multi_head_attention/attn_weights.hpp"
#include "legacy/multi_head_attention/seq_data_descriptor.hpp"

namespace ashlar::cudnn {

// Byte offsets of the i32 arrays that a pass reads on the device: the key window of each query
// step, and the sequence lengths.
struct AttnIndices {
  std::int64_t window_low, window_high, q_lengths, kv_lengths, end;
  AttnIndices(std::int64_t queries, std::int64_t q_sequences, std::int64_t kv_sequences)
      : window_low(0),
        window_high(4 * queries),
        q_lengths(window_high + 4 * queries),
        kv_lengths(q_lengths + 4 * q_sequences),
        end(kv_lengths + 4 * kv_sequences) {}
};

struct AttnProblem {
  MultiHeadAttentionAttributes op;
  AttnWeightLayout layout;
  TensorSpec q, k, v, o, weights;  // `weights` has extent 0 without projections
  DType compute;
  bool allows_tf32;
  bool has_windows = true;             // some query steps may not see all keys
  bool has_q_lengths, has_kv_lengths;  // some sequences are shorter than the maximum
  bool has_residual = false;
  double padding_value = 0.0;  // paddingFill of o

  // Dropout probabilities of 0 mean no dropout, as in inference.
  AttnProblem(const cudnnAttnStruct& attention, const cudnnSeqDataStruct& q_data,
              const cudnnSeqDataStruct& k_data, const cudnnSeqDataStruct& v_data,
              const cudnnSeqDataStruct& o_data, double attention_dropout, double output_dropout);

  bool has_weights() const { return weights.dims[0] > 0; }
  std::int64_t attention_draws() const;
  std::int64_t output_draws() const { return element_count(o.dims); }
  AttnIndices indices() const { return {q.dims[2], q.dims[0] * q.dims[1], k.dims[0] * k.dims[1]}; }

  // Restricts the problem to query step `step` of the sequences.
  void select_step(std::span<const int> q_lengths, int step);

  void forward(Graph& graph) const;
  void backward_data(Graph& graph) const;
  void backward_weights(Graph& graph, bool adds) const;
};

void add_to_key(PlanKey& key, const AttnProblem& problem);

}  // namespace ashlar::cudnn

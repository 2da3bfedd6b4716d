// The graph of each fused op. Tensors have the names of labels.hpp; the output of a tensor that is
// updated in place has the suffix ".next".
#pragma once

#include "legacy/call.hpp"
#include "legacy/fused_ops/parameters.hpp"

namespace ashlar::cudnn {

// A fused op with checked constants, without pointers. Throws Failure for inconsistent constants.
class Fusion {
 public:
  explicit Fusion(FusedConstants constants);

  void add_to_key(Call& call) const;
  void build(Graph& graph) const;
  CompileOptions options() const;

 private:
  void build_conv_stats(Graph& graph) const;
  void build_filter_gradient(Graph& graph) const;
  void build_finalize(Graph& graph, NormPhase phase) const;
  void build_conv_activation(Graph& graph) const;
  void build_activation_mask(Graph& graph) const;
  void build_norm_gradient(Graph& graph) const;

  // x, or activation(x * eq_scale + eq_bias) if their placeholders are set, in the type of x.
  Value add_prologue(Graph& graph) const;
  // value * scale + bias, each if its placeholder is set.
  Value scaled(Graph& graph, Value value, cudnnFusedOpsConstParamLabel_t descriptor,
               cudnnFusedOpsConstParamLabel_t scale, const char* scale_name,
               cudnnFusedOpsConstParamLabel_t bias, const char* bias_name) const;
  Value with_equivalent(Graph& graph, Value value) const;
  // value + z, with z scaled if its placeholders are set.
  Value with_z(Graph& graph, Value value, const Dims& dims) const;
  Value activated_value(Graph& graph, Value value) const;
  // One bit per element of `dims`: the channels of a pixel are contiguous and padded to 64 bits.
  TensorSpec bitmask(const Dims& dims) const;
  // A per-channel tensor.
  TensorSpec per_channel(cudnnFusedOpsConstParamLabel_t label) const;

  FusedConstants constants_;
  DType type_ = f32;  // compute type
};

}  // namespace ashlar::cudnn

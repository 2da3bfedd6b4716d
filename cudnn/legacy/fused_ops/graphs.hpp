// The graph of each fusion. Tensors have the names of labels.hpp; what is read and written at the
// same place has the same name with ".next" behind it as a result.
#pragma once

#include "legacy/call.hpp"
#include "legacy/fused_ops/parameters.hpp"

namespace ashlar::cudnn {

// Everything but the pointers, checked: throws Failure for constants that do not go together.
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

  // x, or activation(x * eq_scale + eq_bias) where those are announced, in x's type.
  Value add_prologue(Graph& graph) const;
  // value * scale + bias where the placeholders announce them.
  Value scaled(Graph& graph, Value value, cudnnFusedOpsConstParamLabel_t descriptor,
               cudnnFusedOpsConstParamLabel_t scale, const char* scale_name,
               cudnnFusedOpsConstParamLabel_t bias, const char* bias_name) const;
  Value with_equivalent(Graph& graph, Value value) const;
  // value + z, itself scaled where that is announced.
  Value with_z(Graph& graph, Value value, const Dims& dims) const;
  Value activated_value(Graph& graph, Value value) const;
  // A bit per element of `dims`: the channels of a place side by side, filled up to 64.
  TensorSpec bitmask(const Dims& dims) const;
  // One number per channel.
  TensorSpec per_channel(cudnnFusedOpsConstParamLabel_t label) const;

  FusedConstants constants_;
  DType type_ = f32;  // of arithmetic
};

}  // namespace ashlar::cudnn

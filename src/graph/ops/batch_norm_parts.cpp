// Definition of gen_stats, bn_finalize and bn_backward_weights.
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// One element per channel: extent C on axis 1, 1 on all others.
Dims channel_dims(const Dims& x) {
  Dims dims = Dims::filled(x.rank(), 1);
  dims[1] = x[1];
  return dims;
}

void infer_per_channel(NodeContext& node, int slot, const Dims& dims, const Tensor& like) {
  node.infer_dims(slot, dims);
  node.infer_dtype(slot, like.dtype == f64 ? f64 : f32);
  node.infer_strides_like(slot, like);
}

void require_per_channel(NodeContext& node, int slot, const Dims& dims) {
  node.require_dims(slot, dims);
  node.require_floating(slot);
}

void require_both(NodeContext& node, int first, int second, std::string_view names) {
  if (node.has_input(first) != node.has_input(second))
    node.reject(names, "one of them", "both or neither");
}

void infer_gen_stats(NodeContext& node) {
  node.require_rank(GenStats::x, 2, kMaxRank);
  node.require_floating(GenStats::x);
  const Tensor& x = node.input(GenStats::x);
  for (int slot : {GenStats::sum, GenStats::sq_sum})
    infer_per_channel(node, slot, channel_dims(x.dims), x);
}

void infer_bn_finalize(NodeContext& node) {
  using Bn = BnFinalize;
  const auto& op = node.op<Bn>();
  const bool training = op.phase == NormPhase::training;
  node.require_rank(Bn::scale, 2, kMaxRank);
  const Tensor& scale = node.input(Bn::scale);
  const Dims dims = channel_dims(scale.dims);
  for (int slot : {Bn::scale, Bn::bias, Bn::sum, Bn::sq_sum, Bn::running_mean, Bn::running_var})
    require_per_channel(node, slot, dims);
  for (int slot : {Bn::epsilon_tensor, Bn::momentum_tensor, Bn::count_tensor})
    node.require_one_element(slot);
  node.require_floating(Bn::epsilon_tensor);
  node.require_floating(Bn::momentum_tensor);
  node.require_arithmetic(Bn::count_tensor);
  require_both(node, Bn::sum, Bn::sq_sum, "sum and sq_sum");
  require_both(node, Bn::running_mean, Bn::running_var, "running_mean and running_var");
  if (training && !node.has_input(Bn::sum))
    node.reject("input sum", "nothing", "a tensor in training");
  if (!training && !node.has_input(Bn::running_mean))
    node.reject("input running_mean", "nothing", "a tensor in inference");
  if (!(op.epsilon >= 0.0)) node.reject("epsilon", op.epsilon, "a value of at least 0");
  if (op.count < 0) node.reject("count", op.count, "at least 0");
  if (training && op.count == 0 && !node.has_input(Bn::count_tensor))
    node.reject("count", op.count, "at least 1, or a count_tensor");
  const bool next = node.has_output(Bn::next_running_mean) || node.has_output(Bn::next_running_var);
  if (next && !(training && node.has_input(Bn::running_mean)))
    node.reject("output next_running_mean or next_running_var", "a tensor",
                "running_mean and running_var as inputs, in training");
  for (int slot : {Bn::eq_scale, Bn::eq_bias, Bn::saved_mean, Bn::saved_inv_variance,
                   Bn::next_running_mean, Bn::next_running_var})
    infer_per_channel(node, slot, dims, scale);
}

void infer_bn_backward_weights(NodeContext& node) {
  using Bn = BnBackwardWeights;
  node.require_rank(Bn::x, 2, kMaxRank);
  node.require_floating(Bn::x);
  const Tensor& x = node.input(Bn::x);
  node.require_dims(Bn::dy, x.dims);
  node.require_floating(Bn::dy);
  for (int slot : {Bn::mean, Bn::inv_variance, Bn::scale})
    require_per_channel(node, slot, channel_dims(x.dims));
  for (int slot : {Bn::dscale, Bn::dbias, Bn::eq_dy_scale, Bn::eq_x_scale, Bn::eq_bias})
    infer_per_channel(node, slot, channel_dims(x.dims), x);
}

Contents bn_finalize_contents(const NodeShapes&, int slot) {
  using Bn = BnFinalize;
  switch (slot) {
    case Bn::running_var: return positive_values();
    // With |sum| <= 1 and at least 2 elements the variance is above 0.
    case Bn::sq_sum: return values_within(1, 2);
    case Bn::epsilon_tensor: return epsilons();
    case Bn::momentum_tensor: return momenta();
    case Bn::count_tensor: return whole_numbers(2, 100);
    default: return {};
  }
}

Contents bn_backward_weights_contents(const NodeShapes&, int slot) {
  return slot == BnBackwardWeights::inv_variance ? positive_values() : Contents{};
}

std::vector<TailPart> gen_stats_tails(const Node& node) {
  std::vector<TailPart> parts;
  if (has_output(node, GenStats::sum)) parts.push_back({GenStats::sum});
  if (has_output(node, GenStats::sq_sum))
    parts.push_back({GenStats::sq_sum, ReductionMode::add, PointwiseMode::mul});
  return parts;
}

std::vector<Value> sample_gen_stats(Graph& g, DType t) {
  return g
      .apply(GenStats{}, {{GenStats::x, g.input("x", {2, 8, 4, 4}, t)}},
             {GenStats::sum, GenStats::sq_sum})
      .all();
}
std::vector<Value> sample_bn_finalize(Graph& g, DType t) {
  using Op = BnFinalize;
  const auto channels = [&](const char* name) { return g.input(name, {1, 8, 1, 1}, t); };
  return g
      .apply(Op{.count = 32},
             {{Op::sum, channels("sum")},
              {Op::sq_sum, channels("sq_sum")},
              {Op::scale, channels("scale")},
              {Op::bias, channels("bias")}},
             {Op::eq_scale, Op::eq_bias})
      .all();
}
std::vector<Value> sample_bn_backward_weights(Graph& g, DType t) {
  using Op = BnBackwardWeights;
  const auto channels = [&](const char* name) {
    return g.input(name, {1, 8, 1, 1}, parameter_dtype(t));
  };
  return g
      .apply(Op{},
             {{Op::x, g.input("x", {2, 8, 4, 4}, t)},
              {Op::dy, g.input("dy", {2, 8, 4, 4}, t)},
              {Op::mean, channels("mean")},
              {Op::inv_variance, channels("inv_variance")},
              {Op::scale, channels("scale")}},
             {Op::dscale, Op::dbias})
      .all();
}

}  // namespace

template <>
OpTraits define_traits<GenStats>() {
  return {.name = "gen_stats",
          .doc_page = "batch_norm_parts",
          .infer = infer_gen_stats,
          .sample = sample_gen_stats,
          .fused_inputs = {GenStats::x},
          .tails = gen_stats_tails};
}

template <>
OpTraits define_traits<BnFinalize>() {
  return {.name = "bn_finalize",
          .doc_page = "batch_norm_parts",
          .infer = infer_bn_finalize,
          .sample = sample_bn_finalize,
          .contents = bn_finalize_contents};
}

template <>
OpTraits define_traits<BnBackwardWeights>() {
  return {.name = "bn_backward_weights",
          .doc_page = "batch_norm_parts",
          .infer = infer_bn_backward_weights,
          .sample = sample_bn_backward_weights,
          .contents = bn_backward_weights_contents,
          .fused_inputs = {BnBackwardWeights::x, BnBackwardWeights::dy}};
}

}  // namespace ashlar

// Attention and recurrent networks by oneDNN.
#include <cmath>
#include <limits>

#include "onednn_translation.hpp"

namespace ashlar::bench {

namespace {

Tensor transposed(Tensor tensor) {
  std::swap(tensor.dims[2], tensor.dims[3]);
  std::swap(tensor.strides[2], tensor.strides[3]);
  return tensor;
}

Tensor scores_of(const Tensor& q, const Tensor& k) {
  Tensor scores = q;
  scores.dims[3] = k.dims[2];
  scores.strides = row_major.strides_for(scores.dims);
  return scores;
}

// oneDNN 2.6 has no attention primitive: matmul, softmax and matmul on the whole score matrix.
class Attention {
 public:
  Attention(const AttentionAttributes& op, const Tensor& q, const Tensor& k, const Translation& t)
      : t_(t), q_(q), k_(k), scores_(t.program.scratch(descriptor_of(scores_of(q, k)))) {
    if (op.left_bound || op.dropout != 0 || op.alibi || op.soft_cap || !op.score_modifier.empty())
      t.refuse("this attention");
    if (q.dims[1] != k.dims[1]) t.refuse("grouped-query attention");
    scale_ = static_cast<float>(op.scale.value_or(1 / std::sqrt(static_cast<double>(q.dims[3]))));
    if (op.right_bound) make_mask(op);
  }

  // softmax(scale * q k^T + mask)
  dnnl::memory weights(const dnnl::memory& q, const dnnl::memory& k) {
    dnnl::primitive_attr attributes;
    attributes.set_output_scales(0, {scale_});
    std::vector<Program::Operand> inputs;
    if (mask_) {
      dnnl::post_ops post;
      post.append_binary(dnnl::algorithm::binary_add, mask_.get_desc());
      attributes.set_post_ops(post);
      inputs.push_back(t_.same(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, mask_));
    }
    matmul(q, k, scores_, attributes, inputs);
    const dnnl::softmax_v2_forward::primitive_desc chosen(
        {dnnl::prop_kind::forward_training, dnnl::algorithm::softmax_accurate, scores_.get_desc(),
         scores_.get_desc(), 3},
        t_.program.engine());
    t_.program.add(chosen, dnnl::softmax_v2_forward(chosen), {t_.same(DNNL_ARG_SRC, scores_)},
                   {t_.same(DNNL_ARG_DST, scores_)});
    return scores_;
  }

  void matmul(const dnnl::memory& a, const dnnl::memory& b, const dnnl::memory& c,
              const dnnl::primitive_attr& attributes = {},
              std::vector<Program::Operand> inputs = {}) {
    const dnnl::matmul::primitive_desc chosen({a.get_desc(), b.get_desc(), c.get_desc()},
                                              attributes, t_.program.engine());
    inputs.push_back(t_.same(DNNL_ARG_SRC, a));
    inputs.push_back(t_.same(DNNL_ARG_WEIGHTS, b));
    t_.program.add(chosen, dnnl::matmul(chosen), inputs, {t_.same(DNNL_ARG_DST, c)});
  }

  // Softmax gradient in place, times scale.
  void weights_gradient(const dnnl::memory& p, const dnnl::memory& dp) {
    const dnnl::softmax_v2_forward::primitive_desc hint(
        {dnnl::prop_kind::forward_training, dnnl::algorithm::softmax_accurate, p.get_desc(),
         p.get_desc(), 3},
        t_.program.engine());
    const dnnl::softmax_v2_backward::primitive_desc chosen(
        {dnnl::algorithm::softmax_accurate, dp.get_desc(), dp.get_desc(), p.get_desc(), 3},
        t_.program.engine(), hint);
    t_.program.add(chosen, dnnl::softmax_v2_backward(chosen),
                   {t_.same(DNNL_ARG_DST, p), t_.same(DNNL_ARG_DIFF_DST, dp)},
                   {t_.same(DNNL_ARG_DIFF_SRC, dp)});
  }

  dnnl::primitive_attr scaled() const {
    dnnl::primitive_attr attributes;
    attributes.set_output_scales(0, {scale_});
    return attributes;
  }
  dnnl::memory another() const { return t_.program.scratch(scores_.get_desc()); }
  // The same memory with the last two axes transposed.
  dnnl::memory transposed_view(const dnnl::memory& scores) const {
    return {descriptor_of(transposed(scores_of(q_, k_))), t_.program.engine(),
            scores.get_data_handle()};
  }

 private:
  void make_mask(const AttentionAttributes& op) {
    const std::int64_t rows = q_.dims[2], columns = k_.dims[2];
    const std::int64_t shift = op.alignment == MaskAlignment::bottom_right ? columns - rows : 0;
    mask_ = t_.program.scratch(
        {{1, 1, rows, columns}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::abcd});
    auto* values = static_cast<float*>(mask_.get_data_handle());
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        values[row * columns + column] = column <= row + shift + *op.right_bound
                                             ? 0.0F
                                             : -std::numeric_limits<float>::infinity();
  }

  const Translation& t_;
  const Tensor &q_, &k_;
  dnnl::memory scores_;
  dnnl::memory mask_;
  float scale_ = 1;
};

}  // namespace

void translate(const AttentionForward& op, const Translation& t) {
  using Op = AttentionForward;
  t.require_single();
  Attention attention(op, t.in(Op::q), t.in(Op::k), t);
  const dnnl::memory p =
      attention.weights(t.read(Op::q), t.read(Op::k, descriptor_of(transposed(t.in(Op::k)))));
  attention.matmul(p, t.read(Op::v), t.write(0));
}

void translate(const AttentionBackward& op, const Translation& t) {
  using Op = AttentionBackward;
  t.require_single();
  Attention attention(op, t.in(Op::q), t.in(Op::k), t);
  const dnnl::memory p =
      attention.weights(t.read(Op::q), t.read(Op::k, descriptor_of(transposed(t.in(Op::k)))));
  attention.matmul(attention.transposed_view(p), t.read(Op::d_o), t.write(Op::dv));
  const dnnl::memory ds = attention.another();
  attention.matmul(t.read(Op::d_o), t.read(Op::v, descriptor_of(transposed(t.in(Op::v)))), ds);
  attention.weights_gradient(p, ds);
  attention.matmul(ds, t.read(Op::k), t.write(Op::dq), attention.scaled());
  attention.matmul(attention.transposed_view(ds), t.read(Op::q), t.write(Op::dk),
                   attention.scaled());
}

// One layer, one direction. Our weights are W [4 H, C], R [4 H, H], bW, bR, concatenated; the gate
// order is the same.
void translate(const RnnForward& op, const Translation& t) {
  using Op = RnnForward;
  t.require_alone();
  t.require_variants(1);
  if (t.choice.formats == Formats::own) t.refuse("another layout of sequences");
  if (op.mode != RnnMode::lstm || op.layers != 1 || op.bidirectional || op.projection_size != 0 ||
      op.bias != RnnBias::both || op.input != RnnInput::linear || op.layout != RnnLayout::padded ||
      op.clip_low || op.clip_high || t.has_in(Op::seq_lengths) || t.in(Op::x).dtype != f32)
    t.refuse("this recurrent network");
  using Tag = dnnl::memory::format_tag;
  constexpr auto kFloat = dnnl::memory::data_type::f32;
  const std::int64_t features = t.in(Op::x).dims[2], hidden = op.hidden_size,
                     batch = t.in(Op::x).dims[1];
  const Descriptor w({1, 1, features, 4, hidden}, kFloat, Tag::ldgoi);
  const Descriptor r({1, 1, hidden, 4, hidden}, kFloat, Tag::ldgoi);
  const Descriptor bias({1, 1, 4, hidden}, kFloat, Tag::ldgo);
  const Descriptor state({1, 1, batch, hidden}, kFloat, Tag::ldnc);
  auto* weights = static_cast<float*>(
      t.read(Op::weights, {{element_count(t.in(Op::weights).dims)}, kFloat, Tag::a})
          .get_data_handle());
  const dnnl::memory layer(w, t.program.engine(), weights);
  const dnnl::memory iteration(r, t.program.engine(), weights + 4 * hidden * features);
  // oneDNN has one bias: the sum of ours, computed once.
  const dnnl::memory sum = t.program.scratch(bias);
  const float* biases = weights + 4 * hidden * (features + hidden);
  for (std::int64_t i = 0; i < 4 * hidden; ++i)
    static_cast<float*>(sum.get_data_handle())[i] = biases[i] + biases[4 * hidden + i];

  const auto state_of = [&](bool there) { return there ? state : Descriptor(); };
  const bool training = t.has_out(Op::reserve);
  const dnnl::memory x = t.read(Op::x), y = t.write(0);
  const dnnl::lstm_forward::primitive_desc chosen(
      {training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
       dnnl::rnn_direction::unidirectional_left2right, x.get_desc(), state_of(t.has_in(Op::hx)),
       state_of(t.has_in(Op::cx)), t.filter(w), t.filter(r), bias, y.get_desc(),
       state_of(t.has_out(Op::hy)), state_of(t.has_out(Op::cy))},
      t.program.engine());
  const bool constant = t.program.constant(t.in_id(Op::weights));
  std::vector<Program::Operand> inputs = {
      t.same(DNNL_ARG_SRC_LAYER, x),
      {DNNL_ARG_WEIGHTS_LAYER, layer, chosen.weights_layer_desc(), constant},
      {DNNL_ARG_WEIGHTS_ITER, iteration, chosen.weights_iter_desc(), constant},
      t.same(DNNL_ARG_BIAS, sum)};
  if (t.has_in(Op::hx)) inputs.push_back(t.same(DNNL_ARG_SRC_ITER, t.read(Op::hx, state)));
  if (t.has_in(Op::cx)) inputs.push_back(t.same(DNNL_ARG_SRC_ITER_C, t.read(Op::cx, state)));
  std::vector<Program::Operand> outputs = {t.same(DNNL_ARG_DST_LAYER, y)};
  if (t.has_out(Op::hy)) outputs.push_back(t.same(DNNL_ARG_DST_ITER, t.write(Op::hy, state)));
  if (t.has_out(Op::cy)) outputs.push_back(t.same(DNNL_ARG_DST_ITER_C, t.write(Op::cy, state)));
  if (training)
    outputs.push_back(t.same(DNNL_ARG_WORKSPACE, t.program.scratch(chosen.workspace_desc())));
  t.program.add(chosen, dnnl::lstm_forward(chosen), inputs, outputs);
}

}  // namespace ashlar::bench

// Expands multi-head attention into projections (matmul), attention and their gradients.
//
// Vectors are matrices [steps, size] over the steps of all batches and beams; heads are
// [G, H, R, size]. Beams that share keys form one long query sequence: G = B, R = beams * Tq. Beams
// with separate keys are batches: G = B * beams, R = Tq.
#include <limits>

#include "graph/multi_head_shapes.hpp"
#include "plan/expand.hpp"

namespace ashlar {

namespace {

using Part = MultiHeadPart;

// The operands common to the three operations; d_o is absent in the forward operation.
struct Operands {
  TensorId q, k, v, weights, d_o = kNoTensor;
  TensorId seq_len_q, seq_len_kv, window_low, window_high;
  TensorId seed, offset, post_seed, post_offset;

  template <class MultiHead>
  static Operands of(const Expansion& e) {
    Operands operands{.q = e.input(MultiHead::q),
                      .k = e.input(MultiHead::k),
                      .v = e.input(MultiHead::v),
                      .weights = e.input(MultiHead::weights),
                      .seq_len_q = e.input(MultiHead::seq_len_q),
                      .seq_len_kv = e.input(MultiHead::seq_len_kv),
                      .window_low = e.input(MultiHead::window_low),
                      .window_high = e.input(MultiHead::window_high),
                      .seed = e.input(MultiHead::dropout_seed),
                      .offset = e.input(MultiHead::dropout_offset),
                      .post_seed = e.input(MultiHead::post_dropout_seed),
                      .post_offset = e.input(MultiHead::post_dropout_offset)};
    if constexpr (requires { MultiHead::d_o; }) operands.d_o = e.input(MultiHead::d_o);
    return operands;
  }
};

class MultiHeadExpansion {
 public:
  MultiHeadExpansion(const MultiHeadAttentionAttributes& op, const Operands& in, Expansion& e)
      : op_(op),
        in_(in),
        e_(e),
        shape_(op, e.dims(in.q), e.dims(in.k), e.dims(in.v)),
        shared_keys_(shape_.key_beams == 1),
        groups_(shared_keys_ ? shape_.batch : shape_.batch * shape_.beams),
        rows_(shared_keys_ ? shape_.beams * shape_.queries : shape_.queries) {}

  const MultiHeadShape& shape() const { return shape_; }

  bool is_possible() const {
    if (!is_floating(e_.node().compute)) return false;
    for (TensorId id : {in_.q, in_.k, in_.v})
      if (element_count(e_.dims(id)) == 0) return false;
    // Attention treats 8-bit operands as scaled fp8; projected operands are wider.
    for (Part part : {Part::query, Part::key, Part::value})
      if (!shape_[part].present && bit_width(e_.tensor(source(part)).dtype) < 16) return false;
    return true;
  }

  // --- vectors [steps, size]
  TensorId vectors(Part part) {
    const TensorId x = source(part);
    return e_.reshape(x, {element_count(e_.dims(x)) / e_.dims(x)[3], e_.dims(x)[3]});
  }
  // The same with zeros past the sequence lengths.
  TensorId masked_vectors(Part part) {
    const bool query = part == Part::query;
    const TensorId lengths = query ? in_.seq_len_q : in_.seq_len_kv;
    if (lengths == kNoTensor) return vectors(part);
    return e_.select_or_zero(steps_inside(query ? in_.q : in_.k, lengths), vectors(part), 1.0,
                             std::string(name(part)) + "_inside");
  }
  TensorId mask_queries(TensorId x, const std::string& role) {
    if (in_.seq_len_q == kNoTensor) return x;
    return e_.select_or_zero(steps_inside(in_.q, in_.seq_len_q), x, 1.0, role);
  }
  TensorId drop_after(TensorId x, const std::string& role) {
    if (op_.post_dropout == 0.0) return x;
    const double keep = 1.0 - op_.post_dropout;
    const TensorId mask = e_.add(Rng{.probability = keep}, {in_.post_seed, in_.post_offset},
                                 {.role = "post_dropout", .dims = e_.dims(x), .dtype = boolean});
    return e_.select_or_zero(mask, x, 1.0 / keep, role);
  }

  // --- weights
  TensorId matrix(Part part) {
    const MultiHeadProjection& p = shape_[part];
    return e_.reshape(e_.slice(in_.weights, {p.matrix}, {p.matrix + p.matrix_size()}),
                      {p.rows, p.columns});
  }
  TensorId project(Part part, TensorId x) {
    const MultiHeadProjection& p = shape_[part];
    const std::string role = std::string(name(part)) + "_projected";
    const TensorId product = e_.matmul(x, e_.transpose(matrix(part), {1, 0}), role);
    if (!shape_.has_biases) return product;
    const TensorId bias =
        e_.reshape(e_.slice(in_.weights, {p.bias}, {p.bias + p.rows}), {1, p.rows});
    return e_.pointwise(PointwiseMode::add, {product, bias}, {role + "_with_bias"});
  }

  // --- heads [G, H, R, size], from and to vectors with all heads concatenated
  TensorId to_heads(TensorId x, std::int64_t heads) {
    const std::int64_t steps = e_.dims(x)[0], size = e_.dims(x)[1];
    return e_.transpose(e_.reshape(x, {groups_, steps / groups_, heads, size / heads}),
                        {0, 2, 1, 3});
  }
  TensorId from_heads(TensorId x) {
    const Dims dims = e_.dims(x);
    return e_.reshape(e_.transpose(x, {0, 2, 1, 3}), {dims[0] * dims[2], dims[1] * dims[3]});
  }
  // A layout with the heads of a step contiguous, so that from_heads() is a view.
  Expansion::Result heads_result(std::string role, const Dims& dims) {
    return {.role = std::move(role),
            .dims = dims,
            .strides = {dims[1] * dims[2] * dims[3], dims[3], dims[1] * dims[3], 1}};
  }
  // Unprojected keys and values are shared by all heads; an unprojected query is repeated per head.
  TensorId heads_of(Part part, TensorId x) {
    if (shape_[part].present) return to_heads(project(part, x), shape_.heads);
    const TensorId one = to_heads(x, 1);
    return part == Part::query ? e_.repeat(one, 1, shape_.heads, "q_of_every_head") : one;
  }

  struct Attended {
    TensorId q, k, v, o, stats;
  };
  Attended attend(TensorId q, TensorId k, TensorId v) {
    using Attention = AttentionForward;
    Attended result{heads_of(Part::query, q), heads_of(Part::key, k), heads_of(Part::value, v),
                    kNoTensor, kNoTensor};
    std::vector<TensorId> inputs(Attention::dropout_offset + 1, kNoTensor);
    const auto set = [&](int slot, TensorId id) { inputs[static_cast<std::size_t>(slot)] = id; };
    set(Attention::q, result.q);
    set(Attention::k, result.k);
    set(Attention::v, result.v);
    set(Attention::bias, bias_ = window_bias());
    set(Attention::seq_len_q, query_lengths());
    set(Attention::seq_len_kv, key_lengths());
    set(Attention::dropout_seed, in_.seed);
    set(Attention::dropout_offset, in_.offset);
    const auto outputs = e_.add(
        Attention{attributes()}, inputs,
        {heads_result("heads", {groups_, shape_.heads, rows_, shape_.value_size}), {"stats"}});
    result.o = outputs[0];
    result.stats = outputs[1];
    return result;
  }

  struct Gradients {
    TensorId q, k, v;
  };
  Gradients attend_backward(const Attended& forward, TensorId d_heads) {
    using Attention = AttentionBackward;
    std::vector<TensorId> inputs(Attention::dropout_offset + 1, kNoTensor);
    const auto set = [&](int slot, TensorId id) { inputs[static_cast<std::size_t>(slot)] = id; };
    set(Attention::q, forward.q);
    set(Attention::k, forward.k);
    set(Attention::v, forward.v);
    set(Attention::o, forward.o);
    set(Attention::d_o, d_heads);
    set(Attention::stats, forward.stats);
    set(Attention::bias, bias_);
    set(Attention::seq_len_q, query_lengths());
    set(Attention::seq_len_kv, key_lengths());
    set(Attention::dropout_seed, in_.seed);
    set(Attention::dropout_offset, in_.offset);
    const auto outputs = e_.add(
        Attention{{attributes()}, {}}, inputs,
        {heads_result("dq_heads", e_.dims(forward.q)), heads_result("dk_heads", e_.dims(forward.k)),
         heads_result("dv_heads", e_.dims(forward.v))});
    return {outputs[0], outputs[1], outputs[2]};
  }

  // The gradient of an operand [steps, size] from that of its heads.
  TensorId back_to_source(Part part, TensorId d_heads) {
    const std::string role = std::string("d") + name(part);
    if (shape_[part].present) return e_.matmul(from_heads(d_heads), matrix(part), role);
    if (e_.dims(d_heads)[1] > 1)
      d_heads = e_.add(Reduction{.axes = {1}}, {d_heads}, {role + "_of_all_heads"});
    return from_heads(d_heads);
  }

  // --- common start of every gradient
  struct Backward {
    TensorId q, k, v;  // vectors
    TensorId d_o;      // before post dropout [steps, o_size]
    Attended forward;
    Gradients heads;
  };
  Backward backward() {
    Backward b{masked_vectors(Part::query),
               masked_vectors(Part::key),
               masked_vectors(Part::value),
               kNoTensor,
               {},
               {}};
    const Dims o = {shape_.batch * shape_.beams * shape_.queries, shape_.o_size};
    b.d_o = mask_queries(drop_after(e_.reshape(in_.d_o, o), "d_o_kept"), "d_o_inside");
    b.forward = attend(b.q, b.k, b.v);
    TensorId d_heads =
        shape_[Part::output].present ? e_.matmul(b.d_o, matrix(Part::output), "d_heads") : b.d_o;
    // Attention rounds score gradients to d_o's dtype where that has 8 bits; multi-head attention
    // does not, whatever the dtype of its d_o.
    if (bit_width(e_.tensor(d_heads).dtype) < 16)
      d_heads = e_.pointwise(PointwiseMode::identity, {d_heads}, {"d_heads_wide"});
    b.heads = attend_backward(b.forward, to_heads(d_heads, shape_.heads));
    return b;
  }
  // The gradients of a projection's matrix and bias, if any, from the gradient of its result.
  void add_weight_gradient(Part part, TensorId d_result, TensorId x,
                           std::vector<TensorId>& matrices, std::vector<TensorId>& biases) {
    const MultiHeadProjection& p = shape_[part];
    if (!p.present) return;
    const std::string role = std::string("dw_") + name(part);
    matrices.push_back(
        e_.reshape(e_.matmul(e_.transpose(d_result, {1, 0}), x, role), {p.matrix_size()}));
    if (!shape_.has_biases) return;
    const TensorId sum =
        e_.add(Reduction{.axes = {0}}, {d_result}, {std::string("db_") + name(part)});
    biases.push_back(e_.reshape(sum, {p.rows}));
  }

 private:
  static const char* name(Part part) {
    constexpr const char* kNames[] = {"q", "k", "v", "o"};
    return kNames[static_cast<std::size_t>(part)];
  }
  TensorId source(Part part) const {
    return part == Part::query ? in_.q : part == Part::key ? in_.k : in_.v;
  }
  AttentionAttributes attributes() const {
    return {.scale = op_.softmax_scale, .dropout = op_.attention_dropout};
  }

  // [steps, 1]: whether a step of x [B, beams, T, size] is inside its sequence.
  TensorId steps_inside(TensorId x, TensorId lengths) {
    const Dims dims = e_.dims(x);
    const Dims steps = {dims[0], dims[1], dims[2], 1};
    const TensorId index =
        e_.add(Pointwise{.mode = PointwiseMode::gen_index, .axis = 2},
               {e_.slice(x, {0, 0, 0, 0}, steps)}, {.role = "step", .dtype = i32}, i64);
    const TensorId inside = e_.pointwise(PointwiseMode::cmp_lt, {index, lengths},
                                         {.role = "inside", .dtype = boolean}, i64);
    return e_.reshape(inside, {element_count(steps), 1});
  }

  // [1, 1, R, Tk]: 0 inside the windows, -inf outside.
  TensorId window_bias() {
    if (in_.window_low == kNoTensor && in_.window_high == kNoTensor) return kNoTensor;
    const TensorId keys =
        e_.reshape(e_.slice(in_.k, {0, 0, 0, 0}, {1, 1, shape_.keys, 1}), {1, 1, 1, shape_.keys});
    const TensorId index = e_.add(Pointwise{.mode = PointwiseMode::gen_index, .axis = 3}, {keys},
                                  {.role = "key", .dtype = i32}, i64);
    TensorId seen = kNoTensor;
    const auto restrict_by = [&](PointwiseMode mode, TensorId bound, const char* role) {
      if (bound == kNoTensor) return;
      const TensorId within =
          e_.pointwise(mode, {index, bound}, {.role = role, .dtype = boolean}, i64);
      seen = seen == kNoTensor ? within
                               : e_.pointwise(PointwiseMode::logical_and, {seen, within},
                                              {.role = "in_window", .dtype = boolean});
    };
    restrict_by(PointwiseMode::cmp_ge, in_.window_low, "from_low");
    restrict_by(PointwiseMode::cmp_lt, in_.window_high, "below_high");
    const TensorId hidden =
        e_.constant(-std::numeric_limits<double>::infinity(), 4, "hidden_score");
    const TensorId bias =
        e_.pointwise(PointwiseMode::binary_select,
                     {e_.constant(0.0, 4, "seen_score"), hidden, seen}, {"window_bias"});
    const std::int64_t copies = rows_ / shape_.queries;
    return e_.reshape(e_.repeat(bias, 1, copies, "window_bias_of_every_beam"),
                      {1, 1, rows_, shape_.keys});
  }
  // Beams of one group may have different lengths; then masks handle their padding.
  TensorId query_lengths() {
    const bool one_each = rows_ == shape_.queries;
    return in_.seq_len_q == kNoTensor || !one_each ? kNoTensor
                                                   : e_.reshape(in_.seq_len_q, {groups_, 1, 1, 1});
  }
  TensorId key_lengths() {
    return in_.seq_len_kv == kNoTensor ? kNoTensor : e_.reshape(in_.seq_len_kv, {groups_, 1, 1, 1});
  }

  const MultiHeadAttentionAttributes& op_;
  Operands in_;
  Expansion& e_;
  MultiHeadShape shape_;
  bool shared_keys_;
  std::int64_t groups_, rows_;
  TensorId bias_ = kNoTensor;
};

}  // namespace

bool expand(const MultiHeadAttentionForward& op, Expansion& e) {
  using MultiHead = MultiHeadAttentionForward;
  MultiHeadExpansion m(op, Operands::of<MultiHead>(e), e);
  if (!m.is_possible()) return false;
  e.begin();
  const auto attended =
      m.attend(m.vectors(Part::query), m.vectors(Part::key), m.vectors(Part::value));
  TensorId o = m.from_heads(attended.o);
  if (m.shape()[Part::output].present) o = m.project(Part::output, o);
  o = m.drop_after(o, "o_kept");
  if (e.input(MultiHead::residual) != kNoTensor)
    o = e.pointwise(PointwiseMode::add, {o, e.reshape(e.input(MultiHead::residual), e.dims(o))},
                    {"o_with_residual"});
  e.store(m.mask_queries(o, "o_inside"), MultiHead::o);
  return true;
}

bool expand(const MultiHeadAttentionBackwardData& op, Expansion& e) {
  using MultiHead = MultiHeadAttentionBackwardData;
  MultiHeadExpansion m(op, Operands::of<MultiHead>(e), e);
  if (!m.is_possible()) return false;
  e.begin();
  const auto b = m.backward();
  e.store(m.back_to_source(Part::query, b.heads.q), MultiHead::dq);
  e.store(m.back_to_source(Part::key, b.heads.k), MultiHead::dk);
  e.store(m.back_to_source(Part::value, b.heads.v), MultiHead::dv);
  return true;
}

bool expand(const MultiHeadAttentionBackwardWeights& op, Expansion& e) {
  using MultiHead = MultiHeadAttentionBackwardWeights;
  MultiHeadExpansion m(op, Operands::of<MultiHead>(e), e);
  if (!m.is_possible()) return false;
  e.begin();
  const auto b = m.backward();
  // In the order of the weight tensor: all matrices, then all biases.
  std::vector<TensorId> parts, biases;
  m.add_weight_gradient(Part::query, m.from_heads(b.heads.q), b.q, parts, biases);
  m.add_weight_gradient(Part::key, m.from_heads(b.heads.k), b.k, parts, biases);
  m.add_weight_gradient(Part::value, m.from_heads(b.heads.v), b.v, parts, biases);
  m.add_weight_gradient(Part::output, b.d_o, m.from_heads(b.forward.o), parts, biases);
  parts.insert(parts.end(), biases.begin(), biases.end());
  TensorId gradient = parts[0];
  if (parts.size() > 1) gradient = e.add(Concat{0}, parts, {"dweights"});
  if (e.input(MultiHead::previous) != kNoTensor)
    gradient = e.pointwise(PointwiseMode::add, {gradient, e.input(MultiHead::previous)},
                           {"dweights_and_previous"});
  e.store(gradient, MultiHead::dweights);
  return true;
}

}  // namespace ashlar

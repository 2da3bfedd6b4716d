// Multi-head attention that was not decomposed: projections, attention and gradients as consecutive
// passes.
#include "graph/multi_head_shapes.hpp"

#include "cuda/engines/generic/operations.hpp"

namespace ashlar::cuda {

namespace {

// Lays out arrays [batch, beams, rows, heads, size] in one workspace buffer.
class Arrays {
 public:
  Arrays(const MultiHeadShape& shape, GenericKernel& kernel) : shape_(shape), kernel_(kernel) {}

  // of_queries and of_keys return the number of elements.
  std::int64_t of_queries(const std::string& name, std::int64_t size) {
    return place(name, shape_.beams, shape_.queries, shape_.heads, size);
  }
  std::int64_t of_keys(const std::string& name, std::int64_t size) {
    return place(name, shape_.key_beams, shape_.keys, shape_.heads, size);
  }
  std::int64_t place(const std::string& name, std::int64_t beams, std::int64_t rows,
                     std::int64_t heads, std::int64_t size) {
    kernel_.numbers(name, {used_, beams, rows, heads, size});
    const std::int64_t vectors =
        checked_mul(checked_mul(shape_.batch, beams), checked_mul(rows, heads));
    const std::int64_t elements = checked_mul(vectors, size);
    used_ = checked_add(used_, elements);
    return elements;
  }
  void scratch_layout() { kernel_.scratch("memory", checked_mul(used_, kernel_.register_bytes())); }

 private:
  const MultiHeadShape& shape_;
  GenericKernel& kernel_;
  std::int64_t used_ = 0;
};

template <class MultiHead>
MultiHeadShape add_multi_head(const MultiHead& op, GenericKernel& kernel) {
  const MultiHeadShape shape(op, kernel.in(MultiHead::q).dims, kernel.in(MultiHead::k).dims,
                             kernel.in(MultiHead::v).dims);
  kernel.file("multi_head");
  kernel.constant("kHasBiases", shape.has_biases);
  kernel.constant("kDropout", op.attention_dropout > 0.0);
  kernel.constant("kPostDropout", op.post_dropout > 0.0);
  kernel.number("batch", shape.batch);
  kernel.number("beams", shape.beams);
  kernel.number("queries", shape.queries);
  kernel.number("keys", shape.keys);
  kernel.number("key_beams", shape.key_beams);
  kernel.number("heads", shape.heads);
  kernel.number("o_size", shape.o_size);
  kernel.real("scale", op.softmax_scale);
  kernel.real("keep_probability", 1.0 - op.attention_dropout);
  kernel.real("post_keep_probability", 1.0 - op.post_dropout);
  const auto projection = [&](const std::string& name, MultiHeadPart part) {
    const MultiHeadProjection& p = shape[part];
    kernel.numbers(name, {p.rows, p.columns, p.matrix, p.bias});
  };
  projection("q_projection", MultiHeadPart::query);
  projection("k_projection", MultiHeadPart::key);
  projection("v_projection", MultiHeadPart::value);
  projection("o_projection", MultiHeadPart::output);
  return shape;
}

// Passes 0 and 1: everything up to o_hi.
void add_forward(const MultiHeadShape& shape, Arrays& arrays, GenericKernel& kernel) {
  const std::int64_t projected = arrays.of_queries("q_heads", shape.head_size) +
                                 arrays.of_keys("k_heads", shape.head_size) +
                                 arrays.of_keys("v_heads", shape.value_size);
  arrays.of_queries("scores", shape.keys);
  arrays.of_queries("o_heads", shape.value_size);
  kernel.pass(projected);
  kernel.block_pass(arrays.of_queries("stats", 1));
}

// Passes 0 to 5: everything up to dq^, dk^ and dv^.
void add_gradients(const MultiHeadShape& shape, GenericKernel& kernel) {
  kernel.file("multi_head_gradients");
  Arrays arrays(shape, kernel);
  add_forward(shape, arrays, kernel);
  kernel.pass(arrays.place("d_output", shape.beams, shape.queries, 1, shape.o_size));
  kernel.pass(arrays.of_queries("d_heads", shape.value_size));
  arrays.of_queries("ds", shape.keys);
  arrays.of_queries("p", shape.keys);
  kernel.block_pass(shape.batch * shape.beams * shape.queries * shape.heads);
  kernel.pass(arrays.of_queries("dq_heads", shape.head_size) +
              arrays.of_keys("dk_heads", shape.head_size) +
              arrays.of_keys("dv_heads", shape.value_size));
  arrays.scratch_layout();
}

}  // namespace

void describe(const MultiHeadAttentionForward& op, GenericKernel& kernel) {
  const MultiHeadShape shape = add_multi_head(op, kernel);
  kernel.file("multi_head_attention_forward");
  Arrays arrays(shape, kernel);
  add_forward(shape, arrays, kernel);
  arrays.scratch_layout();
  kernel.pass(element_count(shape.o_dims()));
}

void describe(const MultiHeadAttentionBackwardData& op, GenericKernel& kernel) {
  add_gradients(add_multi_head(op, kernel), kernel);
  kernel.file("multi_head_attention_backward_data");
  for (int slot : {MultiHeadAttentionBackwardData::q, MultiHeadAttentionBackwardData::k,
                   MultiHeadAttentionBackwardData::v})
    kernel.pass(element_count(kernel.in(slot).dims));
}

void describe(const MultiHeadAttentionBackwardWeights& op, GenericKernel& kernel) {
  const MultiHeadShape shape = add_multi_head(op, kernel);
  add_gradients(shape, kernel);
  kernel.file("multi_head_attention_backward_weights");
  for (MultiHeadPart part : kMultiHeadParts) {
    const MultiHeadProjection& p = shape[part];
    kernel.pass(p.matrix_size() + (shape.has_biases ? p.rows : 0));
  }
}

}  // namespace ashlar::cuda

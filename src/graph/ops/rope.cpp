// Definition of rope.
#include <cmath>

#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// Negated comparisons reject NaN too.
void check_frequencies(NodeContext& node, const Rope& op) {
  if (!(op.base > 1.0) || std::isinf(op.base))
    node.reject("base", op.base, "a finite number above 1");
  if (!(op.factor >= 1.0) || std::isinf(op.factor))
    node.reject("factor", op.factor, "a finite number of at least 1");
  if (op.original_length < 1) node.reject("original_length", op.original_length, "at least 1");
  if (!(op.beta_slow > 0.0)) node.reject("beta_slow", op.beta_slow, "a number above 0");
  if (!(op.beta_fast > op.beta_slow) || std::isinf(op.beta_fast))
    node.reject("beta_fast", op.beta_fast, "a finite number above beta_slow, {}", op.beta_slow);
  if (!(op.attention_factor >= 0.0) || std::isinf(op.attention_factor))
    node.reject("attention_factor", op.attention_factor, "a finite number of at least 0");
}

// A table of angles [1 or B, 1 or H, S, width / 2].
void check_table(NodeContext& node, int slot, const Dims& x, std::int64_t width) {
  if (!node.has_input(slot)) return;
  node.require_floating(slot);
  node.require_rank(slot, 4, 4);
  Dims expected = x;
  const Dims& dims = node.input(slot).dims;
  for (const int axis : {0, 1})
    if (dims[axis] == 1) expected[axis] = 1;
  expected[3] = width / 2;
  node.require_dims(slot, expected);
}

void infer_rope(NodeContext& node) {
  auto& op = node.op<Rope>();
  node.require_rank(Rope::x, 4, 4);
  node.require_floating(Rope::x);
  const Tensor& x = node.input(Rope::x);
  const std::int64_t columns = x.dims[3];
  const std::int64_t width = op.width == 0 ? columns : op.width;
  if (width < 0 || width > columns || width % 2 != 0)
    node.reject("width", width, "an even number from 0 to {}, the last extent of x", columns);
  op.width = width;
  check_frequencies(node, op);

  if (node.has_input(Rope::positions)) {
    node.require_integer(Rope::positions);
    node.require_rank(Rope::positions, 2, 2);
    const bool shared = node.input(Rope::positions).dims[0] == 1;
    node.require_dims(Rope::positions, {shared ? 1 : x.dims[0], x.dims[2]});
  }
  if (node.has_input(Rope::cos) != node.has_input(Rope::sin))
    node.reject("inputs cos and sin", "one of them", "both or neither");
  if (node.has_input(Rope::cos) && node.has_input(Rope::positions))
    node.reject("input positions", "a tensor", "none: cos and sin already hold the angles");
  for (const int slot : {Rope::cos, Rope::sin}) check_table(node, slot, x.dims, width);

  node.infer_dims(Rope::y, x.dims);
  node.infer_dtype(Rope::y, x.dtype);
  node.infer_strides_like(Rope::y, x);
}

// The transpose of a rotation and its scale: the rotation back.
void rope_gradient(GradientContext& c) {
  if (c.wants(Rope::cos) || c.wants(Rope::sin))
    c.refuse("cos and sin have no gradient: got tables that depend on a value of wrt");
  Rope op = c.op<Rope>();
  op.inverse = !op.inverse;
  const std::vector<Operand<Rope>> operands = {{Rope::x, c.dy()},
                                               {Rope::positions, c.input(Rope::positions)},
                                               {Rope::cos, c.input(Rope::cos)},
                                               {Rope::sin, c.input(Rope::sin)}};
  const std::vector<Wanted<Rope>> wanted = {Rope::y};
  c.add(Rope::x, c.graph().apply(op, operands, wanted, c.spec(Rope::x)));
}

Contents rope_contents(const NodeShapes& node, int slot) {
  if (slot != Rope::positions) return {};
  const std::int64_t length = std::max<std::int64_t>(node.input(Rope::x)[2], 1);
  return indices_below(4 * length, 100, 1e6);
}

// Two multiplications and an addition per element.
double rope_flops(const NodeShapes& node) { return 3 * count_of(node.output(Rope::y)); }

std::vector<Value> sample_rope(Graph& g, DType t) {
  return g
      .apply(Rope{},
             {{Rope::x, g.input("x", {2, 2, 4, 8}, t)},
              {Rope::positions, g.input("positions", {2, 4}, i32)}},
             {Rope::y})
      .all();
}

}  // namespace

template <>
OpTraits define_traits<Rope>() {
  return {.name = "rope",
          .doc_page = "rope",
          .infer = infer_rope,
          .gradient = rope_gradient,
          .sample = sample_rope,
          .contents = rope_contents,
          .flops = rope_flops,
          .arithmetic_inputs = {Rope::x, Rope::cos, Rope::sin},
          .fused_inputs = {Rope::x}};
}

}  // namespace ashlar

// Raises group dequantisation of weights as frameworks write it ([sub zero,] mul scale, reshape) to
// block_scale_dequantize if a GEMM reads the result and may fuse it into its prologue.
#include <fmt/format.h>

#include "graph/op_traits.hpp"
#include "plan/lowered.hpp"
#include "plan/raise_match.hpp"

namespace ashlar {

namespace {

struct GroupMatch {
  TensorId quantized = kNoTensor, scale = kNoTensor, zero = kNoTensor;
  int axis = 0;  // the axis of the groups; the next axis is that of their elements
  std::int64_t group = 1;
  std::vector<TensorId> inner;  // intermediates that are removed
};

// Whether `joined` is `apart` with `axis` and the next axis merged.
bool joins(const Dims& apart, const Dims& joined, int axis) {
  for (int a = 0; a < joined.rank(); ++a) {
    const std::int64_t extent = a == axis ? apart[a] * apart[a + 1] : apart[a > axis ? a + 1 : a];
    if (joined[a] != extent) return false;
  }
  return true;
}

Dims without(const Dims& dims, int axis) {
  Dims rest;
  for (int a = 0; a < dims.rank(); ++a)
    if (a != axis) rest.push_back(dims[a]);
  return rest;
}

// Whether merging the axis with the next one is a view.
bool is_mergeable(const Tensor& quantized, int axis) {
  return quantized.strides[axis] == quantized.strides[axis + 1] * quantized.dims[axis + 1];
}

// Whether the tensor is a reshape of one with these extents.
bool comes_from(const GraphEditor& editor, TensorId id, const Dims& dims) {
  const Node* reshape = editor.produced_by<Reshape>(id);
  if (reshape == nullptr) return false;
  const Tensor& source = editor.tensor(reshape->inputs[Reshape::x]);
  return source.dims == dims && source.dtype == editor.tensor(id).dtype;
}

// The tensor before exact casts to a wider float: kernels read the narrow type directly.
TensorId before_casts(const GraphEditor& editor, TensorId id) {
  while (const Node* cast = plain(editor, id, PointwiseMode::identity)) {
    const Tensor &from = editor.tensor(cast->inputs[0]), &to = editor.tensor(id);
    const bool is_narrow = bit_width(from.dtype) <= 8 && from.dtype != e8m0 &&
                           from.dtype != boolean && from.dims == to.dims;
    if (!is_narrow || !is_floating(to.dtype) || bit_width(to.dtype) < 16) break;
    id = cast->inputs[0];
  }
  return id;
}

// Whether the difference is exact in every compute type: both operands are integers representable
// in a float.
bool is_exact(const GraphEditor& editor, const Node& difference) {
  const auto is_small = [&](TensorId id) {
    const DType dtype = editor.tensor(id).dtype;
    return is_integer(dtype) && bit_width(dtype) <= 8;
  };
  return is_small(difference.inputs[0]) && is_small(difference.inputs[1]);
}

// Matches `product` as quantized * scale or (quantized - zero) * scale, reshaped to `joined`.
std::optional<GroupMatch> match_groups(const GraphEditor& editor, const Node& product,
                                       const Dims& joined) {
  const Dims& apart = editor.tensor(product.outputs[0]).dims;
  if (apart.rank() != joined.rank() + 1 || !is_floating(product.compute)) return std::nullopt;
  for (int axis = 0; axis < joined.rank(); ++axis) {
    Dims shared = apart;
    shared[axis + 1] = 1;
    if (shared == apart || !joins(apart, joined, axis)) continue;
    const auto operands = split_operands(product, [&](TensorId t) {
      return editor.tensor(t).dims == shared && is_floating(editor.tensor(t).dtype);
    });
    if (!operands) continue;
    GroupMatch m{.quantized = operands->second,
                 .scale = operands->first,
                 .axis = axis,
                 .group = apart[axis + 1],
                 .inner = {product.outputs[0]}};
    const Node* difference = plain(editor, m.quantized, PointwiseMode::sub);
    if (difference && editor.tensor(difference->inputs[1]).dims == shared &&
        (difference->compute == product.compute || is_exact(editor, *difference))) {
      m.inner.push_back(m.quantized);
      m.quantized = difference->inputs[0];
      m.zero = difference->inputs[1];
    }
    // Other pointwise producers are better fused with the multiplication.
    const TensorId stored = before_casts(editor, m.quantized);
    const Tensor& quantized = editor.tensor(stored);
    if (quantized.dims != apart || quantized.dtype == boolean ||
        editor.produced_by<Pointwise>(stored))
      continue;
    if (m.zero != kNoTensor && editor.tensor(m.zero).dtype == boolean) continue;
    if (!comes_from(editor, stored, joined) && !is_mergeable(quantized, axis)) continue;
    for (TensorId inner : m.inner)
      if (editor.uses(inner) != 1 || !may_vanish(editor, inner)) return std::nullopt;
    return m;
  }
  return std::nullopt;
}

bool is_read_by_gemm(const GraphEditor& editor, TensorId id) {
  return editor.uses(id) == 1 && editor.consumers(id).size() == 1 &&
         traits_of(editor.node(editor.consumers(id)[0]).op).dequantizes_inputs;
}

// The tensor with other extents: the source of its reshape, or a new reshape.
TensorId with_dims(GraphEditor& editor, TensorId id, const Dims& dims) {
  if (comes_from(editor, id, dims)) return editor.producer(id)->inputs[Reshape::x];
  const Tensor tensor = editor.tensor(id);
  const TensorId reshaped = editor.add_intermediate(tensor.name + "_joined", dims, tensor.dtype);
  editor.add({tensor.name + "_joined", Reshape{dims}, {id}, {reshaped}, f32});
  return reshaped;
}

// Removes casts and reshapes that became dead.
void remove_unread(GraphEditor& editor, TensorId id) {
  while (id != kNoTensor && editor.producer(id) != nullptr && editor.uses(id) == 0) {
    const NodeId producer = editor.producer_id(id);
    if (!editor.produced_by<Reshape>(id) && !editor.produced_by<Pointwise>(id)) return;
    id = editor.node(producer).inputs[0];
    editor.remove(producer);
  }
}

}  // namespace

void raise_dequantization(LoweredGraph& lowered) {
  GraphEditor editor(lowered.graph);
  const NodeId count = editor.node_count();
  for (NodeId id = 0; id < count; ++id) {
    if (editor.removed(id) || !std::holds_alternative<Reshape>(editor.node(id).op)) continue;
    const Node reshape = editor.node(id);
    const TensorId y = reshape.outputs[Reshape::y];
    const Node* product = plain(editor, reshape.inputs[Reshape::x], PointwiseMode::mul);
    if (product == nullptr || !is_read_by_gemm(editor, y)) continue;
    const Dims dims = editor.tensor(y).dims;
    const auto m = match_groups(editor, *product, dims);
    if (!m) continue;
    const DType compute = product->compute;
    editor.remove(id);
    for (TensorId inner : m->inner) editor.remove(editor.producer_id(inner));
    BlockScaleDequantize op;
    op.block_size = Dims::filled(dims.rank(), 1);
    op.block_size[m->axis] = m->group;
    const auto stored = [&](TensorId number, const Dims& extents) {
      return before_casts(editor, with_dims(editor, before_casts(editor, number), extents));
    };
    const Dims blocks = without(editor.tensor(m->scale).dims, m->axis + 1);
    const TensorId x = stored(m->quantized, dims), scale = with_dims(editor, m->scale, blocks);
    const TensorId zero = m->zero == kNoTensor ? kNoTensor : stored(m->zero, blocks);
    editor.add({reshape.name + "_dequantized", op, {x, scale, zero}, {y}, compute});
    for (TensorId read : {m->quantized, m->scale, m->zero}) remove_unread(editor, read);
    lowered.notes.push_back(
        fmt::format("raised the small operations ending in '{}' to block_scale_dequantize",
                    editor.tensor(y).name));
  }
  editor.finish();
}

}  // namespace ashlar

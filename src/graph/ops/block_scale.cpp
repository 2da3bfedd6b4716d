// Definition of block-scaled quantisation.
#include <algorithm>
#include <array>

#include "graph/block_scale_shape.hpp"
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

constexpr std::array kNarrow = {e4m3, e5m2, e2m1, i8, i4};
constexpr std::array kScales = {e8m0, e4m3, e5m2, f16, bf16, f32};

template <std::size_t kCount>
bool contains(const std::array<DType, kCount>& types, DType dtype) {
  return std::find(types.begin(), types.end(), dtype) != types.end();
}

// Expands block_size to one extent per axis: given extents are those of the last axes, a single one
// that of `axis`.
void normalise_blocks(NodeContext& node, BlockScaleAttributes& op, std::int64_t& axis, int rank) {
  node.normalise_axis("axis", axis, rank);
  if (op.block_size.empty() || op.block_size.rank() > rank)
    node.reject("block_size", op.block_size, "1 to {} extents", rank);
  for (std::int64_t extent : op.block_size)
    if (extent < 1) node.reject("block_size", op.block_size, "extents of at least 1");
  Dims full = Dims::filled(rank, 1);
  const int given = op.block_size.rank();
  if (given == 1)
    full[static_cast<int>(axis)] = op.block_size[0];
  else
    for (int i = 0; i < given; ++i) full[rank - given + i] = op.block_size[i];
  op.block_size = full;
  if (op.scale_layout == ScaleLayout::linear) return;
  const auto blocked = [&](int a) { return full[a] > 1; };
  int many = 0;
  for (int a = 0; a < rank; ++a) many += blocked(a) ? 1 : 0;
  if (rank < 2 || many != 1 || !(blocked(rank - 1) || blocked(rank - 2)))
    node.reject("scale_layout", "f8_128x4",
                "linear, or blocks along one of the last two axes of a matrix (found {})",
                to_string(full));
}

void require_floating_compute(NodeContext& node) {
  if (!is_floating(node.node().compute))
    node.reject("compute", to_string(node.node().compute), "a floating-point type");
}

void check_zero_point(NodeContext& node, const BlockScaleDequantize& op) {
  constexpr int kZero = BlockScaleDequantize::zero_point;
  if (!node.has_input(kZero)) return;
  if (op.scale_layout != ScaleLayout::linear)
    node.reject("scale_layout", "f8_128x4", "linear with {}", node.input_name(kZero));
  node.require_arithmetic(kZero);
  const Tensor& zero = node.input(kZero);
  if (zero.dtype == e8m0)
    node.reject(fmt::format("dtype of {}", node.input_name(kZero)), zero.dtype,
                "a type that has a zero");
  node.require_dims(kZero, node.input(BlockScaleDequantize::scale).dims);
}

void infer_block_scale_quantize(NodeContext& node) {
  using Quantize = BlockScaleQuantize;
  auto& op = node.op<Quantize>();
  node.require_rank(Quantize::x, 1, kMaxRank);
  node.require_floating(Quantize::x);
  const Tensor& x = node.input(Quantize::x);
  if (x.dtype == e8m0)
    node.reject(fmt::format("dtype of {}", node.input_name(Quantize::x)), x.dtype,
                "a type with a sign");
  require_floating_compute(node);
  normalise_blocks(node, op, op.axis, x.dims.rank());

  // Default dtypes: NVFP4 for blocks of 16, MXFP8 otherwise.
  const bool sixteen = element_count(op.block_size) == 16;
  node.infer_dims(Quantize::y, x.dims);
  node.infer_dtype(Quantize::y, sixteen ? e2m1 : e4m3);
  node.infer_strides_like(Quantize::y, x);
  const DType y = node.output(Quantize::y).dtype;
  if (!contains(kNarrow, y))
    node.reject(fmt::format("dtype of y '{}'", node.output(Quantize::y).name), y,
                "e4m3, e5m2, e2m1, i8 or i4");
  node.infer_dims(Quantize::scale, BlockScaleShape(x.dims, op).stored());
  node.infer_dtype(Quantize::scale, sixteen && y == e2m1 ? e4m3 : e8m0);
  node.infer_strides_like(Quantize::scale, Tensor{});
  if (!contains(kScales, node.output(Quantize::scale).dtype))
    node.reject(fmt::format("dtype of scale '{}'", node.output(Quantize::scale).name),
                node.output(Quantize::scale).dtype, "e8m0, e4m3, e5m2, f16, bf16 or f32");
}

void infer_block_scale_dequantize(NodeContext& node) {
  using Dequantize = BlockScaleDequantize;
  auto& op = node.op<Dequantize>();
  node.require_rank(Dequantize::x, 1, kMaxRank);
  node.require_arithmetic(Dequantize::x);
  node.require_floating(Dequantize::scale);
  const Tensor& x = node.input(Dequantize::x);
  if (x.dtype == e8m0)
    node.reject(fmt::format("dtype of {}", node.input_name(Dequantize::x)), x.dtype,
                "a type with a sign");
  require_floating_compute(node);
  normalise_blocks(node, op, op.axis, x.dims.rank());
  node.require_dims(Dequantize::scale, BlockScaleShape(x.dims, op).stored());
  check_zero_point(node, op);
  node.infer_dims(Dequantize::y, x.dims);
  node.infer_dtype(Dequantize::y, f32);
  node.infer_strides_like(Dequantize::y, x);
  if (node.output(Dequantize::y).dtype == e8m0)
    node.reject(fmt::format("dtype of y '{}'", node.output(Dequantize::y).name), e8m0,
                "a type with a sign");
}

Contents block_scale_dequantize_contents(const NodeShapes&, int slot) {
  return slot == BlockScaleDequantize::scale ? positive_values() : Contents{};
}

std::vector<Value> sample_block_scale_quantize(Graph& g, DType t) {
  using Op = BlockScaleQuantize;
  return g.apply(Op{}, {{Op::x, g.input("x", {4, 64}, t)}}, {{Op::y, e4m3}, {Op::scale, e8m0}})
      .all();
}
std::vector<Value> sample_block_scale_dequantize(Graph& g, DType t) {
  using Op = BlockScaleDequantize;
  return g
      .apply(Op{}, {{Op::x, g.input("x", {4, 64}, t)}, {Op::scale, g.input("s", {4, 2}, e8m0)}},
             {Op::y}, {.dtype = f32})
      .all();
}

}  // namespace

template <>
OpTraits define_traits<BlockScaleQuantize>() {
  return {.name = "block_scale_quantize",
          .doc_page = "block_scale",
          .infer = infer_block_scale_quantize,
          .sample = sample_block_scale_quantize,
          .supports_e8m0 = in_every_form,
          .fused_inputs = {BlockScaleQuantize::x}};
}

template <>
OpTraits define_traits<BlockScaleDequantize>() {
  using Self = BlockScaleDequantize;
  return {.name = "block_scale_dequantize",
          .doc_page = "block_scale",
          .infer = infer_block_scale_dequantize,
          .sample = sample_block_scale_dequantize,
          .contents = block_scale_dequantize_contents,
          .arithmetic_inputs = {Self::x, Self::zero_point},
          .supports_e8m0 = in_every_form,
          .fused_inputs = {Self::x, Self::scale, Self::zero_point}};
}

}  // namespace ashlar

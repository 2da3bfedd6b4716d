#include "cuda/engines/sm90/matrix_shape.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

bool is_contiguous(const View& view, int axis) {
  return view.strides[axis] == 1 || view.dims[axis] == 1;
}

// All axes before the last two as one, of `dims`; nothing where they are not at one distance.
std::optional<std::int64_t> batch_distance(const View& view, const Dims& dims) {
  std::int64_t distance = 0, extent = 1;  // of the axes so far, the innermost first
  for (int axis = dims.rank() - 3; axis >= 0; --axis) {
    if (dims[axis] == 1) continue;
    const std::int64_t stride = view.dims[axis] == 1 ? 0 : view.strides[axis];
    if (extent == 1)
      distance = stride;
    else if (stride != distance * extent)
      return {};
    extent *= dims[axis];
  }
  return distance;
}

Support take_factor(const View& view, int row_axis, int depth_axis, const Dims& dims,
                    MatrixFactor& factor) {
  factor.view = view;
  factor.transpose = !is_contiguous(view, depth_axis);
  if (factor.transpose && !is_contiguous(view, row_axis))
    return Support::no("an operand with neither rows nor columns contiguous");
  if (factor.transpose && bit_width(view.dtype) != 16)
    return Support::no("an operand of {} whose depth is not contiguous", to_string(view.dtype));
  const int other = factor.transpose ? depth_axis : row_axis;
  const int along = factor.transpose ? row_axis : depth_axis;
  // One line has any pitch: that of whole pieces of 16 bytes.
  const std::int64_t piece = 128 / bit_width(view.dtype);
  factor.pitch =
      view.dims[other] == 1 ? (view.dims[along] + piece - 1) / piece * piece : view.strides[other];
  const auto batch = batch_distance(view, dims);
  if (!batch) return Support::no("batches that are not all at one distance");
  factor.batch = *batch;
  return Support::yes();
}

bool is_product_type(DType a, DType b) {
  const auto is_fp8 = [](DType t) { return t == DType::e4m3 || t == DType::e5m2; };
  if (is_fp8(a) && is_fp8(b)) return true;
  return a == b && (a == bf16 || a == f16 || a == f32 || a == i8);
}

}  // namespace

TensorMapForm map_of(const MatrixFactor& factor, std::int64_t lines, std::int64_t depth,
                     std::int64_t batches, int rows) {
  const DType dtype = factor.view.dtype;
  const std::int64_t in_128_bytes = tile_depth(dtype);
  TensorMapForm form{.dtype = dtype, .rounds_to_tf32 = dtype == f32};
  form.axes.resize(3);
  form.axes[0] = {.extent = factor.transpose ? lines : depth, .box = in_128_bytes};
  form.axes[1] = {.extent = factor.transpose ? depth : lines,
                  .stride = factor.pitch,
                  .box = factor.transpose ? tile_depth(dtype) : rows};
  form.axes[2] = {.extent = factor.batch == 0 ? 1 : batches, .stride = factor.batch};
  return form;
}

Support describe(const Region& region, MatrixShape& shape) {
  const auto* op = region.anchor_as<Matmul>();
  if (op == nullptr) return Support::other_operation("not a matrix product");
  for (const int length : {Matmul::m_override, Matmul::n_override, Matmul::k_override})
    if (region.anchor->inputs[static_cast<std::size_t>(length)].present())
      return Support::no("lengths of their own per batch");
  const PointwiseProgram &of_a = region.prologues[Matmul::a], &of_b = region.prologues[Matmul::b];
  if (!of_a.is_plain_load() || !of_b.is_plain_load()) return Support::no("work before the product");
  const View &a = of_a.steps[0].view, &b = of_b.steps[0].view;
  if (!is_product_type(a.dtype, b.dtype))
    return Support::no("operands of {} and {}, which no matrix unit multiplies", to_string(a.dtype),
                       to_string(b.dtype));
  const DType sums = a.dtype == i8 ? DType::i32 : f32;
  if (region.anchor->compute != sums && !(sums == DType::i32 && region.anchor->compute == f32))
    return Support::no("computes in {}", to_string(region.anchor->compute));
  if (region.epilogue.has_random()) return Support::no("random numbers after the product");
  const Dims& dims = region.epilogue.space;
  const int rank = dims.rank();
  if (element_count(dims) == 0 || a.dims[rank - 1] == 0) return Support::no("no elements");
  for (const View* view : {&a, &b})
    if (view->ragged_offset != kNoTensor) return Support::no("a ragged tensor");

  // The columns of the result lie together: where its rows do, its transpose b' a' is computed.
  const View& result = region.epilogue.stores.at(0).view;
  const bool swap = !is_contiguous(result, rank - 1) && is_contiguous(result, rank - 2);
  const View &left = swap ? b : a, &right = swap ? a : b;
  const int m = swap ? rank - 1 : rank - 2, n = swap ? rank - 2 : rank - 1;
  if (Support s = take_factor(left, m, swap ? rank - 2 : rank - 1, dims, shape.a); !s) return s;
  if (Support s = take_factor(right, n, swap ? rank - 1 : rank - 2, dims, shape.b); !s) return s;
  shape.rows = dims[m];
  shape.columns = dims[n];
  shape.depth = a.dims[rank - 1];
  shape.batches = element_count(dims) / (shape.rows * shape.columns);
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 2;
  if (std::max({shape.rows, shape.columns, shape.depth, shape.batches}) > kMost)
    return Support::no("an extent past 2^30");
  for (const MatrixFactor* factor : {&shape.a, &shape.b})
    if (const char* reason = refusal(map_of(*factor, 1, 1, 1, 8)))
      return Support::no("the copy engine cannot take an operand: {}", reason);

  shape.epilogue = region.epilogue;
  move_axis_last(shape.epilogue, n);
  Dims full = shape.epilogue.space, columns_alone = full;
  for (int axis = 0; axis + 1 < rank; ++axis) columns_alone[axis] = 1;
  merge_axes({&shape.epilogue}, {&full, &columns_alone});
  return Support::yes();
}

}  // namespace ashlar::cuda

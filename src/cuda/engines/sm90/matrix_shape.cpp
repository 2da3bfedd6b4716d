#include "cuda/engines/sm90/matrix_shape.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "cuda/engines/unaligned_fallback.hpp"
#include "cuda/engines/weight_program.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

// An operand that TMA loads.
Support describe_tma_operand(const View& view, int row_axis, int depth_axis, const Dims& dims,
                             MatrixOperand& factor) {
  factor.view = view;
  factor.transpose = !is_contiguous(view, depth_axis);
  if (view.ragged_offset != kNoTensor) return Support::no("a tensor is ragged");
  if (factor.transpose && !is_contiguous(view, row_axis))
    return Support::no("neither rows nor columns of an operand are contiguous");
  if (factor.transpose && bit_width(view.dtype) != 16)
    return Support::no("an operand of {} is not contiguous along K", to_string(view.dtype));
  const int other = factor.transpose ? depth_axis : row_axis;
  const int along = factor.transpose ? row_axis : depth_axis;
  // A single line may have any pitch: a multiple of 16 bytes.
  const std::int64_t piece = 128 / bit_width(view.dtype);
  factor.pitch =
      view.dims[other] == 1 ? (view.dims[along] + piece - 1) / piece * piece : view.strides[other];
  const auto batch = batch_distance(view, dims);
  if (!batch) return Support::no("batch strides of an operand are not uniform");
  factor.batch = *batch;
  if (const char* reason = refusal(map_of(factor, 1, 1, 1, 8)))
    return Support::no("TMA cannot load an operand: {}", reason);
  return Support::yes();
}

// An operand and the scale that was hoisted from it to the epilogue.
struct ScaledOperand {
  PointwiseProgram program, of_results;
  DType dtype = f32;  // of the program's result
};

// Scales that are constant along K are applied in the epilogue, so that TMA, or the half2
// conversion, loads the rest.
ScaledOperand parted(const Region& region, int slot, int depth_axis, bool may_part) {
  const auto i = static_cast<std::size_t>(slot);
  ScaledOperand result{region.prologues[i], {}, region.anchor->inputs[i].dtype};
  if (!may_part || result.program.is_plain_load() || result.program.has_random() ||
      !result.program.stores.empty() || result.program.precision() != f32)
    return result;
  PointwiseProgram rest = result.program;
  PointwiseProgram factors = hoist_scales(rest, depth_axis);
  if (factors.empty() || factors.has_blocks() || find_narrow_load(rest).numbers == nullptr)
    return result;
  if (rest.is_plain_load()) result.dtype = rest.steps[0].view.dtype;
  result.program = std::move(rest);
  result.of_results = std::move(factors);
  return result;
}

}  // namespace

Support describe_operand(const PointwiseProgram& prologue, DType dtype, int row_axis,
                         int depth_axis, const Dims& dims, MatrixOperand& factor, bool may_use_tma,
                         bool may_convert) {
  const View& first = prologue.steps.at(0).view;
  if (may_use_tma && prologue.is_plain_load() && first.dtype == factor.math &&
      describe_tma_operand(first, row_axis, depth_axis, dims, factor))
    return Support::yes();
  factor.computed.emplace();
  const Support support =
      describe_computed(prologue, dtype, factor.math, row_axis, depth_axis, dims, *factor.computed);
  if (support && may_convert && !factor.computed->along_rows)
    factor.computed->converted = dequantized_operand(factor.computed->program, factor.math);
  // wgmma supports M/N-major operands of 16 bits only; others are transposed.
  factor.transpose = factor.computed->along_rows && bit_width(factor.math) == 16;
  return support;
}

int max_vector(std::int64_t columns) {
  int vector = 8;
  while (columns % vector != 0) vector /= 2;
  return vector;
}

TensorMapForm map_of(const MatrixOperand& factor, std::int64_t lines, std::int64_t depth,
                     std::int64_t batches, int rows) {
  const DType dtype = factor.view.dtype;
  const std::int64_t in_128_bytes = block_k(dtype);
  TensorMapForm form{.dtype = dtype, .rounds_to_tf32 = dtype == f32};
  form.axes.resize(3);
  form.axes[0] = {.extent = factor.transpose ? lines : depth, .box = in_128_bytes};
  form.axes[1] = {.extent = factor.transpose ? depth : lines,
                  .stride = factor.pitch,
                  .box = factor.transpose ? block_k(dtype) : rows};
  form.axes[2] = {.extent = factor.batch == 0 ? 1 : batches, .stride = factor.batch};
  return form;
}

Support describe(const Region& region, MatrixShape& shape) {
  const auto* op = region.anchor_as<Matmul>();
  if (op == nullptr) return Support::other_operation("not a matmul");
  const View &a = region.anchor->inputs[Matmul::a], &b = region.anchor->inputs[Matmul::b];
  const Dims& dims = region.epilogue.space;
  const int rank = dims.rank();
  const auto has = [&](int slot) {
    return region.anchor->inputs[static_cast<std::size_t>(slot)].present();
  };
  const bool may_part = region.anchor->compute == f32 && region.epilogue.has_accumulator() &&
                        !has(Matmul::m_override) && !has(Matmul::n_override) &&
                        !has(Matmul::k_override);
  const ScaledOperand of_a = parted(region, Matmul::a, rank - 1, may_part),
                      of_b = parted(region, Matmul::b, rank - 2, may_part);
  DType math_a = f32, math_b = f32;
  if (!choose_math(of_a.dtype, of_b.dtype, region.anchor->compute, math_a, math_b))
    return Support::no("tensor cores do not multiply {} by {} with {} accumulators",
                       to_string(a.dtype), to_string(b.dtype), to_string(region.anchor->compute));
  // fp8 values whose scale was hoisted are not multiplied as fp8, whose accumulators have fewer
  // bits, but as bf16, which represents them exactly.
  if (promotes(math_a) && (of_a.dtype != a.dtype || of_b.dtype != b.dtype)) math_a = math_b = bf16;
  shape.rounds_f32 = math_a == f32 && (a.dtype == f32 || b.dtype == f32);
  if (region.epilogue.has_random()) return Support::no("the epilogue generates random numbers");
  if (element_count(dims) == 0 || a.dims[rank - 1] == 0) return Support::no("no elements");
  if (region.epilogue.stores.empty()) return Support::no("only reductions are stored");
  for (const PointwiseProgram* program : {&of_a.program, &of_b.program, &region.epilogue})
    if (!has_aligned_views(*program)) return Support::no("a slice is not aligned to 16 bytes");
  // The columns of the result must be contiguous: where its rows are, the transpose b' a' is
  // computed.
  const View& result = region.epilogue.stores.at(0).view;
  const bool swap = !is_contiguous(result, rank - 1) && is_contiguous(result, rank - 2);
  const int m = swap ? rank - 1 : rank - 2, n = swap ? rank - 2 : rank - 1;
  shape.axes.assign(static_cast<std::size_t>(rank), TailAxis::batch);
  shape.axes[static_cast<std::size_t>(m)] = TailAxis::row;
  shape.axes[static_cast<std::size_t>(n)] = TailAxis::column;
  if (Support s = GemmTails::supports(region, shape.axes); !s) return s;
  const int left = swap ? Matmul::b : Matmul::a, right = swap ? Matmul::a : Matmul::b;
  const auto take = [&](int slot, DType math, int row_axis, int depth_axis, MatrixOperand& factor) {
    const ScaledOperand& from = slot == Matmul::a ? of_a : of_b;
    factor.math = math;
    const bool is_whole = !has(Matmul::k_override);
    return describe_operand(from.program, from.dtype, row_axis, depth_axis, dims, factor, is_whole,
                            is_whole);
  };
  const auto take_lengths = [&](int slot, View& lengths) {
    if (!has(slot)) return true;
    const View& view = region.prologues[static_cast<std::size_t>(slot)].steps[0].view;
    const auto distance = batch_distance(view, dims);
    if (!distance || view.ragged_offset != kNoTensor) return false;
    lengths = view;
    lengths.dims = {element_count(dims) / (dims[rank - 1] * dims[rank - 2])};
    lengths.strides = {*distance};
    return true;
  };
  if (!take_lengths(swap ? Matmul::n_override : Matmul::m_override, shape.row_lengths) ||
      !take_lengths(swap ? Matmul::m_override : Matmul::n_override, shape.column_lengths) ||
      !take_lengths(Matmul::k_override, shape.k_lengths))
    return Support::no("strides of the lengths per batch are not uniform");
  shape.padding_value = op->padding_value;
  if (math_a == DType::i8 && shape.has_lengths())
    return Support::no("lengths per batch are not supported for integers");
  if (Support s = take(left, swap ? math_b : math_a, m, swap ? rank - 2 : rank - 1, shape.a); !s)
    return s;
  if (Support s = take(right, swap ? math_a : math_b, n, swap ? rank - 1 : rank - 2, shape.b); !s)
    return s;
  shape.rows = dims[m];
  shape.columns = dims[n];
  shape.depth = a.dims[rank - 1];
  shape.batches = element_count(dims) / (shape.rows * shape.columns);
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 2;
  if (std::max({shape.rows, shape.columns, shape.depth, shape.batches}) > kMost)
    return Support::no("an extent exceeds 2^30");
  shape.epilogue = region.epilogue;
  for (const ScaledOperand* factor : {&of_a, &of_b})
    if (!factor->of_results.empty()) scale_accumulator(shape.epilogue, factor->of_results);
  move_axis_last(shape.epilogue, n);
  Dims full = shape.epilogue.space, columns_alone = full;
  for (int axis = 0; axis + 1 < rank; ++axis) columns_alone[axis] = 1;
  // merge_axes would merge a single column with the rows.
  if (shape.columns > 1) merge_axes({&shape.epilogue}, {&full, &columns_alone});
  return Support::yes();
}

}  // namespace ashlar::cuda

#include "cuda/engines/gemm_skinny_shape.hpp"

#include <algorithm>
#include <numeric>

#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/weight_program.hpp"

namespace ashlar::cuda {

namespace {

using Step = PointwiseProgram::Step;
using Kind = Step::Kind;

constexpr std::int64_t kMaxFew = 32;
constexpr std::int64_t kMaxUnits = 1 << 30;
constexpr int kUnitBytes = 16;

PointwiseProgram with_last_axes_exchanged(const PointwiseProgram& program) {
  std::vector<int> order(static_cast<std::size_t>(program.space.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return reordered(program, order);
}

// Whether the view is broadcast along neither of the last two axes.
bool is_matrix(const View& view, const Dims& space) {
  for (int axis = space.rank() - 2; axis < space.rank(); ++axis)
    if (space[axis] > 1 && view.strides[axis] == 0) return false;
  return true;
}

// Scale factors of the weights that do not depend on k multiply the results instead.
void take_factors_to_results(SkinnyShape& shape) {
  const int depth_axis = shape.k_major ? shape.rank - 1 : shape.rank - 2;
  const PointwiseProgram product = hoist_scales(shape.work, depth_axis);
  if (product.empty()) return;
  shape.factors = shape.k_major ? with_last_axes_exchanged(product) : product;
  shape.factors.space[shape.rank - 2] = shape.m;  // broadcast along m
}

// Recognises a prologue that multiplies weights by block scales, which the kernel applies to the
// 16-bit operands: products of 8-bit (bf16) or 11-bit (f16) significands are rounded once, like a
// tensor of dequantised weights.
void take_out_scale(SkinnyShape& shape) {
  const PointwiseProgram& work = shape.work;
  if (work.steps.size() != 3 || work.steps[0].kind != Kind::accumulator) return;
  const Step &scale = work.steps[1], &product = work.steps[2];
  if (scale.kind != Kind::load || product.op.mode != PointwiseMode::mul || product.round_to ||
      product.args[0] + product.args[1] != 1 || product.op.alpha1 != 1.0 ||
      product.op.alpha2 != 1.0 || !is_exact_in(scale.view.dtype, shape.type) ||
      scale.blocks.empty())
    return;
  const std::int64_t block = scale.blocks[shape.k_major ? shape.rank - 1 : shape.rank - 2];
  if (block % 8 != 0) return;
  shape.scale_block = block;
  shape.scale = part_of(work, 1);
  shape.has_work = false;
}

}  // namespace

Support SkinnyShape::describe(const Region& region, SkinnyShape& shape) {
  if (region.anchor_as<Matmul>() == nullptr)
    return Support::other_operation("the anchor is not a matmul");
  for (const int length : {Matmul::m_override, Matmul::n_override, Matmul::k_override})
    if (static_cast<std::size_t>(length) < region.anchor->inputs.size() &&
        region.anchor->inputs[static_cast<std::size_t>(length)].present())
      return Support::no("M, N or K is overridden per batch");
  if (touches_unsupported(region))
    return Support::no("a ragged or complex tensor, or random numbers");
  if (region.anchor->compute != f32)
    return Support::no("accumulates in {}, only f32 is supported",
                       to_string(region.anchor->compute));
  if (region.precision() == f64) return Support::no("needs f64 precision, computes in f32");
  for (const PointwiseProgram& prologue : region.prologues)
    if (reads_coordinates(prologue)) return Support::no("a fused operation reads coordinates");
  if (reads_coordinates(region.epilogue)) return Support::no("a fused operation reads coordinates");

  const Dims& result = region.epilogue.space;
  shape.rank = result.rank();
  const int last = shape.rank - 1;
  const std::int64_t m = result[last - 1], n = result[last];
  if (std::min(m, n) > kMaxFew)
    return Support::no("{} rows and {} columns, one must be at most {}", m, n, kMaxFew);
  if (element_count(result) == 0) return Support::no("no elements");
  const bool few_columns = n < m;
  const int x_slot = few_columns ? Matmul::b : Matmul::a;
  const int weight_slot = few_columns ? Matmul::a : Matmul::b;
  shape.m = std::min(m, n);
  shape.n = std::max(m, n);
  shape.k = region.prologues[Matmul::a].space[last];
  if (shape.k == 0) return Support::no("no elements");
  for (int axis = 0; axis < last - 1; ++axis) {
    shape.batch_extent.push_back(result[axis]);
    shape.batches *= result[axis];
  }
  if (shape.batches * shape.n > kMaxUnits)
    return Support::no("more than 2^30 rows of weights over all batches");

  const auto program = [&](int slot, bool exchanged) {
    const PointwiseProgram& own = region.prologues[static_cast<std::size_t>(slot)];
    return exchanged ? with_last_axes_exchanged(own) : own;
  };
  shape.x = program(x_slot, few_columns);
  shape.epilogue = few_columns ? with_last_axes_exchanged(region.epilogue) : region.epilogue;
  shape.work = program(weight_slot, !few_columns);  // [..., n, k]
  const auto found =
      std::find_if(shape.work.steps.begin(), shape.work.steps.end(), [&](const Step& step) {
        return step.kind == Kind::load && step.blocks.empty() &&
               is_matrix(step.view, shape.work.space) &&
               (is_contiguous(step.view, last) || is_contiguous(step.view, last - 1));
      });
  if (found == shape.work.steps.end())
    return Support::no("weights are contiguous along neither K nor N");
  const auto main = static_cast<std::size_t>(found - shape.work.steps.begin());
  shape.k_major = is_contiguous(found->view, last);
  if (!shape.k_major) shape.work = with_last_axes_exchanged(shape.work);
  shape.weights = shape.work.steps[main].view;
  const DType stored = shape.weights.dtype;
  if (bit_width(stored) > 32 || bit_width(stored) < 4 || (bit_width(stored) == 32 && stored != f32))
    return Support::no("weights of type {} are not supported", to_string(stored));
  if (const auto rounding = shape.work.steps[main].round_to; rounding && *rounding != stored)
    return Support::no("weights are rounded to another type when loaded");
  shape.work.steps[main] = Step{.kind = Kind::accumulator};
  take_factors_to_results(shape);
  shape.has_work = shape.work.steps.size() > 1;

  // Rows of sub-byte types must start on byte boundaries.
  if (bit_width(stored) < 8) {
    std::int64_t odd = shape.weights.offset % 2 + shape.weights.dims[last] % 2;
    for (int axis = 0; axis < last; ++axis)
      if (shape.weights.dims[axis] > 1) odd += shape.weights.strides[axis] % 2;
    if (odd != 0) return Support::no("rows of {} start within a byte", to_string(stored));
  }

  const auto& inputs = region.anchor->inputs;
  const DType of_x = inputs[static_cast<std::size_t>(x_slot)].dtype;
  const DType of_weights =
      shape.has_work ? inputs[static_cast<std::size_t>(weight_slot)].dtype : stored;
  for (const DType type : {bf16, f16})
    if (is_exact_in(of_x, type) && is_exact_in(of_weights, type)) {
      shape.type = type;
      break;
    }
  const bool has_pairs =
      shape.uses_mma() && (stored == shape.type || stored == e4m3 || stored == i8 || stored == i4 ||
                           stored == u4 || stored == e2m1 || (stored == e5m2 && shape.type == f16));
  if (has_pairs && shape.has_work && of_weights == shape.type) take_out_scale(shape);
  shape.raw = has_pairs && !shape.has_work;
  return Support::yes();
}

std::int64_t SkinnyShape::row_stride() const {
  return weights.strides[k_major ? rank - 2 : rank - 1];
}
std::int64_t SkinnyShape::k_stride() const {
  return weights.strides[k_major ? rank - 1 : rank - 2];
}

std::int64_t SkinnyShape::packet_bytes() const {
  if (k_major) return 16;
  // N-major: a lane accumulates all rows of a packet, in 64 to 128 registers.
  const std::int64_t max_rows = uses_mma() ? (m > 16 || !raw ? 16 : 32) : m > 16 ? 4 : 8;
  return std::clamp<std::int64_t>(max_rows * bits() / 8, 4, 16);
}

std::int64_t SkinnyShape::copy_bytes() const {
  std::int64_t bytes = packet_bytes();
  const auto fits = [&](std::int64_t elements) {
    while (bytes > 1 && elements * bits() / 8 % bytes != 0) bytes /= 2;
  };
  fits(weights.dims[rank - 1]);
  for (int axis = 0; axis < rank - 1; ++axis)
    if (weights.dims[axis] > 1) fits(weights.strides[axis]);
  if (bits() < 8) fits(weights.offset);
  return bytes;
}

bool SkinnyShape::fits_tma(const DeviceProps& device) const {
  constexpr int kHopper = 90;
  constexpr std::int64_t kStepBytes = 64;  // of a row, in a step of a warp
  if (device.compute_capability < kHopper || !uses_mma() || !k_major || !raw || !copies_x())
    return false;
  if (copy_bytes() != kUnitBytes || row_bytes() % kStepBytes != 0) return false;
  if (scale_block == 0) return true;
  if (!scale.is_plain_load() || scale.steps[0].round_to) return false;
  const View& view = scales();
  const int width = bit_width(view.dtype);
  const auto is_whole = [&](std::int64_t elements) {
    return elements * width / 8 % kUnitBytes == 0;
  };
  if (width < 8 || width > 32 || view.strides[rank - 2] != 1 || !is_whole(n)) return false;
  for (int axis = 0; axis < rank; ++axis)
    if (axis != rank - 2 && !is_whole(view.strides[axis])) return false;
  return scale_block % (kStepBytes * 8 / bits()) == 0;
}

bool SkinnyShape::fits_wgmma(const DeviceProps& device) const {
  constexpr int kHopper = 90;  // only sm_90a has wgmma
  constexpr std::int64_t kPieceBytes = 128;
  // Up to this many rows of x, warps are as fast with 16-bit weights, the cheapest to convert.
  const std::int64_t enough = bits() >= 16 ? 16 : 0;
  return device.compute_capability == kHopper && fits_tma(device) && batches == 1 && m > enough &&
         row_bytes() % kPieceBytes == 0 && (bits() >= 8 || weights.offset == 0);
}

bool SkinnyShape::keeps_offset() const {
  constexpr std::int64_t kMaxRows = 16;
  return bits() == 4 && weights.dtype != e2m1 && scale_block > 0 && m <= kMaxRows;
}

bool SkinnyShape::copies_x() const {
  if (!x.is_plain_load()) return false;
  const View& view = x.steps[0].view;
  const int unit = kUnitBytes * 8 / bit_width(type);
  if (view.dtype != type || x.steps[0].round_to) return false;
  if (view.strides[rank - 1] != 1 || k % unit != 0) return false;
  for (int axis = 0; axis < rank - 1; ++axis)
    if (view.dims[axis] > 1 && view.strides[axis] % unit != 0) return false;
  return true;
}

}  // namespace ashlar::cuda

#include "cuda/engines/repacked_operand.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/launch/tensor_map.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

// Row-major strides of `dims`, whose last axis has `pitch` elements.
Dims strides_of(const Dims& dims, std::int64_t pitch) {
  Dims strides = dims;
  std::int64_t stride = 1;
  for (int axis = dims.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= axis == dims.rank() - 1 ? pitch : dims[axis];
  }
  return strides;
}

}  // namespace

void merge_rows(PointwiseProgram& program) {
  Dims full = program.space, columns = full;
  const std::int64_t last = full[full.rank() - 1];
  if (last == 1 || element_count(full) == last) return;
  for (int axis = 0; axis + 1 < full.rank(); ++axis) columns[axis] = 1;
  merge_axes({&program}, {&full, &columns});
}

RepackedOperand packed(Repack pack) {
  RepackedOperand result;
  std::int64_t elements = 1;
  for (int axis = 0; axis < pack.strides.rank(); ++axis)
    elements = std::max(elements, pack.strides[axis] * pack.from.space[axis]);
  result.scratch_bytes = elements * bit_width(pack.dtype) / 8;
  // Memory that is contiguous along columns already has rows that are not multiples of 16 bytes,
  // and is loaded in shorter accesses. Their speed was not measured: this factor ranks measured
  // strategies first.
  constexpr double kShortPieces = 4;
  const bool turns = !reads_along(pack.from, pack.from.space.rank() - 1);
  result.moved_bytes = 2.0 * static_cast<double>(result.scratch_bytes) * (turns ? 1 : kShortPieces);
  result.pack = std::move(pack);
  return result;
}

RepackedOperand take_pixels(const PointwiseProgram& program, DType dtype) {
  if (program.is_plain_load() && is_tma_aligned(program.steps[0].view, 1))
    return {.view = program.steps[0].view, .pack = {}};
  Repack pack{program, dtype, {}};
  move_axis_last(pack.from, 1);
  const Dims whole = pack.from.space;
  merge_rows(pack.from);
  const std::int64_t pitch = round_up(whole[whole.rank() - 1], elements_per_16_bytes(dtype));
  pack.strides = strides_of(pack.from.space, pitch);
  const Dims strides = strides_of(whole, pitch);
  RepackedOperand result = packed(std::move(pack));
  result.view.dtype = dtype;
  result.view.dims = program.space;
  result.view.strides = program.space;
  result.view.strides[0] = strides[0];
  result.view.strides[1] = 1;
  for (int axis = 2; axis < whole.rank(); ++axis) result.view.strides[axis] = strides[axis - 1];
  return result;
}

}  // namespace ashlar::cuda

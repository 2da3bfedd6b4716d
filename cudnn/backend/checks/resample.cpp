// Checks of pooling and interpolation: y [N, C, P...] from x [N, C, ...].
#include "backend/checks/operand.hpp"
#include "backend/checks/window.hpp"
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

namespace {

std::int64_t whole(const cudnnFraction_t& fraction) {
  return fraction.numerator / fraction.denominator;
}

void check_shapes(const Record& resample, const Operand& x, const Operand& y) {
  const auto rank = static_cast<int>(resample.integer(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS)) + 2;
  for (const Operand* operand : {&x, &y}) operand->require_set().require_rank(rank, rank);
  Extents expected = {x.extent(0), x.extent(1)};
  const auto before = resample.fractions(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS);
  const auto after = resample.fractions(CUDNN_ATTR_RESAMPLE_POST_PADDINGS);
  const auto windows = resample.fractions(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS);
  const auto strides = resample.fractions(CUDNN_ATTR_RESAMPLE_STRIDES);
  for (int position = 2; position < rank; ++position) {
    const auto axis = static_cast<std::size_t>(position) - 2;
    if (is_pooling(resample.integer(CUDNN_ATTR_RESAMPLE_MODE)))
      expected.push_back(window_count(x.extent(position) + whole(before[axis]) + whole(after[axis]),
                                      whole(windows[axis]), whole(strides[axis])));
    else
      expected.push_back(y.extent(position));
  }
  y.require_dims(expected, ", the output dims of the resampling");
}

void check_index(const Record& resample, const Operand& index, const Operand& y) {
  const std::int64_t mode = resample.integer(CUDNN_ATTR_RESAMPLE_MODE);
  if (index.is_set() && mode != CUDNN_RESAMPLE_MAXPOOL)
    fail_bound(CUDNN_ATTR_RESAMPLE_MODE, std::to_string(mode),
               "CUDNN_RESAMPLE_MAXPOOL, the only mode with an index tensor");
  index.require_dims(y.dims(), ", the dims of the output").require_integer();
}

}  // namespace

FinishedRef finalize_resample_forward(const Record& operation) {
  const Record& resample = operation.record(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC);
  const Operand x(operation, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC);
  const Operand y(operation, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC);
  check_shapes(resample, x, y);
  check_index(resample, {operation, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC}, y);
  return attributes_only();
}

FinishedRef finalize_resample_backward(const Record& operation) {
  const Record& resample = operation.record(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC);
  const Operand dx(operation, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC);
  const Operand dy(operation, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC);
  const Operand index(operation, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC);
  const Operand x(operation, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC);
  const Operand y(operation, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_YDESC);
  check_shapes(resample, dx, dy);
  check_index(resample, index, dy);
  x.require_dims(dx.dims(), ", the dims of CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC");
  y.require_dims(dy.dims(), ", the dims of CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC");
  // Max-pooling backward needs the position of each maximum: from the index, or found again in x.
  if (resample.integer(CUDNN_ATTR_RESAMPLE_MODE) == CUDNN_RESAMPLE_MAXPOOL && !x.is_set())
    index.require_set();
  return attributes_only();
}

}  // namespace ashlar::cudnn

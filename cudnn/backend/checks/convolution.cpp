// Checks of convolutions: y [N, K, P...] from x [N, C, ...] and w [K, C / groups, ...].
#include <limits>

#include "backend/checks/operand.hpp"
#include "backend/checks/window.hpp"
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

namespace {

void check_channels(const Operand& x, const Operand& w, const Operand& y) {
  // With x4 and x32 types clients give extents in vectors or in elements, without saying which.
  if (x.is_vector_type() || w.is_vector_type() || y.is_vector_type()) return;
  if (x.extent(1) % w.extent(1) != 0)
    w.fail_shape(fmt::format("{} channels per group", w.extent(1)),
                 fmt::format("a divisor of the {} channels of the input", x.extent(1)));
  const std::int64_t groups = x.extent(1) / w.extent(1);
  if (w.extent(0) % groups != 0)
    w.fail_shape(fmt::format("{} output channels", w.extent(0)),
                 fmt::format("a multiple of the {} groups that the channels imply", groups));
  if (y.extent(1) != w.extent(0))
    y.fail_shape(fmt::format("{} channels", y.extent(1)),
                 fmt::format("{}, the output channels of the filter", w.extent(0)));
}

void check_spatial(const Record& convolution, const Operand& x, const Operand& w,
                   const Operand& y) {
  const ExtentsView before = convolution.integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const ExtentsView after = convolution.integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  const ExtentsView strides = convolution.integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const ExtentsView dilations = convolution.integers(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  Extents expected(y.dims().begin(), y.dims().begin() + 2);
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    const int tensor_axis = static_cast<int>(axis) + 2;
    if (w.extent(tensor_axis) > std::numeric_limits<std::int32_t>::max())
      w.fail_shape("dims " + text_of(w.dims()), "filter extents that fit into 31 bits");
    const std::int64_t window = (w.extent(tensor_axis) - 1) * dilations[axis] + 1;
    const std::int64_t padded = x.extent(tensor_axis) + before[axis] + after[axis];
    if (window > padded)
      w.fail_shape(fmt::format("{} elements under the filter on axis {}", window, tensor_axis),
                   fmt::format("at most {}, the padded input", padded));
    expected.push_back(window_count(padded, window, strides[axis]));
  }
  y.require_dims(expected, ", the output dims of the convolution");
}

FinishedRef check(const Record& convolution, const Operand& x, const Operand& w, const Operand& y) {
  const auto rank = static_cast<int>(convolution.integer(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)) + 2;
  for (const Operand* operand : {&x, &w, &y}) operand->require_set().require_rank(rank, rank);
  if (y.extent(0) != x.extent(0))
    y.fail_shape(fmt::format("batch {}", y.extent(0)),
                 fmt::format("{}, the batch of the input", x.extent(0)));
  check_channels(x, w, y);
  check_spatial(convolution, x, w, y);
  return attributes_only();
}

}  // namespace

FinishedRef finalize_convolution_forward(const Record& operation) {
  return check(operation.record(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC),
               {operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X},
               {operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
               {operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y});
}

FinishedRef finalize_convolution_backward_data(const Record& operation) {
  return check(operation.record(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC),
               {operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX},
               {operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W},
               {operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY});
}

FinishedRef finalize_convolution_backward_filter(const Record& operation) {
  return check(operation.record(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC),
               {operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X},
               {operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
               {operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY});
}

}  // namespace ashlar::cudnn

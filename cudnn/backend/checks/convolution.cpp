// Checks of convolutions: y [N, K, P...] from x [N, C, ...] and w [K, C / groups, ...], or with a
// group dimension: y [N, G, K, P...] from x [N, G, C, ...] and w [G, K, C, ...].
#include <limits>
#include <map>
#include <tuple>
#include <utility>

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

void check_group_dimension(const Operand& x, const Operand& w, const Operand& y) {
  for (const Operand* operand : {&x, &w, &y})
    if (operand->has_vectors()) operand->fail_shape("vectors and a group dimension", "one of them");
  for (const auto& [operand, groups] : {std::pair(&w, w.extent(0)), std::pair(&y, y.extent(1))})
    if (groups != x.extent(1))
      operand->fail_shape(fmt::format("{} groups", groups),
                          fmt::format("{}, those of the input", x.extent(1)));
  if (w.extent(2) != x.extent(2))
    w.fail_shape(fmt::format("{} channels per group", w.extent(2)),
                 fmt::format("{}, those of the input", x.extent(2)));
}

void check_plain(const Record& convolution, const Operand& x, const Operand& w, const Operand& y) {
  if (y.extent(0) != x.extent(0))
    y.fail_shape(fmt::format("batch {}", y.extent(0)),
                 fmt::format("{}, the batch of the input", x.extent(0)));
  check_channels(x, w, y);
  check_spatial(convolution, x, w, y);
}

// Attribute names, which differ between the three convolution operations.
struct ConvolutionNames {
  cudnnBackendAttributeName_t convolution, x, w, y;
};

// `x` or `y`: axis 1 counts the channels of all groups; `w`: axis 0 counts their output channels.
Extents with_groups(ExtentsView dims, std::size_t axis, std::int64_t groups) {
  Extents result(dims.begin(), dims.end());
  result[axis] /= groups;
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis), groups);
  return result;
}
Extents with_group_stride(ExtentsView strides, std::size_t axis, std::int64_t channels) {
  Extents result(strides.begin(), strides.end());
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis), channels * strides[axis]);
  return result;
}

// What clients read of a finalized convolution: as in NVIDIA's library, its tensors have a group
// dimension, and a second spatial axis where there is only one.
class FinishedConvolution final : public Finished {
 public:
  FinishedConvolution(const Record& operation, const ConvolutionNames& names) {
    const RecordRef &convolution = operation.reference(names.convolution),
                    &x = operation.reference(names.x), &w = operation.reference(names.w),
                    &y = operation.reference(names.y);
    const bool is_flat = convolution->integer(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == 1;
    const auto plain =
        static_cast<std::size_t>(convolution->integer(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)) + 2;
    const bool has_groups = dims(*x).size() > plain;
    const std::int64_t groups = has_groups ? dims(*x)[1] : dims(*x)[1] / dims(*w)[1];
    values_.emplace(names.convolution, is_flat ? widened(*convolution) : convolution);
    for (const auto& [name, tensor, axis] :
         {std::tuple(names.x, x, 1U), {names.w, w, 0U}, {names.y, y, 1U}})
      values_.emplace(name, view(tensor, has_groups ? 0 : groups, axis, is_flat));
  }

  std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override {
    const auto found = values_.find(name);
    if (found == values_.end()) return {};
    return std::vector<RecordRef>{found->second};
  }

 private:
  static ExtentsView dims(const Record& tensor) {
    return tensor.integers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  }

  // `groups`: 0 if the tensor has a group dimension. Vectorised tensors stay as they are.
  static RecordRef view(const RecordRef& tensor, std::int64_t groups, std::size_t axis,
                        bool is_flat) {
    if (Operand(tensor.get(), CUDNN_ATTR_TENSOR_DIMENSIONS).has_vectors()) return tensor;
    const ExtentsView given = tensor->integers(CUDNN_ATTR_TENSOR_STRIDES);
    Extents extents(dims(*tensor).begin(), dims(*tensor).end()),
        strides(given.begin(), given.end());
    if (groups > 0) {
      extents = with_groups(extents, axis, groups);
      strides = with_group_stride(strides, axis, extents[axis + 1]);
    }
    if (is_flat) {
      strides.insert(strides.end() - 1, extents.back() * strides.back());
      extents.insert(extents.end() - 1, 1);
    }
    auto copy = std::make_shared<Record>(*tensor);
    copy->attributes[CUDNN_ATTR_TENSOR_DIMENSIONS] = std::move(extents);
    copy->attributes[CUDNN_ATTR_TENSOR_STRIDES] = std::move(strides);
    return copy;
  }

  static RecordRef widened(const Record& convolution) {
    auto copy = std::make_shared<Record>(convolution);
    copy->attributes[CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS] = Extents{2};
    for (const auto& [name, neutral] : {std::pair(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0),
                                        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0},
                                        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1},
                                        {CUDNN_ATTR_CONVOLUTION_DILATIONS, 1}})
      if (convolution.has(name))
        copy->attributes[name] = Extents{neutral, convolution.integer(name)};
    return copy;
  }

  std::map<cudnnBackendAttributeName_t, RecordRef> values_;
};

FinishedRef check(const Record& operation, const ConvolutionNames& names) {
  const Operand x(operation, names.x), w(operation, names.w), y(operation, names.y);
  const Record& convolution = operation.record(names.convolution);
  const auto plain = static_cast<int>(convolution.integer(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)) + 2;
  const bool has_groups = x.is_set() && x.rank() == plain + 1;
  const int rank = has_groups ? plain + 1 : plain;
  for (const Operand* operand : {&x, &w, &y}) operand->require_set().require_rank(rank, rank);
  if (has_groups) {
    check_group_dimension(x, w, y);
    check_plain(convolution, x.merged(1), w.merged(0), y.merged(1));
  } else {
    check_plain(convolution, x, w, y);
  }
  return std::make_shared<FinishedConvolution>(operation, names);
}

}  // namespace

FinishedRef finalize_convolution_forward(const Record& operation) {
  return check(operation, {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y});
}

FinishedRef finalize_convolution_backward_data(const Record& operation) {
  return check(operation, {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY});
}

FinishedRef finalize_convolution_backward_filter(const Record& operation) {
  return check(operation, {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY});
}

}  // namespace ashlar::cudnn

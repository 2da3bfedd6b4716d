// Validation of tensors: dims, strides, ragged offsets, overlap, size.
#include "graph/tensor_rules.hpp"

#include <vector>

#include "base/checked.hpp"
#include "graph/enum_names.hpp"

namespace ashlar {

namespace {

template <class... Args>
[[noreturn]] void reject(const Tensor& tensor, std::string_view what, const std::string& got,
                         fmt::format_string<Args...> expected, Args&&... args) {
  fail(ErrorCode::invalid_graph, "tensor '{}': {}: got {}, expected {}", tensor.name, what, got,
       fmt::format(expected, std::forward<Args>(args)...));
}

void check_ragged(const GraphData& graph, const Tensor& tensor) {
  if (tensor.ragged_offset < 0 ||
      tensor.ragged_offset >= static_cast<TensorId>(graph.tensors.size()))
    reject(tensor, "ragged_offset", fmt::format("tensor id {}", tensor.ragged_offset),
           "a tensor of this graph");
  const Tensor& offsets = graph.tensors[static_cast<std::size_t>(tensor.ragged_offset)];
  if (offsets.kind != TensorKind::input)
    reject(tensor, "ragged_offset",
           fmt::format("'{}', of kind {}", offsets.name, enum_name(offsets.kind)), "an input");
  if (offsets.ragged_offset != kNoTensor)
    reject(tensor, "ragged_offset", fmt::format("'{}', which is ragged itself", offsets.name),
           "a plain tensor");
  if (offsets.dtype != i32 && offsets.dtype != i64)
    reject(tensor, "dtype of ragged_offset", std::string(to_string(offsets.dtype)), "i32 or i64");
  if (tensor.dims.empty()) return;
  const std::int64_t rows = checked_add(tensor.dims[0], 1);
  if (offsets.dims[0] != rows || element_count(offsets.dims) != rows)
    reject(tensor, "dims of ragged_offset", to_string(offsets.dims),
           "[{}, 1, ...]: one more than the batch", rows);
  if (rows > 1 && offsets.strides[0] != 1)
    reject(tensor, "strides of ragged_offset", to_string(offsets.strides), "packed offsets");
}

void check_facts(const GraphData& graph, Tensor& tensor) {
  if (tensor.name.size() > kMaxNameBytes)
    fail(ErrorCode::invalid_graph, "tensor '{}...': name: got {} bytes, expected at most {}",
         tensor.name.substr(0, 32), tensor.name.size(), kMaxNameBytes);
  const bool computed =
      tensor.kind == TensorKind::intermediate || tensor.kind == TensorKind::output;
  if (tensor.dims.empty() && !computed)
    reject(tensor, "dims", "none", "1 to {} extents for a tensor of kind {}", kMaxRank,
           enum_name(tensor.kind));
  for (std::int64_t extent : tensor.dims)
    if (extent < 0) reject(tensor, "dims", to_string(tensor.dims), "extents of at least 0");
  if (tensor.dims.empty() && !tensor.strides.empty())
    reject(tensor, "strides", to_string(tensor.strides), "none without dims");
  if (!tensor.strides.empty() && tensor.strides.rank() != tensor.dims.rank())
    reject(tensor, "strides", to_string(tensor.strides), "{} values, one per axis",
           tensor.dims.rank());
  for (std::int64_t stride : tensor.strides)
    if (stride < 0) reject(tensor, "strides", to_string(tensor.strides), "values of at least 0");
  const bool single = tensor.kind == TensorKind::scalar || tensor.kind == TensorKind::constant;
  if (single && element_count(tensor.dims) != 1)
    reject(tensor, "dims", to_string(tensor.dims), "one element for a {}", enum_name(tensor.kind));
  if (is_complex(tensor.dtype) && tensor.kind == TensorKind::constant)
    reject(tensor, "dtype", std::string(to_string(tensor.dtype)), "a real type for a constant");
  if (is_complex(tensor.dtype) && tensor.dims.rank() >= kMaxRank)
    reject(tensor, "dims", to_string(tensor.dims), "at most {} extents for a complex tensor",
           kMaxRank - 1);
  if (tensor.infer_dtype && !computed)
    reject(tensor, "dtype", "none", "a dtype for a tensor of kind {}", enum_name(tensor.kind));
  if (!tensor.dims.empty() && tensor.strides.empty() && !computed)
    tensor.strides = row_major.strides_for(tensor.dims);
  if (single && tensor.ragged_offset != kNoTensor)
    reject(tensor, "ragged_offset", "a tensor", "none for a {}", enum_name(tensor.kind));
  if (tensor.ragged_offset != kNoTensor) check_ragged(graph, tensor);
  if (!tensor.dims.empty()) element_count(tensor.dims);
  if (!tensor.strides.empty()) byte_size(tensor);
}

}  // namespace

void check_tensor(const GraphData& graph, Tensor& tensor) {
  naming_overflow([&] { return fmt::format("tensor '{}'", tensor.name); },
                  [&] { check_facts(graph, tensor); });
}

void check_no_overlap(const Tensor& tensor) {
  const std::int64_t count = element_count(tensor.dims);
  if (count <= 1) return;
  // Nested axes: each stride exceeds the reach of all axes with smaller strides. The batch axis of
  // a ragged tensor is skipped: its offsets are known only at run time.
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;
  for (int axis = tensor.ragged_offset == kNoTensor ? 0 : 1; axis < tensor.dims.rank(); ++axis)
    if (tensor.dims[axis] > 1) axes.emplace_back(tensor.strides[axis], tensor.dims[axis]);
  std::sort(axes.begin(), axes.end());
  std::int64_t reach = 0;
  bool nested = true;
  for (const auto& [stride, extent] : axes) {
    nested = nested && stride > reach;
    reach = checked_add(reach, checked_mul(stride, extent - 1));
  }
  if (nested) return;

  constexpr std::int64_t kCountable = 1 << 20;
  bool distinct = axes.front().first > 0 && reach < kCountable;
  std::vector<bool> taken(static_cast<std::size_t>(distinct ? reach + 1 : 0));
  std::int64_t addressed = 1;
  for (const auto& [stride, extent] : axes) addressed *= extent;
  for (std::int64_t i = 0; distinct && i < addressed; ++i) {
    std::int64_t rest = i, address = 0;
    for (const auto& [stride, extent] : axes) {
      address += rest % extent * stride;
      rest /= extent;
    }
    distinct = !taken[static_cast<std::size_t>(address)];
    taken[static_cast<std::size_t>(address)] = true;
  }
  if (!distinct)
    reject(tensor, "strides", to_string(tensor.strides),
           "strides that map every element of {} to a distinct address", to_string(tensor.dims));
}

std::int64_t byte_size(const Tensor& tensor) {
  if (element_count(tensor.dims) == 0) return 0;
  std::int64_t last = 0;
  for (int axis = 0; axis < tensor.dims.rank(); ++axis) {
    // The batch stride of a ragged tensor is unused; its batches count as packed.
    if (axis == 0 && tensor.ragged_offset != kNoTensor) continue;
    last = checked_add(last, checked_mul(tensor.dims[axis] - 1, tensor.strides[axis]));
  }
  std::int64_t elements = checked_add(last, 1);
  if (tensor.ragged_offset != kNoTensor) elements = checked_mul(elements, tensor.dims[0]);
  return (checked_add(checked_mul(elements, bit_width(tensor.dtype)), 7)) / 8;
}

}  // namespace ashlar

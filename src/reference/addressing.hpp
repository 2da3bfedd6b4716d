// Addresses of tensor elements in memory.
#pragma once

#include <ashlar/graph.hpp>

#include "base/element.hpp"
#include "reference/loops.hpp"

namespace ashlar::reference {

// The offsets of a ragged tensor; `data` is null for a tensor that is dense or stored densely.
struct RaggedRows {
  const void* data = nullptr;
  DType dtype = DType::i64;
  std::int64_t stride = 1;

  static RaggedRows of(const Graph& graph, const Tensor& tensor, const void* data) {
    if (tensor.ragged_offset == kNoTensor || data == nullptr) return {};
    const Tensor& offsets = graph.tensor(tensor.ragged_offset);
    return {data, offsets.dtype, offsets.strides.empty() ? 1 : offsets.strides[0]};
  }
  std::int64_t start(std::int64_t row) const {
    return static_cast<std::int64_t>(load_element(dtype, data, row * stride));
  }
};

// A tensor as real values. A complex tensor gets an additional last axis of extent 2: real part,
// imaginary part.
struct RealShape {
  DType dtype;
  Dims dims, strides;

  explicit RealShape(const Tensor& tensor)
      : dtype(tensor.dtype),
        dims(tensor.dims),
        strides(tensor.strides.empty() ? row_major.strides_for(tensor.dims) : tensor.strides) {
    if (!is_complex(dtype)) return;
    dtype = dtype == DType::complex_f32 ? DType::f32 : DType::f64;
    for (std::int64_t& stride : strides) stride *= 2;
    dims.push_back(2);
    strides.push_back(1);
  }
};

// Strides with 0 for axes of extent 1, so that they broadcast.
inline Dims broadcast_strides(const Dims& dims, const Dims& strides) {
  Dims result = strides;
  for (int axis = 0; axis < dims.rank(); ++axis)
    if (dims[axis] == 1) result[axis] = 0;
  return result;
}

// Dot product of the index with the strides, last axes aligned.
inline std::int64_t offset_of(const Index& index, const Dims& strides) {
  std::int64_t offset = 0;
  for (int axis = strides.rank() - 1, from = index.rank() - 1; axis >= 0 && from >= 0;
       --axis, --from)
    offset += index[from] * strides[axis];
  return offset;
}

// Element offset into a tensor for an index of any tensor it broadcasts to.
class Addressing {
 public:
  static constexpr std::int64_t kOutside = -1;  // past the end of a ragged sequence: not in memory

  Addressing(const Dims& dims, const Dims& strides, RaggedRows rows)
      : strides_(broadcast_strides(dims, strides)), rows_(rows) {
    if (rows_.data != nullptr && dims.rank() > 0) strides_[0] = 0;
  }
  std::int64_t operator()(const Index& index) const {
    const std::int64_t offset = offset_of(index, strides_);
    if (rows_.data == nullptr) return offset;
    const std::int64_t start = rows_.start(index[0]);
    return start + offset < rows_.start(index[0] + 1) ? start + offset : kOutside;
  }

 private:
  Dims strides_;
  RaggedRows rows_;
};

}  // namespace ashlar::reference

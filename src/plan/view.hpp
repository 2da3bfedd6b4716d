// A strided window onto a tensor's memory. Transposes, slices and most reshapes become views, so
// they cost nothing.
#pragma once

#include <ashlar/graph.hpp>
#include <optional>

namespace ashlar {

struct View {
  TensorId tensor = kNoTensor;  // whose memory; kNoTensor: an absent operand
  std::int64_t offset = 0;      // of the first element, in elements from the tensor's start
  DType dtype = f32;
  Dims dims = {};
  Dims strides = {};  // in elements; 0 along broadcast axes
  TensorId ragged_offset = kNoTensor;

  bool present() const { return tensor != kNoTensor; }
  bool operator==(const View&) const = default;
};

View view_of(const Graph& graph, TensorId tensor);

// The same memory seen with the extents `space`: axes of extent 1 get stride 0. The ranks must
// agree.
View broadcast_to(View view, const Dims& space);

// Strides that give `dims` the same row-major sequence of elements as `view`, or nothing when no
// strides can.
std::optional<Dims> reshaped_strides(const View& view, const Dims& dims);

// The operation that undoes a transpose or reshape of a tensor of `source_dims`; nothing for other
// operations.
std::optional<Op> inverse_movement(const Op& op, const Dims& source_dims);

// Whether every element is one of packed row-major memory, in order.
bool is_packed_row_major(const Dims& dims, const Dims& strides);

}  // namespace ashlar

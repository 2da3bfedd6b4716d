// A strided view of a tensor's memory. Transposes, slices and most reshapes become views, so they
// cost nothing.
#pragma once

#include <ashlar/graph.hpp>
#include <optional>

namespace ashlar {

struct View {
  TensorId tensor = kNoTensor;  // owner of the memory; kNoTensor: an absent operand
  std::int64_t offset = 0;      // of the first element, in elements from the tensor's start
  DType dtype = f32;
  Dims dims = {};
  Dims strides = {};  // in elements; 0 along broadcast axes
  TensorId ragged_offset = kNoTensor;

  bool present() const { return tensor != kNoTensor; }
  bool operator==(const View&) const = default;
};

View view_of(const Graph& graph, TensorId tensor);

// The view broadcast to the extents `space`: axes of extent 1 get stride 0. The ranks must be
// equal.
View broadcast_to(View view, const Dims& space);

// Strides that make `dims` a reshape of `view` without a copy; nullopt if there are none.
std::optional<Dims> reshaped_strides(const View& view, const Dims& dims);

// The inverse of a transpose or reshape of a tensor of `source_dims`; nullopt for other operations.
std::optional<Op> inverse_movement(const Op& op, const Dims& source_dims);

// Whether the strides are those of packed row-major memory.
bool is_packed_row_major(const Dims& dims, const Dims& strides);

}  // namespace ashlar

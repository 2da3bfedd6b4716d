// The layout of the projections in the weights of a multi-head attention.
#pragma once

#include <array>

#include "core/tensor_spec.hpp"
#include "legacy/multi_head_attention/attn_descriptor.hpp"

namespace ashlar::cudnn {

// The parts are in the order of docs/ops/multi_head_attention.md, with column-major matrices.
class AttnWeightLayout {
 public:
  explicit AttnWeightLayout(const cudnnAttnStruct& attention);

  // A tensor [heads, rows, columns]; biases have one column. The bias of the output projection,
  // which has no heads, is [1, rows, 1]. All extents are 0 for an absent part.
  struct Part {
    std::int64_t offset = 0;
    Dims dims = {0, 0, 0}, strides = {0, 0, 0};
  };
  const Part& part(cudnnMultiHeadAttnWeightKind_t kind) const {
    return parts_[static_cast<std::size_t>(kind)];
  }
  std::int64_t count() const { return count_; }

  // All weights with row-major matrices, as the operation expects them, and the inverse.
  Value row_major(Graph& graph, Value weights) const;
  Value column_major(Graph& graph, Value weights) const;

 private:
  void append_part(cudnnMultiHeadAttnWeightKind_t kind, const Dims& dims, const Dims& strides);
  Value transposed(Graph& graph, Value weights, bool from_columns) const;
  std::array<Part, CUDNN_ATTN_WKIND_COUNT> parts_;
  std::int64_t count_ = 0;
};

// Bytes of all weights.
std::int64_t weight_bytes(const cudnnAttnStruct& attention);

}  // namespace ashlar::cudnn

// A tensor as descriptors say it: extents, strides, type, and channels in vectors.
#pragma once

#include <ashlar/graph.hpp>
#include <string>

#include "core/plan_cache.hpp"

namespace ashlar::cudnn {

// The logical tensor has `dims`. With vector > 1 axis `vector_axis` lies in memory as vectors of
// that many elements: its extent counts elements and is a multiple of `vector`; strides count
// elements from one vector (or position of another axis) to the next.
struct TensorSpec {
  DType dtype = f32;
  Dims dims = {}, strides = {};
  std::int64_t vector = 1;
  int vector_axis = 1;

  bool operator==(const TensorSpec&) const = default;
};

// Of a tensor with vectors: the shape of memory, whose last axis is the place inside a vector.
struct VectorShape {
  Dims dims, strides;
  Dims to_logical;    // permutation that puts the last axis behind the vectorised one
  Dims from_logical;  // and back
  Dims split;         // logical dims with the vectorised axis as (vectors, place)
};
VectorShape vector_shape(const TensorSpec& spec);

// Bytes for bits in memory whose size is ours to tell. A GPU changes a bit inside a word of 4
// bytes.
constexpr std::size_t whole_words(std::int64_t bytes) {
  return static_cast<std::size_t>((bytes + 3) / 4 * 4);
}

void add_to_key(PlanKey& key, const TensorSpec& spec);

// Adds the tensor as an input; what comes back has the logical dims.
Value add_input(Graph& graph, std::string name, const TensorSpec& spec);
// Makes `value`, which has the logical dims, an output stored as the spec says.
Value add_output(Graph& graph, std::string name, Value value, const TensorSpec& spec);

}  // namespace ashlar::cudnn

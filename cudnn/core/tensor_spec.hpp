// TensorSpec: a tensor as a descriptor defines it: type, extents, strides and vectorised channels
// (NCHW_VECT_C).
#pragma once

#include <ashlar/graph.hpp>
#include <string>

#include "core/plan_cache.hpp"

namespace ashlar::cudnn {

// `dims` are logical extents in elements. With vector > 1, axis `vector_axis` is stored as vectors
// of `vector` elements; its extent is a multiple of `vector`. Strides count elements, from one
// vector to the next along `vector_axis` and from one position to the next along other axes.
struct TensorSpec {
  DType dtype = f32;
  Dims dims = {}, strides = {};
  std::int64_t vector = 1;
  int vector_axis = 1;

  bool operator==(const TensorSpec&) const = default;
};

// The memory shape of a vectorised tensor. Its last axis is the index inside a vector.
struct VectorShape {
  Dims dims, strides;
  Dims to_logical;    // permutation that moves the last axis behind the vectorised one
  Dims from_logical;  // its inverse
  Dims split;         // logical dims with the vectorised axis as (vectors, elements)
};
VectorShape vector_shape(const TensorSpec& spec);

// Rounds the size of a bit mask up to 4-byte words: a GPU updates a bit by an atomic on its word.
constexpr std::size_t round_up_to_words(std::int64_t bytes) {
  return static_cast<std::size_t>((bytes + 3) / 4 * 4);
}

void add_to_key(PlanKey& key, const TensorSpec& spec);

// Adds the tensor as an input and returns a value with the logical dims.
Value add_input(Graph& graph, std::string name, const TensorSpec& spec);
// Makes `value`, which has the logical dims, an output in the layout of `spec`.
Value add_output(Graph& graph, std::string name, Value value, const TensorSpec& spec);

}  // namespace ashlar::cudnn

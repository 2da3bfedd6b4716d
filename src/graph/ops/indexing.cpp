// Definition of gather, scatter.
#include "graph/ops/define.hpp"

namespace ashlar {

template <>
OpTraits define_traits<Gather>() {
  return {.name = "gather", .doc_page = "indexing"};
}

template <>
OpTraits define_traits<Scatter>() {
  return {.name = "scatter", .doc_page = "indexing"};
}

}  // namespace ashlar

// Definition of cross_entropy_forward, cross_entropy_backward.
#include "graph/ops/define.hpp"

namespace ashlar {

template <>
OpTraits define_traits<CrossEntropyForward>() {
  return {.name = "cross_entropy_forward", .doc_page = "cross_entropy"};
}

template <>
OpTraits define_traits<CrossEntropyBackward>() {
  return {.name = "cross_entropy_backward", .doc_page = "cross_entropy"};
}

}  // namespace ashlar

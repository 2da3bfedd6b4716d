// Definition of top_k.
#include "graph/ops/define.hpp"

namespace ashlar {

template <>
OpTraits define_traits<TopK>() {
  return {.name = "top_k", .doc_page = "top_k"};
}

}  // namespace ashlar

// Definition of rope.
#include "graph/ops/define.hpp"

namespace ashlar {

template <>
OpTraits define_traits<Rope>() {
  return {.name = "rope", .doc_page = "rope"};
}

}  // namespace ashlar

// Definition of scan.
#include "graph/ops/define.hpp"

namespace ashlar {

template <>
OpTraits define_traits<Scan>() {
  return {.name = "scan", .doc_page = "scan"};
}

}  // namespace ashlar

// Definition of pad, pad_backward.
#include "graph/ops/define.hpp"

namespace ashlar {

template <>
OpTraits define_traits<Pad>() {
  return {.name = "pad", .doc_page = "padding"};
}

template <>
OpTraits define_traits<PadBackward>() {
  return {.name = "pad_backward", .doc_page = "padding"};
}

}  // namespace ashlar

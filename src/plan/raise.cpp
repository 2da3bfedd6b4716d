// The order of the raising passes.
#include "plan/lowered.hpp"

namespace ashlar {

void raise_patterns(LoweredGraph& lowered, const EngineQuery& engines) {
  simplify_convolutions(lowered);
  raise_dequantization(lowered);
  raise_softmax(lowered);
  raise_norm(lowered);
  raise_attention(lowered, engines);
}

}  // namespace ashlar

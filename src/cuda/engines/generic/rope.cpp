// Rotary position embedding: one thread per element.
#include "cuda/engines/generic/operations.hpp"
#include "cuda/text/rope_text.hpp"
#include "graph/rope_angles.hpp"

namespace ashlar::cuda {

void describe(const Rope& op, GenericKernel& kernel) {
  kernel.text(rope_frequency_table(op));
  kernel.file("rope");
  kernel.constant("kInterleaved", op.pairs == RopePairs::interleaved);
  kernel.constant("kInverse", op.inverse);
  kernel.number("width", op.width);
  kernel.real("scale", rope_scale(op));
  kernel.pass_over_output(Rope::y);
}

}  // namespace ashlar::cuda

// Rotary position embedding: one thread per element.
#include "graph/rope_angles.hpp"

#include "cuda/engines/generic/operations.hpp"

namespace ashlar::cuda {

namespace {

// "__constant__ double kFrequencies[] = {1, 0.1};"
std::string frequency_table(const Rope& op) {
  std::string values;
  for (std::int64_t pair = 0; pair < op.width / 2; ++pair)
    values += fmt::format("{}{:.17g}", pair == 0 ? "" : ", ", rope_frequency(op, pair));
  return fmt::format("__constant__ double kFrequencies[] = {{{}}};\n",
                     values.empty() ? "0" : values);
}

}  // namespace

void describe(const Rope& op, GenericKernel& kernel) {
  kernel.text(frequency_table(op));
  kernel.file("rope");
  kernel.constant("kInterleaved", op.pairs == RopePairs::interleaved);
  kernel.constant("kInverse", op.inverse);
  kernel.number("width", op.width);
  kernel.real("scale", rope_scale(op));
  kernel.pass_over_output(Rope::y);
}

}  // namespace ashlar::cuda

#include "cuda/text/rope_text.hpp"

#include <fmt/format.h>

#include "graph/rope_angles.hpp"

namespace ashlar::cuda {

std::string rope_frequency_table(const Rope& op) {
  std::string values;
  for (std::int64_t pair = 0; pair < op.width / 2; ++pair)
    values += fmt::format("{}{:.17g}", pair == 0 ? "" : ", ", rope_frequency(op, pair));
  return fmt::format("__constant__ double kFrequencies[] = {{{}}};\n",
                     values.empty() ? "0" : values);
}

}  // namespace ashlar::cuda

// Input values for block scaling, sub-byte and complex types.
#include "support/fill_use.hpp"

namespace ashlar::support {

std::optional<double> fill_low_precision(const Use& use, Random& random) {
  if (std::holds_alternative<BlockScaleDequantize>(use.node->op) && use.slot == "scale")
    return uniform(random, 0.25, 2.0);
  return std::nullopt;
}

}  // namespace ashlar::support

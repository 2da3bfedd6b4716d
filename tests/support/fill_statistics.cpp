// Input values for split batch norm and local norms.
#include "support/fill_use.hpp"

namespace ashlar::support {

std::optional<double> fill_statistics(const Use& use, Random& random) {
  if (use.slot == "momentum_tensor") return 0.25;
  if (!std::holds_alternative<BnFinalize>(use.node->op)) return std::nullopt;
  // With |sum| <= 1 and at least 2 elements the variance stays well above 0.
  if (use.slot == "sq_sum") return uniform(random, 1.0, 2.0);
  if (use.slot == "count_tensor") return whole(random, 2, 100);
  return std::nullopt;
}

}  // namespace ashlar::support

#include "support/fill_use.hpp"

namespace ashlar::support {

std::optional<double> fill_low_precision(const Use&, Random&) { return std::nullopt; }

}  // namespace ashlar::support

#include "support/fill_use.hpp"

namespace ashlar::support {

std::optional<double> fill_spatial(const Use&, Random&) { return std::nullopt; }

}  // namespace ashlar::support

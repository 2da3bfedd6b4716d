#include "support/fill_use.hpp"

namespace ashlar::support {

std::optional<double> fill_multi_head(const Use&, Random&) { return std::nullopt; }

}  // namespace ashlar::support

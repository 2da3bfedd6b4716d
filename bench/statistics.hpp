// Medians and geometric means.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace ashlar::bench {

double median(std::vector<double> values);  // of at least one value
// Absent if there are no values.
std::optional<double> geometric_mean(std::span<const double> values);

}  // namespace ashlar::bench

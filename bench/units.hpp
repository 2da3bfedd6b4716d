// Factors to displayed units, and rounding to four significant digits.
#pragma once

#include <fmt/format.h>

#include <cstdlib>

namespace ashlar::bench {

inline constexpr double kMilli = 1e3;  // of seconds
inline constexpr double kGiga = 1e-9;

inline double four_digits(double value) {
  return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr);
}

}  // namespace ashlar::bench

// Factors to the units that are shown.
#pragma once

namespace ashlar::bench {

inline constexpr double kMilli = 1e3;  // of seconds
inline constexpr double kGiga = 1e-9;

}  // namespace ashlar::bench

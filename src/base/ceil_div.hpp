// Integer division and rounding upwards.
#pragma once

#include <cstdint>

namespace ashlar {

// a / b rounded up; requires a >= 0 and b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
// a rounded up to a multiple of b.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

}  // namespace ashlar

// How many pieces of one size something takes.
#pragma once

#include <cstdint>

namespace ashlar {

// a / b rounded up, of a >= 0 and b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
// The next multiple of b.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

}  // namespace ashlar

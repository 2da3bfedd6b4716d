// How many pieces of one size something takes.
#pragma once

#include <cstdint>

namespace ashlar {

// a / b rounded up, of a >= 0 and b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace ashlar

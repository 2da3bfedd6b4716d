// Arithmetic on sizes that reports overflow instead of wrapping.
#pragma once

#include <cstdint>

#include "base/fail.hpp"

namespace ashlar {

inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_mul_overflow(a, b, &result))
    fail(ErrorCode::size_overflow, "size overflow: got {} * {}, expected at most 2^63 - 1", a, b);
  return result;
}

inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_add_overflow(a, b, &result))
    fail(ErrorCode::size_overflow, "size overflow: got {} + {}, expected at most 2^63 - 1", a, b);
  return result;
}

// Runs `body` and prefixes the message of a size overflow in it with whose().
template <class Whose, class Body>
decltype(auto) naming_overflow(const Whose& whose, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::size_overflow) throw;
    fail(ErrorCode::size_overflow, "{}: {}", whose(), error.what());
  }
}

}  // namespace ashlar

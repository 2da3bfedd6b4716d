// The SIMD target (instruction set) that kernels are dispatched to.
#pragma once

#include <cstdint>
#include <string_view>

namespace ashlar::cpu {

struct Target {
  std::string_view name;  // "AVX-512"
  std::int64_t vector_bytes;
};

// The best target of this CPU, capped by ASHLAR_TARGET=avx512|avx2|sse4|ssse3|portable. The first
// call decides for the whole process and must precede the first kernel dispatch; detect_cpu() calls
// it. Throws Error(invalid_argument) for any other name.
const Target& target();

}  // namespace ashlar::cpu

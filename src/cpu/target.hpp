// The instruction set the kernels are chosen for.
#pragma once

#include <cstdint>
#include <string_view>

namespace ashlar::cpu {

struct Target {
  std::string_view name;  // "AVX-512"
  std::int64_t vector_bytes;
};

// The best this processor has; with ASHLAR_TARGET=avx512|avx2|sse4|ssse3|portable no better than
// that. The first call decides for the life of the process, and must come before any kernel is
// asked for: detect_cpu() makes it. Throws Error(invalid_argument) for another name.
const Target& target();

}  // namespace ashlar::cpu

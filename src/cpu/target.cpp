// Chooses the SIMD target from the CPU and ASHLAR_TARGET.
#include "cpu/target.hpp"

#include <hwy/targets.h>

#include <array>

#include "base/fail.hpp"
#include "base/settings.hpp"

namespace ashlar::cpu {

namespace {

struct Level {
  std::string_view setting;
  std::int64_t bits;  // Highway's bits; a better target has a lower bit
  Target target;
};

#if HWY_ARCH_X86
constexpr std::array kLevels = {
    Level{"avx512", HWY_AVX3 | HWY_AVX3_DL, {"AVX-512", 64}},
    Level{"avx2", HWY_AVX2, {"AVX2", 32}},
    Level{"sse4", HWY_SSE4, {"SSE4", 16}},
    Level{"ssse3", HWY_SSSE3, {"SSSE3", 16}},
    Level{"portable", HWY_EMU128 | HWY_SCALAR, {"portable code", 16}},
};
#else
constexpr std::array kLevels = {
    Level{"portable", HWY_EMU128 | HWY_SCALAR, {"128-bit vectors", 16}},
};
#endif

// Disables all targets better than the requested one.
void limit_to(std::string_view setting) {
  std::int64_t better = 0;
  for (const Level& level : kLevels) {
    if (level.setting == setting) return hwy::DisableTargets(better);
    better |= level.bits;
  }
  fail(ErrorCode::invalid_argument,
       "ASHLAR_TARGET: got '{}', expected avx512, avx2, sse4, ssse3 or portable", setting);
}

Target choose() {
  if (!settings().target.empty()) limit_to(settings().target);
  const std::int64_t supported = hwy::SupportedTargets();
  for (const Level& level : kLevels)
    if ((level.bits & supported) != 0) return level.target;
  return kLevels.back().target;
}

}  // namespace

const Target& target() {
  static const Target chosen = choose();
  return chosen;
}

}  // namespace ashlar::cpu

// The three functions of Highway's library that dispatch calls. Defined here, they make Ashlar need
// Highway's headers only: distributions ship the library shared, and libcudnn.so.9 may bring
// nothing along.
#include <hwy/targets.h>

#include <atomic>

namespace hwy {

namespace {

std::atomic<std::int64_t> disabled{0};
ChosenTarget chosen;

#if HWY_ARCH_X86
// Highway's targets are sets of instructions that processors have together; the builtins also ask
// the operating system whether it saves the registers.
std::int64_t detect() {
  __builtin_cpu_init();
  const auto has_ssse3 = __builtin_cpu_supports("ssse3");
  const auto has_sse4 = has_ssse3 && __builtin_cpu_supports("sse4.1") &&
                        __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("aes") &&
                        __builtin_cpu_supports("pclmul");
  const auto has_avx2 = has_sse4 && __builtin_cpu_supports("avx2") &&
                        __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c") &&
                        __builtin_cpu_supports("lzcnt");
  const auto has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
  const auto has_dl =
      has_avx512 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi") &&
      __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bitalg") &&
      __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("gfni") &&
      __builtin_cpu_supports("vaes") && __builtin_cpu_supports("vpclmulqdq");
  return (has_ssse3 ? HWY_SSSE3 : 0) | (has_sse4 ? HWY_SSE4 : 0) | (has_avx2 ? HWY_AVX2 : 0) |
         (has_avx512 ? HWY_AVX3 : 0) | (has_dl ? HWY_AVX3_DL : 0);
}
#else
// What the compiler may use anyway.
std::int64_t detect() { return HWY_ENABLED_BASELINE; }
#endif

// Always there: what the compiler may use without asking, and plain code.
constexpr std::int64_t kBaseline = HWY_ENABLED_BASELINE | HWY_EMU128 | HWY_SCALAR;

}  // namespace

std::int64_t SupportedTargets() {
  static const std::int64_t detected = detect() | kBaseline;
  const std::int64_t allowed = detected & ~disabled.load();
  return allowed != 0 ? allowed : HWY_STATIC_TARGET;
}

void DisableTargets(std::int64_t targets) {
  disabled.store(targets);
  GetChosenTarget().DeInit();  // chosen again at the next dispatch
}

ChosenTarget& GetChosenTarget() { return chosen; }

}  // namespace hwy

// Highway's run-time dispatch: the three functions of its library that kernels call. Defining them
// here leaves Highway a header-only dependency: distributions ship a shared library, and
// libcudnn.so.9 must not add one.
#include <hwy/targets.h>

#include <atomic>

namespace hwy {

namespace {

std::atomic<std::int64_t> disabled{0};
ChosenTarget chosen;

#if HWY_ARCH_X86
// Each Highway target is a set of instruction-set extensions. The builtins also check that the
// operating system saves the registers.
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
// The compiler's baseline target.
std::int64_t detect() { return HWY_ENABLED_BASELINE; }
#endif

// Always available: the compiler's baseline and portable code.
constexpr std::int64_t kBaseline = HWY_ENABLED_BASELINE | HWY_EMU128 | HWY_SCALAR;

}  // namespace

std::int64_t SupportedTargets() {
  static const std::int64_t detected = detect() | kBaseline;
  const std::int64_t allowed = detected & ~disabled.load();
  return allowed != 0 ? allowed : HWY_STATIC_TARGET;
}

void DisableTargets(std::int64_t targets) {
  disabled.store(targets);
  GetChosenTarget().DeInit();  // the next dispatch chooses again
}

ChosenTarget& GetChosenTarget() { return chosen; }

}  // namespace hwy

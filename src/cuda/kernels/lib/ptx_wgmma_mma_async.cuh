// wgmma.mma_async: D (64 x WGMMA_N) += A B', A 64 x k, B WGMMA_N x k. The generated header selects
// the instruction:
//   WGMMA_N                      columns of D
//   WGMMA_K                      "k16"
//   WGMMA_ACCUM_TYPE, WGMMA_A, WGMMA_B  f32, bf16, bf16
//   WGMMA_SCALES                 ", 1, 1", or "" for integers
//   WGMMA_MAJOR_A, WGMMA_MAJOR_B ", 1" for an M/N-major operand in shared memory, ", 0" for K-major
//                                ones; "" for types of other than 16 bits, which are K-major.
//                                kTransposeA and kTransposeB say the same.
//   WGMMA_REGISTER               "f", or "r" for integers
// and typedef Accum, float or int. Thread t of the warpgroup has rows 16 (t / 32) + t % 32 / 4 and
// 8 below, and of every 8 columns 2 (t % 4) and the next: accum[4 j + 2 h + i] is row + 8 h, column
// 8 j + 2 (t % 4) + i.
#pragma once

#include "lib/ptx_wgmma.cuh"

#define WGMMA_TEXT_OF(x) #x
#define WGMMA_TEXT(x) WGMMA_TEXT_OF(x)
#define WGMMA_LIST0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WGMMA_LIST1 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_LIST2 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WGMMA_LIST3 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WGMMA_LIST4 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define WGMMA_LIST5 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WGMMA_LIST6                                                                               \
  "%96, %97, %98, %99, %100, %101, %102, %103, "                                                  \
  "%104, %105, %106, %107, %108, %109, %110, %111"
#define WGMMA_LIST7                                                                               \
  "%112, %113, %114, %115, %116, %117, %118, %119, "                                              \
  "%120, %121, %122, %123, %124, %125, %126, %127"
#define WGMMA_4(i)                                                \
  "+" WGMMA_REGISTER(accum[i]), "+" WGMMA_REGISTER(accum[i + 1]), \
      "+" WGMMA_REGISTER(accum[i + 2]), "+" WGMMA_REGISTER(accum[i + 3])
#define WGMMA_16(i) WGMMA_4(i), WGMMA_4(i + 4), WGMMA_4(i + 8), WGMMA_4(i + 12)
#if WGMMA_N == 8
#define WGMMA_LIST "%0, %1, %2, %3"
#define WGMMA_ACCUM WGMMA_4(0)
#define WGMMA_IN0 "%4"
#define WGMMA_IN1 "%5"
#define WGMMA_IN2 "%6"
#define WGMMA_IN3 "%7"
#define WGMMA_IN4 "%8"
#define WGMMA_IN5 "%9"
#elif WGMMA_N == 16
#define WGMMA_LIST "%0, %1, %2, %3, %4, %5, %6, %7"
#define WGMMA_ACCUM WGMMA_4(0), WGMMA_4(4)
#define WGMMA_IN0 "%8"
#define WGMMA_IN1 "%9"
#define WGMMA_IN2 "%10"
#define WGMMA_IN3 "%11"
#define WGMMA_IN4 "%12"
#define WGMMA_IN5 "%13"
#elif WGMMA_N == 24
#define WGMMA_LIST "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11"
#define WGMMA_ACCUM WGMMA_4(0), WGMMA_4(4), WGMMA_4(8)
#define WGMMA_IN0 "%12"
#define WGMMA_IN1 "%13"
#define WGMMA_IN2 "%14"
#define WGMMA_IN3 "%15"
#define WGMMA_IN4 "%16"
#define WGMMA_IN5 "%17"
#elif WGMMA_N == 32
#define WGMMA_LIST WGMMA_LIST0
#define WGMMA_ACCUM WGMMA_16(0)
#define WGMMA_IN0 "%16"
#define WGMMA_IN1 "%17"
#define WGMMA_IN2 "%18"
#define WGMMA_IN3 "%19"
#define WGMMA_IN4 "%20"
#define WGMMA_IN5 "%21"
#elif WGMMA_N == 48
#define WGMMA_LIST WGMMA_LIST0 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define WGMMA_ACCUM WGMMA_16(0), WGMMA_4(16), WGMMA_4(20)
#define WGMMA_IN0 "%24"
#define WGMMA_IN1 "%25"
#define WGMMA_IN2 "%26"
#define WGMMA_IN3 "%27"
#define WGMMA_IN4 "%28"
#define WGMMA_IN5 "%29"
#elif WGMMA_N == 64
#define WGMMA_LIST WGMMA_LIST0 ", " WGMMA_LIST1
#define WGMMA_ACCUM WGMMA_16(0), WGMMA_16(16)
#define WGMMA_IN0 "%32"
#define WGMMA_IN1 "%33"
#define WGMMA_IN2 "%34"
#define WGMMA_IN3 "%35"
#define WGMMA_IN4 "%36"
#define WGMMA_IN5 "%37"
#elif WGMMA_N == 96
#define WGMMA_LIST WGMMA_LIST0 ", " WGMMA_LIST1 ", " WGMMA_LIST2
#define WGMMA_ACCUM WGMMA_16(0), WGMMA_16(16), WGMMA_16(32)
#define WGMMA_IN0 "%48"
#define WGMMA_IN1 "%49"
#define WGMMA_IN2 "%50"
#define WGMMA_IN3 "%51"
#define WGMMA_IN4 "%52"
#define WGMMA_IN5 "%53"
#elif WGMMA_N == 128
#define WGMMA_LIST WGMMA_LIST0 ", " WGMMA_LIST1 ", " WGMMA_LIST2 ", " WGMMA_LIST3
#define WGMMA_ACCUM WGMMA_16(0), WGMMA_16(16), WGMMA_16(32), WGMMA_16(48)
#define WGMMA_IN0 "%64"
#define WGMMA_IN1 "%65"
#define WGMMA_IN2 "%66"
#define WGMMA_IN3 "%67"
#define WGMMA_IN4 "%68"
#define WGMMA_IN5 "%69"
#elif WGMMA_N == 160
#define WGMMA_LIST WGMMA_LIST0 ", " WGMMA_LIST1 ", " WGMMA_LIST2 ", " WGMMA_LIST3 ", " WGMMA_LIST4
#define WGMMA_ACCUM WGMMA_16(0), WGMMA_16(16), WGMMA_16(32), WGMMA_16(48), WGMMA_16(64)
#define WGMMA_IN0 "%80"
#define WGMMA_IN1 "%81"
#define WGMMA_IN2 "%82"
#define WGMMA_IN3 "%83"
#define WGMMA_IN4 "%84"
#define WGMMA_IN5 "%85"
#elif WGMMA_N == 192
#define WGMMA_LIST                                                                                \
  WGMMA_LIST0 ", " WGMMA_LIST1 ", " WGMMA_LIST2 ", " WGMMA_LIST3 ", "                             \
  WGMMA_LIST4 ", " WGMMA_LIST5
#define WGMMA_ACCUM \
  WGMMA_16(0), WGMMA_16(16), WGMMA_16(32), WGMMA_16(48), WGMMA_16(64), WGMMA_16(80)
#define WGMMA_IN0 "%96"
#define WGMMA_IN1 "%97"
#define WGMMA_IN2 "%98"
#define WGMMA_IN3 "%99"
#define WGMMA_IN4 "%100"
#define WGMMA_IN5 "%101"
#elif WGMMA_N == 224
#define WGMMA_LIST                                                                                \
  WGMMA_LIST0 ", " WGMMA_LIST1 ", " WGMMA_LIST2 ", " WGMMA_LIST3 ", "                             \
  WGMMA_LIST4 ", " WGMMA_LIST5 ", " WGMMA_LIST6
#define WGMMA_ACCUM                                                                                \
  WGMMA_16(0), WGMMA_16(16), WGMMA_16(32), WGMMA_16(48),                                          \
  WGMMA_16(64), WGMMA_16(80), WGMMA_16(96)
#define WGMMA_IN0 "%112"
#define WGMMA_IN1 "%113"
#define WGMMA_IN2 "%114"
#define WGMMA_IN3 "%115"
#define WGMMA_IN4 "%116"
#define WGMMA_IN5 "%117"
#elif WGMMA_N == 256
#define WGMMA_LIST                                                                                \
  WGMMA_LIST0 ", " WGMMA_LIST1 ", " WGMMA_LIST2 ", " WGMMA_LIST3 ", "                             \
  WGMMA_LIST4 ", " WGMMA_LIST5 ", " WGMMA_LIST6 ", " WGMMA_LIST7
#define WGMMA_ACCUM                                                                                \
  WGMMA_16(0), WGMMA_16(16), WGMMA_16(32), WGMMA_16(48),                                          \
  WGMMA_16(64), WGMMA_16(80), WGMMA_16(96), WGMMA_16(112)
#define WGMMA_IN0 "%128"
#define WGMMA_IN1 "%129"
#define WGMMA_IN2 "%130"
#define WGMMA_IN3 "%131"
#define WGMMA_IN4 "%132"
#define WGMMA_IN5 "%133"
#endif

// Both operands in shared memory. `accumulate`: false overwrites the accumulators.
__device__ inline void multiply(Accum (&accum)[WGMMA_N / 2], uint64 a, uint64 b, bool accumulate) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile(
      "{\n.reg .pred keeps;\n"
      "setp.ne.b32 keeps, " WGMMA_IN2
      ", 0;\n"
      "wgmma.mma_async.sync.aligned.m64n" WGMMA_TEXT(WGMMA_N) WGMMA_K
      "." WGMMA_TEXT(WGMMA_ACCUM_TYPE) "." WGMMA_TEXT(WGMMA_A) "." WGMMA_TEXT(WGMMA_B)
      " {" WGMMA_LIST "}, " WGMMA_IN0 ", " WGMMA_IN1
      ", keeps" WGMMA_SCALES WGMMA_MAJOR_A WGMMA_MAJOR_B ";\n}"
      : WGMMA_ACCUM
      : "l"(a), "l"(b), "r"((int)accumulate)
      : "memory");
#elif !defined(__CUDA_ARCH__)
  emulated_wgmma(EmulatedMmaType::WGMMA_A, EmulatedMmaType::WGMMA_B, accum, WGMMA_N, a, b,
                 kTransposeA, kTransposeB, accumulate);
#endif
}
// A in registers: the fragment of mma.m16n8k16 for the warp's 16 rows (four registers for every
// type).
__device__ inline void multiply(Accum (&accum)[WGMMA_N / 2], const uint32 (&a)[4], uint64 b,
                                bool accumulate) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile(
      "{\n.reg .pred keeps;\n"
      "setp.ne.b32 keeps, " WGMMA_IN5
      ", 0;\n"
      "wgmma.mma_async.sync.aligned.m64n" WGMMA_TEXT(WGMMA_N) WGMMA_K
      "." WGMMA_TEXT(WGMMA_ACCUM_TYPE) "." WGMMA_TEXT(WGMMA_A) "." WGMMA_TEXT(WGMMA_B)
      " {" WGMMA_LIST "}, {" WGMMA_IN0 ", " WGMMA_IN1 ", " WGMMA_IN2 ", " WGMMA_IN3 "}, " WGMMA_IN4
      ", keeps" WGMMA_SCALES WGMMA_MAJOR_B ";\n}"
      : WGMMA_ACCUM
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)accumulate)
      : "memory");
#elif !defined(__CUDA_ARCH__)
  emulated_wgmma(EmulatedMmaType::WGMMA_A, EmulatedMmaType::WGMMA_B, accum, WGMMA_N, a, b,
                 kTransposeB, accumulate);
#endif
}

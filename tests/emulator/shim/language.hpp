// CUDA C++ for a host compiler: qualifiers, built-in variables and vector types. All of it is in
// the unnamed namespace that also holds the kernel's text, so that overloads resolve together.
#pragma once

#include "interface.hpp"

#define __device__
#define __host__
#define __global__
#define __constant__
#define __grid_constant__
#define __managed__
#define __forceinline__
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
// The .bss section of an image is its static shared memory; CTAs that run concurrently swap it.
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
// The standard form is not allowed between `__shared__` and the type.
#define alignas(n) __attribute__((aligned(n)))

typedef __SIZE_TYPE__ size_t;
extern "C" int printf(const char* format, ...);

namespace {

__attribute__((section("emulated_state"))) emulated::State emulated_state = {};
__attribute__((section("emulated_state"))) emulated::ClusterState emulated_cluster_state = {};
__attribute__((section("emulated_state")))
emulated::TensorState emulated_tensor_state = {sizeof(emulated::TensorState)};

typedef emulated::Triple uint3;
struct dim3 : emulated::Triple {
  dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : Triple{a, b, c} {}
};
constexpr uint3& threadIdx = emulated_state.thread;
constexpr uint3& blockIdx = emulated_state.block;
constexpr uint3& blockDim = emulated_state.block_dim;
constexpr uint3& gridDim = emulated_state.grid_dim;
constexpr int warpSize = 32;

inline unsigned char* emulated_shared_memory() { return emulated_state.shared_memory; }
inline unsigned char* shared_memory() { return emulated_state.shared_memory; }

#define EMULATED_VECTORS(type, name, align1, align2, align4)                  \
  struct alignas(align1) name##1 {                                            \
    type x;                                                                   \
  };                                                                          \
  struct alignas(align2) name##2 {                                            \
    type x, y;                                                                \
  };                                                                          \
  struct name##3 {                                                            \
    type x, y, z;                                                             \
  };                                                                          \
  struct alignas(align4) name##4 {                                            \
    type x, y, z, w;                                                          \
  };                                                                          \
  inline name##1 make_##name##1(type x) { return {x}; }                       \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
EMULATED_VECTORS(signed char, char, 1, 2, 4)
EMULATED_VECTORS(unsigned char, uchar, 1, 2, 4)
EMULATED_VECTORS(short, short, 2, 4, 8)
EMULATED_VECTORS(unsigned short, ushort, 2, 4, 8)
EMULATED_VECTORS(int, int, 4, 8, 16)
EMULATED_VECTORS(float, float, 4, 8, 16)
EMULATED_VECTORS(long long, longlong, 8, 16, 16)
EMULATED_VECTORS(unsigned long long, ulonglong, 8, 16, 16)
EMULATED_VECTORS(double, double, 8, 16, 16)
struct alignas(4) uint1 {
  unsigned x;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline uint1 make_uint1(unsigned x) { return {x}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
#undef EMULATED_VECTORS

// --- how the driver looks up and calls kernels

template <class T>
struct EmulatedPlain {
  typedef T Type;
};
template <class T>
struct EmulatedPlain<T&> {
  typedef T Type;
};
template <class T>
struct EmulatedPlain<const T> {
  typedef T Type;
};
template <class T>
struct EmulatedPlain<const T&> {
  typedef T Type;
};

template <int... kIndex>
struct EmulatedIndices {};
template <int kCount, int... kIndex>
struct EmulatedCount : EmulatedCount<kCount - 1, kCount - 1, kIndex...> {};
template <int... kIndex>
struct EmulatedCount<0, kIndex...> {
  typedef EmulatedIndices<kIndex...> Type;
};

template <auto kKernel>
struct EmulatedCall;
template <class... P, void (*kKernel)(P...)>
struct EmulatedCall<kKernel> {
  static void run(void* const* parameters) {
    run(parameters, typename EmulatedCount<sizeof...(P)>::Type());
  }
  template <int... kIndex>
  static void run(void* const* parameters, EmulatedIndices<kIndex...>) {
    kKernel(*static_cast<typename EmulatedPlain<P>::Type*>(parameters[kIndex])...);
  }
  static constexpr emulated::Kernel describe(int most_threads) {
    return {&run, most_threads, sizeof...(P), {sizeof(typename EmulatedPlain<P>::Type)...}};
  }
};

}  // namespace

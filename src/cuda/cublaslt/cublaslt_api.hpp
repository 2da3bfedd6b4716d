// The part of NVIDIA's cuBLASLt that is used here, declared from its documentation: the library is
// opened at run time, where it can be found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

using LtHandle = struct LtObject*;
using LtLayout = struct LtLayoutObject*;
using LtPreference = struct LtPreferenceObject*;
// Opaque storage of a matmul descriptor, which is created on the stack for each call.
using LtMatmul = std::array<std::uint64_t, 32>;
using LtAlgorithm = std::array<std::uint64_t, 8>;

enum class LtType : int { f32 = 0, f64 = 1, f16 = 2, bf16 = 14 };
enum class LtCompute : int { f32 = 68, f64 = 70 };
enum class LtLayoutAttribute : int { batch_count = 5, batch_stride = 6 };
enum class LtMatmulAttribute : int { transpose_a = 3, transpose_b = 4, epilogue = 7, bias = 8 };
enum class LtPreferenceAttribute : int {
  workspace_bytes = 1,
  reduction_schemes = 3,  // a mask; 2: split-K partials in the compute type
  alignment_a = 5,
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8,
};
enum class LtEpilogue : int {
  none = 1,
  relu = 2,
  bias = 4,
  relu_bias = 6,
  gelu = 32,
  gelu_bias = 36
};

struct LtHeuristic {
  LtAlgorithm algorithm;
  std::size_t workspace_bytes;
  int state;  // 0: usable
  float waves;
  std::array<int, 4> reserved;
};

// Every function returns 0 for success.
struct CublasLtApi {
  int (*create)(LtHandle* handle);
  const char* (*error_text)(int error);
  std::size_t (*version)();
  int (*create_layout)(LtLayout* layout, LtType type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t column_distance);
  int (*destroy_layout)(LtLayout layout);
  int (*set_layout)(LtLayout layout, LtLayoutAttribute which, const void* value, std::size_t bytes);
  int (*init_product)(LtMatmul* product, std::size_t bytes, LtCompute compute, LtType scale);
  int (*set_product)(LtMatmul* product, LtMatmulAttribute which, const void* value,
                     std::size_t bytes);
  int (*create_preference)(LtPreference* preference);
  int (*destroy_preference)(LtPreference preference);
  int (*set_preference)(LtPreference preference, LtPreferenceAttribute which, const void* value,
                        std::size_t bytes);
  int (*choose)(LtHandle handle, const LtMatmul* product, LtLayout a, LtLayout b, LtLayout c,
                LtLayout d, LtPreference preference, int wanted, LtHeuristic* found, int* count);
  int (*multiply)(LtHandle handle, const LtMatmul* product, const void* alpha, const void* a,
                  LtLayout a_layout, const void* b, LtLayout b_layout, const void* beta,
                  const void* c, LtLayout c_layout, void* d, LtLayout d_layout,
                  const LtAlgorithm* algorithm, void* workspace, std::size_t workspace_bytes,
                  StreamHandle stream);
};

struct CublasLt {
  const CublasLtApi* api = nullptr;  // null: unavailable,
  std::string reason;                // for this reason
  std::string path;
};
// Searched on first use: ASHLAR_CUBLASLT (a file, or "off"), then as find_library() does. Only on
// machines with a GPU.
const CublasLt& cublaslt();

// Throws Error(device); `what` is the operation that failed.
void check_lt(int error, const char* what);

}  // namespace ashlar::cuda

// cuBLASLt, loaded from a path. Declares the part of its API that the peer uses, from its
// documentation.
#pragma once

#include <array>
#include <ashlar/device.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace ashlar::bench::cublaslt {

using Handle = struct HandleObject*;
using Layout = struct LayoutObject*;
using MatmulDesc = struct MatmulDescObject*;
using Preference = struct PreferenceObject*;
using Algorithm = std::array<std::uint64_t, 8>;

enum class Type : int { f32 = 0, f64 = 1, f16 = 2, bf16 = 14, e4m3 = 28, e5m2 = 29 };
enum class Compute : int { f32 = 68, f64 = 70, tf32 = 77 };
enum class Epilogue : int {
  none = 1,
  relu = 2,
  bias = 4,
  relu_bias = 6,
  gelu = 32,
  gelu_bias = 36
};
enum class LayoutAttribute : int { batch_count = 5, batch_stride = 6 };
enum class MatmulAttribute : int {
  transpose_a = 3,
  transpose_b = 4,
  epilogue = 7,
  bias = 8,
  scale_a = 17,  // pointers on the device
  scale_b = 18,
  bias_type = 26,
};
enum class PreferenceAttribute : int { workspace_bytes = 1 };

// cublasLtMatmulHeuristicResult_t.
struct Proposal {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  int state;  // 0: can be used
  float waves;
  std::array<int, 4> reserved;
};

// Every function returns 0 for success.
struct Functions {
  int (*create)(Handle* handle) = nullptr;
  int (*destroy)(Handle handle) = nullptr;
  const char* (*error_text)(int error) = nullptr;
  std::size_t (*version)() = nullptr;
  int (*create_layout)(Layout* layout, Type type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t leading_dimension) = nullptr;
  int (*destroy_layout)(Layout layout) = nullptr;
  int (*set_layout)(Layout layout, LayoutAttribute which, const void* value,
                    std::size_t bytes) = nullptr;
  int (*create_matmul)(MatmulDesc* matmul, Compute compute, Type scale) = nullptr;
  int (*destroy_matmul)(MatmulDesc matmul) = nullptr;
  int (*set_matmul)(MatmulDesc matmul, MatmulAttribute which, const void* value,
                    std::size_t bytes) = nullptr;
  int (*create_preference)(Preference* preference) = nullptr;
  int (*destroy_preference)(Preference preference) = nullptr;
  int (*set_preference)(Preference preference, PreferenceAttribute which, const void* value,
                        std::size_t bytes) = nullptr;
  int (*propose)(Handle handle, MatmulDesc matmul, Layout a, Layout b, Layout c, Layout d,
                 Preference preference, int wanted, Proposal* found, int* count) = nullptr;
  int (*matmul)(Handle handle, MatmulDesc matmul, const void* alpha, const void* a, Layout a_layout,
                const void* b, Layout b_layout, const void* beta, const void* c, Layout c_layout,
                void* d, Layout d_layout, const Algorithm* algorithm, void* workspace,
                std::size_t workspace_bytes, void* stream) = nullptr;
};

// The library's reason for refusing a call or a graph.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Library {
 public:
  // Throws Error(io) if it cannot be opened, Error(device) if creating a handle fails.
  Library(const std::string& path, const Device& device);
  Library(const Functions& functions, const Device& device);  // for tests: functions in the program
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Functions& call() const { return functions_; }
  Handle handle() const { return handle_; }
  const Device& device() const { return device_; }
  std::string version() const;                    // "cuBLASLt 13.1.0"
  void check(int error, const char* what) const;  // throws Refused with the library's message

 private:
  void start();
  struct Close {
    void operator()(void* opened) const;
  };
  std::unique_ptr<void, Close> opened_;
  Functions functions_;
  Device device_;
  Handle handle_ = nullptr;
};

}  // namespace ashlar::bench::cublaslt

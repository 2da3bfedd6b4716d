// GEMM, blocked for caches and threads: C = A B. The caller provides rows of A and B and consumes
// rows of C, so that matmul and convolution share this code.
#pragma once

#include <ashlar/device.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/kernels/gemm_micro_kernel.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

// C[batch] is m x n, A is m x k, B is k x n.
struct GemmShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};

template <class T>
using GemmKernel = GemmMicroKernel<T>;
template <class T>
const GemmKernel<T>& gemm_kernel() {
  return gemm_micro_kernel<T>();
}

// An operand to be packed: A as m x k, or B as n x k ("index" is m or n).
template <class T>
class GemmOperand {
 public:
  virtual ~GemmOperand() = default;
  // Whether row() runs along K at a fixed index, or along the index at a fixed k.
  virtual bool along_k() const = 0;
  // Broadcast over the batch: packed once.
  virtual bool same_for_all_batches() const { return false; }
  virtual void row(std::int64_t batch, std::int64_t fixed, std::int64_t start, std::int64_t count,
                   T* destination) const = 0;
  // row() without a copy if memory already holds the values as T: returns that memory, or `buffer`,
  // filled.
  virtual const T* view(std::int64_t batch, std::int64_t fixed, std::int64_t start,
                        std::int64_t count, T* buffer) const {
    row(batch, fixed, start, count, buffer);
    return buffer;
  }
  // Stride in elements from row `fixed` to `fixed + 1` if view() never copies, else 0.
  virtual std::int64_t row_stride() const { return 0; }
};

// Destination for accumulators that bypass GemmSink::row: a block of C in memory, with post-ops.
template <class T>
struct GemmDestination {
  T* c = nullptr;
  std::int64_t c_row = 0;
  GemmPostOps<T> post_ops;
  bool has_post_ops = false;
};

// Consumes finished rows of C: columns [n, n + count) of row m. May modify the values.
template <class T>
class GemmSink {
 public:
  virtual ~GemmSink() = default;
  virtual void row(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t count,
                   T* values) const = 0;
  // Returns true and fills `dest` for the block that starts at (m, n) if accumulators can be
  // stored directly to memory.
  virtual bool dest(std::int64_t batch, std::int64_t m, std::int64_t n,
                    GemmDestination<T>& dest) const {
    static_cast<void>(batch + m + n), static_cast<void>(dest);
    return false;
  }
};

// Cache and thread blocking of a GEMM (MC, NC, KC), in elements.
struct GemmBlocks {
  std::int64_t rows = 0, columns = 0, k = 0;  // MC, NC, KC: the block of C of one thread
  std::int64_t packed = 0;                    // elements of B packed at once, shared by all threads
  std::int64_t splits = 1;                    // split-K factor; partials are added in a fixed order
  std::int64_t threads = 0;  // threads with scratch; 0: small blocks on the stack, no scratch

  // Conversion to and from the knobs of a Config.
  void to_knobs(Config& config) const;
  static GemmBlocks from_knobs(const Config& config);
};

// Blocking for a device, and the one that needs no scratch. `in_place`: C is stored directly
// (GemmSink::dest), so that no block of C is buffered.
GemmBlocks choose_blocks(const GemmShape& shape, const DeviceProps& device,
                         std::int64_t element_bytes, bool may_split, bool in_place = true);
GemmBlocks stack_blocks();
std::int64_t gemm_scratch_bytes(const GemmShape& shape, const GemmBlocks& blocks,
                                std::int64_t element_bytes);
// The smallest shape that covers all of these: its blocking and scratch serve each of them.
GemmShape covering(std::span<const GemmShape> shapes);
// Configurations of an engine that runs these GEMMs in sequence, cheapest first. `extra` is added
// to their cost.
std::vector<Config> gemm_configs(std::span<const GemmShape> shapes, const DeviceProps& device,
                                 DType precision, const Cost& extra, bool may_split,
                                 bool in_place = true);

// B packed ahead of time: panels of kernel.columns columns over all of K, consecutive, for every
// distinct batch.
template <class T>
std::int64_t packed_b_elements(const GemmShape& shape, const GemmOperand<T>& b) {
  const std::int64_t batches = b.same_for_all_batches() ? 1 : shape.batch;
  return batches * round_up(shape.n, gemm_micro_kernel<T>().columns) * shape.k;
}
template <class T>
void pack_b(const GemmShape& shape, const GemmOperand<T>& b, T* packed);

// T is float or double. `scratch` holds gemm_scratch_bytes() bytes, aligned to kWorkspaceAlignment.
// `packed_b`: result of pack_b, or null.
template <class T>
void gemm(const GemmShape& shape, const GemmBlocks& blocks, const GemmKernel<T>& kernel,
          const GemmOperand<T>& a, const GemmOperand<T>& b, const GemmSink<T>& sink, T* scratch,
          const T* packed_b = nullptr);

}  // namespace ashlar::cpu

// Matrix products, blocked for caches and threads: C = A B with operands and results that are rows
// made and taken by the caller. Matmul and convolution are this with different rows.
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

// A panel operand: A seen as m x k, or B seen as n x k ("index" is m or n, "depth" is k).
template <class T>
class GemmOperand {
 public:
  virtual ~GemmOperand() = default;
  // Whether row() runs along depth at a fixed index, or along the index at a fixed depth.
  virtual bool along_k() const = 0;
  // The same values for every batch: packed once.
  virtual bool same_for_all_batches() const { return false; }
  virtual void row(std::int64_t batch, std::int64_t fixed, std::int64_t start, std::int64_t count,
                   T* destination) const = 0;
  // row() without a copy where memory holds the values as they are: that memory, or `buffer`,
  // filled.
  virtual const T* view(std::int64_t batch, std::int64_t fixed, std::int64_t start,
                        std::int64_t count, T* buffer) const {
    row(batch, fixed, start, count, buffer);
    return buffer;
  }
  // Elements from a row to the next (fixed + 1) where view() never copies, else 0.
  virtual std::int64_t row_stride() const { return 0; }
};

// Where finished sums may be stored without passing through GemmSink::row.
template <class T>
struct GemmDestination {
  T* c = nullptr;
  std::int64_t c_row = 0;
  GemmPostOps<T> post_ops;
  bool has_post_ops = false;
};

// Takes finished rows of C: columns [n, n + count) of row m. May change the values.
template <class T>
class GemmSink {
 public:
  virtual ~GemmSink() = default;
  virtual void row(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t count,
                   T* values) const = 0;
  // Fills `place` for the block that starts at (m, n) and returns true, where memory takes the
  // sums.
  virtual bool dest(std::int64_t batch, std::int64_t m, std::int64_t n,
                    GemmDestination<T>& dest) const {
    static_cast<void>(batch + m + n), static_cast<void>(dest);
    return false;
  }
};

// How a product is cut. All in elements.
struct GemmBlocks {
  std::int64_t rows = 0, columns = 0, k = 0;  // of the block of C a thread works on
  std::int64_t packed = 0;                    // of B that are packed at once, for all threads
  std::int64_t splits = 1;                    // parts of k summed apart, then added in order
  std::int64_t threads = 0;  // that have scratch; 0: small blocks on the stack, no scratch

  // As named choices of a Config, and back.
  void to_knobs(Config& config) const;
  static GemmBlocks from_knobs(const Config& config);
};

// The blocks for a device, and the ones that need no scratch.
// `in_place`: sums are stored where they belong (GemmSink::place), so that no block of C is kept.
GemmBlocks choose_blocks(const GemmShape& shape, const DeviceProps& device,
                         std::int64_t element_bytes, bool may_split, bool in_place = true);
GemmBlocks stack_blocks();
std::int64_t gemm_scratch_bytes(const GemmShape& shape, const GemmBlocks& blocks,
                                std::int64_t element_bytes);
// The least shape that covers all of these: blocks and scratch for it serve each of them.
GemmShape covering(std::span<const GemmShape> shapes);
// Configurations of an engine that runs these products one after another, cheapest first. `extra`
// is added to the cost of the products.
std::vector<Config> gemm_configs(std::span<const GemmShape> shapes, const DeviceProps& device,
                                 DType precision, const Cost& extra, bool may_split,
                                 bool in_place = true);

// B packed for good: panels of kernel.columns columns in their whole depth, one after another, for
// every batch that differs.
template <class T>
std::int64_t packed_b_elements(const GemmShape& shape, const GemmOperand<T>& b) {
  const std::int64_t batches = b.same_for_all_batches() ? 1 : shape.batch;
  return batches * round_up(shape.n, gemm_micro_kernel<T>().columns) * shape.k;
}
template <class T>
void pack_b(const GemmShape& shape, const GemmOperand<T>& b, T* packed);

// For float and double.
// `scratch` holds gemm_scratch_bytes() bytes, aligned to kWorkspaceAlignment. `packed_b`: made by
// pack_b, or null.
template <class T>
void gemm(const GemmShape& shape, const GemmBlocks& blocks, const GemmKernel<T>& kernel,
          const GemmOperand<T>& a, const GemmOperand<T>& b, const GemmSink<T>& sink, T* scratch,
          const T* packed_b = nullptr);

}  // namespace ashlar::cpu

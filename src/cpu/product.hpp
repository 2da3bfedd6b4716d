// The arithmetic a matrix product is done in: floating point, or 16-bit integers summed as 32-bit
// ones. Engines are templates over it: Operand is what their operands' rows are read as, Result
// what finished rows are given back as.
#pragma once

#include <algorithm>
#include <memory>

#include "base/element.hpp"
#include "cpu/constants.hpp"
#include "cpu/gemm.hpp"
#include "cpu/kernels/pairs.hpp"
#include "plan/region.hpp"

namespace ashlar::cpu {

template <class T>
struct RealProduct {
  using Operand = T;
  using Result = T;
  using Panel = T;  // elements of packed panels and of scratch

  static GemmShape panels(const GemmShape& shape) { return shape; }
  static void run(const GemmShape& shape, const GemmBlocks& blocks, const GemmKernel<T>& kernel,
                  const GemmOperand<T>& a, const GemmOperand<T>& b, const GemmSink<T>& sink,
                  T* scratch, const T* packed_b = nullptr) {
    gemm<T>(shape, blocks, kernel, a, b, sink, scratch, packed_b);
  }
  // B for good, to be given to run() as `packed_b`.
  static void pack(const GemmShape& shape, const GemmOperand<T>& b, KeptMemory<T>& packed) {
    packed.allocate(packed_b_elements(shape, b));
    pack_b(shape, b, packed.data());
  }
};

// Whole numbers of at most 9 bits, two along the depth to a panel element.
class PairOperand final : public GemmOperand<std::int32_t> {
 public:
  PairOperand(const GemmOperand<float>& source, std::int64_t depth)
      : source_(source), depth_(depth), rows_(pair_rows()) {}
  bool along_depth() const override { return source_.along_depth(); }
  bool same_for_all_batches() const override { return source_.same_for_all_batches(); }
  void row(std::int64_t batch, std::int64_t fixed, std::int64_t start, std::int64_t count,
           std::int32_t* destination) const override {
    alignas(64) float values[2 * kPiece];
    for (std::int64_t done = 0; done < count; done += kPiece) {
      const std::int64_t length = std::min(kPiece, count - done), first = start + done;
      if (along_depth()) {
        const std::int64_t there = std::min(2 * length, depth_ - 2 * first);
        source_.row(batch, fixed, 2 * first, there, values);
        std::fill(values + there, values + 2 * length, 0.0f);
        rows_.neighbours(values, length, destination + done);
      } else {
        float* high = values + kPiece;
        source_.row(batch, 2 * fixed, first, length, values);
        if (2 * fixed + 1 < depth_)
          source_.row(batch, 2 * fixed + 1, first, length, high);
        else
          std::fill_n(high, length, 0.0f);
        rows_.zip(values, high, length, destination + done);
      }
    }
  }

 private:
  static constexpr std::int64_t kPiece = 512;
  const GemmOperand<float>& source_;
  std::int64_t depth_;
  const PairRows& rows_;
};

class PairSink final : public GemmSink<std::int32_t> {
 public:
  explicit PairSink(const GemmSink<double>& sink) : sink_(sink) {}
  void row(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t count,
           std::int32_t* values) const override {
    alignas(64) double piece[kPiece];
    for (std::int64_t done = 0; done < count; done += kPiece) {
      const std::int64_t length = std::min(kPiece, count - done);
      for (std::int64_t i = 0; i < length; ++i) piece[i] = values[done + i];
      sink_.row(batch, m, n + done, length, piece);
    }
  }

 private:
  static constexpr std::int64_t kPiece = 512;
  const GemmSink<double>& sink_;
};

struct PairProduct {
  using Operand = float;
  using Result = double;
  using Panel = std::int32_t;

  static GemmShape panels(GemmShape shape) {
    shape.k = divide_up(shape.k, 2);
    return shape;
  }
  static void run(const GemmShape& shape, const GemmBlocks& blocks,
                  const GemmKernel<std::int32_t>& kernel, const GemmOperand<float>& a,
                  const GemmOperand<float>& b, const GemmSink<double>& sink, std::int32_t* scratch,
                  const std::int32_t* packed_b = nullptr) {
    gemm<std::int32_t>(panels(shape), blocks, kernel, PairOperand(a, shape.k),
                       PairOperand(b, shape.k), PairSink(sink), scratch, packed_b);
  }
  static void pack(const GemmShape& shape, const GemmOperand<float>& b,
                   KeptMemory<std::int32_t>& packed) {
    const PairOperand pairs(b, shape.k);
    packed.allocate(packed_b_elements(panels(shape), pairs));
    pack_b(panels(shape), pairs, packed.data());
  }
};

// Whether the sums of an integer product of this depth are exact in 32 bits: operands of 8 bits or
// fewer, as they are in memory.
inline bool sums_in_32_bits(const Region& region, std::int64_t depth) {
  if (region.anchor->compute != i32 && region.anchor->compute != i64) return false;
  double largest = static_cast<double>(depth);
  for (std::size_t slot : {0, 1}) {
    const PointwiseProgram& program = region.prologues[slot];
    if (!program.is_plain_load()) return false;
    const DType dtype = program.steps[0].view.dtype;
    if (!is_integer(dtype) || bit_width(dtype) > 8) return false;
    largest *= std::max(largest_value(dtype), -lowest_value(dtype));
  }
  return largest <= largest_value(i32);
}

// The product of the shapes in the arithmetic that suits the region, as configurations.
inline std::vector<Config> product_configs(std::vector<GemmShape> shapes, const Region& region,
                                           const DeviceProps& device, bool may_split) {
  Cost extra;
  extra.bytes = region.bytes();
  extra.flops = region.epilogue.flops_per_element() *
                static_cast<double>(element_count(region.epilogue.space));
  if (!sums_in_32_bits(region, covering(shapes).k))
    return gemm_configs(shapes, device, region.precision(), extra, may_split);
  for (GemmShape& shape : shapes) shape = PairProduct::panels(shape);
  return gemm_configs(shapes, device, i32, extra, may_split);
}

template <template <class> class KernelType, class... Args>
std::unique_ptr<Kernel> build_product(const Region& region, std::int64_t depth, Args&&... args) {
  if (sums_in_32_bits(region, depth))
    return std::make_unique<KernelType<PairProduct>>(region, std::forward<Args>(args)...);
  if (region.precision() == f64)
    return std::make_unique<KernelType<RealProduct<double>>>(region, std::forward<Args>(args)...);
  return std::make_unique<KernelType<RealProduct<float>>>(region, std::forward<Args>(args)...);
}

}  // namespace ashlar::cpu

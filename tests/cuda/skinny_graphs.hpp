// Graphs of skinny GEMMs, for the tests of cuda.gemm_skinny.
#pragma once

#include <array>
#include <ashlar/graph.hpp>
#include <optional>

#include "gpu_check.hpp"

namespace ashlar::cuda {

struct SkinnyProblem {
  std::int64_t m, n, k;
  DType x = bf16, weights = bf16;
  bool k_major = true;  // weights are contiguous along K
  bool few_columns = false;
  std::int64_t batches = 1;
  bool scaled = false;  // weights are multiplied by a scale per row
  bool after = false;   // a bias and a relu
  bool before = false;  // x is doubled first
  DType y = bf16;
  std::int64_t block = 0;  // elements of K per scale of the weights
  DType block_scale = bf16;
  std::optional<DType> zero = {};  // type of the block zero points
};

inline Graph skinny_product(const SkinnyProblem& p) {
  Graph graph;
  const auto batched = [&](std::int64_t a, std::int64_t b) {
    return p.batches == 1 ? Dims{a, b} : Dims{p.batches, a, b};
  };
  const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns, DType dtype,
                          bool by_columns) {
    const Dims strides = by_columns ? Dims{1, rows} : Dims{columns, 1};
    const Dims all = p.batches == 1 ? strides : Dims{rows * columns, strides[0], strides[1]};
    return graph.input(name, batched(rows, columns), dtype, Layout(all));
  };
  const bool swap = p.few_columns;
  Value x = swap ? matrix("x", p.k, p.m, p.x, true) : matrix("x", p.m, p.k, p.x, false);
  Value w = swap ? matrix("w", p.n, p.k, p.weights, !p.k_major)
                 : matrix("w", p.k, p.n, p.weights, p.k_major);
  if (p.before) x = graph.pointwise(PointwiseMode::add, std::array{x, x}, {}, {.dtype = p.x});
  const auto per_row = [&](const char* name) {
    const Dims dims = swap ? Dims{p.n, 1} : Dims{1, p.n};
    return graph.input(name, p.batches == 1 ? dims : Dims{1, dims[0], dims[1]}, f32);
  };
  if (p.block > 0) {
    const std::int64_t blocks = (p.k + p.block - 1) / p.block;
    const Dims of_blocks = swap ? Dims{p.n, blocks} : Dims{blocks, p.n};
    BlockScaleDequantize op;
    op.block_size = swap ? Dims{1, p.block} : Dims{p.block, 1};
    const Value scale = graph.input("block_scale", of_blocks, p.block_scale);
    const Value zero = p.zero ? graph.input("zero", of_blocks, *p.zero) : Value();
    w = graph.apply(op,
                    {{BlockScaleDequantize::x, w},
                     {BlockScaleDequantize::scale, scale},
                     {BlockScaleDequantize::zero_point, zero}},
                    {BlockScaleDequantize::y}, {.dtype = p.x});
  }
  if (p.scaled)
    w = graph.pointwise(PointwiseMode::mul, std::array{w, per_row("scale")}, {}, {.dtype = f32});
  Value y = swap ? graph.matmul(w, x, {.dtype = f32}) : graph.matmul(x, w, {.dtype = f32});
  if (p.after) y = relu(y + per_row("bias"));
  graph.output("y", y, {.dtype = p.y});
  return graph;
}

class GpuGemmSkinny : public GpuTest {};

}  // namespace ashlar::cuda

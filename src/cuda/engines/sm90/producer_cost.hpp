// Cost model of producer warps that compute GEMM operands: dequantised weights, gathered rows.
#pragma once

#include "cuda/engines/sm90/matrix_shape.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// K-blocks of packed weights that a producer warpgroup keeps in flight by cp.async. `bytes` gets
// the shared memory for all of them.
int raw_steps(const MatrixOperand& a, const MatrixOperand& b, const GemmTile& tile, int& bytes);

// Estimated share of the tensor-core rate that remains where operands are computed: every output
// tile computes its operand tiles again.
double producer_efficiency(const MatrixOperand& a, const MatrixOperand& b, const GemmTile& tile);

// Bytes that the programs read and write.
double bytes_of(const PointwiseProgram& prologue, const PointwiseProgram& epilogue = {});

// For engines that fuse block scales into the prologue: refuses where dequantising each weight once
// in a separate kernel, followed by a GEMM, is estimated to be faster.
Support is_worth_dequantizing(const Region& region, const CudaEngine& engine,
                              const DeviceProps& device);

}  // namespace ashlar::cuda

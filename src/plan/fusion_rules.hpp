// Rules that say which fusions an operation allows.
#pragma once

#include <ashlar/ops.hpp>
#include <vector>

namespace ashlar {

// Inputs that may have a fused pointwise prologue.
std::vector<int> fusible_inputs(const Op& op);

// Operations that read each input element many times recompute a fused prologue; it must be cheap:
// at most kCheapFlops per element.
inline constexpr double kCheapFlops = 4;
bool reads_inputs_often(const Op& op);

// Whether the epilogue may generate random numbers: the engines of the operation run programs over
// the whole space of output 0 and know the position of every element.
bool may_draw(const Op& op);

// Whether the operation is a GEMM whose prologue may dequantise block-scaled weights
// (Step::blocks).
bool may_dequantize(const Op& op);

// Whether the prologue of an input may also store its result. Row norms read all of x and norm
// gradients all of dy exactly once. x is often an output too (the residual sum), and so is dy (the
// gradient of the residual branch).
bool may_store_input(const Op& op, int slot);

}  // namespace ashlar

// What may be fused with an operation.
#pragma once

#include <ashlar/ops.hpp>
#include <vector>

namespace ashlar {

// Inputs whose elements an engine reads as numbers, so that pointwise work can be done on the way
// in.
std::vector<int> fusible_inputs(const Op& op);

// Operations that read an input many times would repeat the work fused into it: there it has to be
// cheap.
inline constexpr double kCheapFlops = 4;
bool reads_inputs_often(const Op& op);

// Epilogues that draw random numbers: their engines walk the whole space of output 0 through
// programs, with the position of every element at hand.
bool may_draw(const Op& op);

// Products that take weights with the scales of their blocks (Step::blocks).
bool may_dequantize(const Op& op);

// Norms of rows need all of x, gradients of norms all of dy, and can write what they compute on the
// way in: x is often asked for itself, as the sum that goes on beside the norm, and dy as the
// gradient of what was added before the activation.
bool may_store_input(const Op& op, int slot);

}  // namespace ashlar

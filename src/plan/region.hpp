// A piece of the graph that becomes one kernel: at most one anchor, with the pointwise work before
// and after.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/pointwise_program.hpp"

namespace ashlar {

struct Anchor {
  Op op;
  DType compute = f32;
  std::vector<View> inputs;   // by Op::In; absent ones are not present(). Dims and dtype are valid
                              // for fused inputs too, whose tensor has no memory
  std::vector<View> outputs;  // by Op::Out; output 0 leaves through the epilogue
};

// A reduction behind the epilogue, over every axis in which its result has extent 1 and the
// epilogue's space has not.
struct TailReduction {
  ReductionMode fold = ReductionMode::add;  // add, max or min; what else a mode means is steps of
                                            // the epilogue (magnitudes, squares) and of `finish`
  PointwiseProgram finish;  // over the result's dims: its accumulator is what was folded
};

struct Region {
  std::vector<NodeId> nodes;  // in execution order
  std::optional<Anchor> anchor;
  // One per anchor input (empty where the input is absent), over its dims: how its elements come to
  // be. A plain load unless pointwise work was fused, whose result may be stored: may_store_input.
  std::vector<PointwiseProgram> prologues;
  // Over the dims of anchor output 0, which is its accumulator; it stores everything the region
  // writes except anchor outputs 1 and up. Without an anchor it is the whole region and has no
  // accumulator.
  PointwiseProgram epilogue;
  // Of the values epilogue.reduced. Only engines that say so take regions with any.
  std::vector<TailReduction> reductions;
  std::vector<TensorId> reads, writes;  // memory touched

  template <class OpType>
  const OpType* anchor_as() const {
    return anchor ? std::get_if<OpType>(&anchor->op) : nullptr;
  }
  // f64 when the anchor computes in f64 or integers or any program needs it; else f32.
  DType precision() const;
  double bytes() const;  // memory traffic at least: every tensor read and written once
  double flops() const;
  std::string to_text(const Graph& graph) const;  // "conv_forward + add + relu_fwd"
};

// Whether the operation multiplies its first two inputs, as matrices or by a convolution.
bool is_gemm_like(const Op& op);

// A region that only moves i64 elements moves them as f64, bit for bit: registers hold numbers as
// double, which has not enough bits for every i64.
void move_as_bits(Region& region);

}  // namespace ashlar

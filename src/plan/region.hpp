// A fusion region, the part of the graph that becomes one kernel: at most one anchor, with
// pointwise prologues and an epilogue.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/pointwise_program.hpp"

namespace ashlar {

struct Anchor {
  Op op;
  DType compute = f32;
  std::vector<View> inputs;   // by Op::In; !present() if absent. Dims and dtype are valid for fused
                              // inputs too, whose tensor has no memory
  std::vector<View> outputs;  // by Op::Out; output 0 is the accumulator of the epilogue
};

// A reduction fused behind the epilogue, over every axis in which its result has extent 1 and the
// epilogue's space has not.
struct TailReduction {
  ReductionMode fold = ReductionMode::add;  // add, max or min; the rest of a mode is expressed by
                                            // steps of the epilogue (abs, square) and of `finish`
  PointwiseProgram finish;  // over the result's dims; its accumulator is the folded value
};

struct Region {
  std::vector<NodeId> nodes;  // in execution order
  std::optional<Anchor> anchor;
  // One per anchor input (empty if the input is absent), over its dims: a plain load, or the fused
  // pointwise operations that compute it. Its result may be stored too (OpTraits::stores_input).
  std::vector<PointwiseProgram> prologues;
  // Over the dims of anchor output 0, which is its accumulator. It stores everything the region
  // writes except anchor outputs 1 and up. Without an anchor it is the whole region and has no
  // accumulator.
  PointwiseProgram epilogue;
  // Reductions of the values epilogue.reduced. Engines must check for them explicitly.
  std::vector<TailReduction> reductions;
  std::vector<TensorId> reads, writes;  // tensors in memory

  template <class OpType>
  const OpType* anchor_as() const {
    return anchor ? std::get_if<OpType>(&anchor->op) : nullptr;
  }
  // f64 if the anchor computes in f64 or integers or any program requires it; else f32.
  DType precision() const;
  double bytes() const;  // minimum memory traffic: every tensor read or written once
  double flops() const;
  // flops() without attention scores outside of causal and sliding-window masks: what any
  // implementation must compute.
  double visible_flops() const;
  std::string to_text(const Graph& graph) const;  // "conv_forward + add + relu_fwd"
};

// Makes a region that only moves i64 elements move them as f64 bit patterns: programs compute in
// double, which cannot represent every i64.
void move_as_bits(Region& region);

}  // namespace ashlar

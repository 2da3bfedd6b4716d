// Collects pointwise nodes into a PointwiseProgram.
#pragma once

#include <optional>
#include <unordered_map>

#include "plan/lowered.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar {

class ProgramBuilder {
 public:
  ProgramBuilder(const LoweredGraph& lowered, const Dims& space) : lowered_(lowered) {
    program_.space = space;
  }

  // Value 0 is the anchor's result, which stands for `tensor`.
  void set_accumulator(TensorId tensor);
  // Adds the node's computation, pointwise, random numbers, dropout or dequantisation; its operands
  // are earlier results, constants, or loads.
  void add(const Node& node);
  void store(TensorId tensor);       // one of the results
  void set_result(TensorId tensor);  // prologues
  // Epilogues: a reduction takes `tensor`, one of the results, or f(tensor, tensor).
  void reduce(TensorId tensor, std::optional<PointwiseMode> f);
  PointwiseProgram take() { return std::move(program_); }

 private:
  View view_of(TensorId id) const;  // absent for none
  void add_random(const Node& node);
  void add_dropout(const Node& node);
  void add_dequantize(const Node& node);
  int value_of(TensorId tensor);
  int value_of_blocks(TensorId tensor, const Dims& blocks);  // a value that each of them shares
  int push(PointwiseProgram::Step step);

  const LoweredGraph& lowered_;
  PointwiseProgram program_;
  std::unordered_map<TensorId, int> values_;
};

}  // namespace ashlar

// Builds a PointwiseProgram from the pointwise nodes of a region.
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

  // Makes value 0 the accumulator, the anchor's result for `tensor`.
  void set_accumulator(TensorId tensor);
  // Adds a pointwise, rng, dropout or dequantisation node. Its operands are earlier values,
  // constants, or loads.
  void add(const Node& node);
  void store(TensorId tensor);       // one of the results
  void set_result(TensorId tensor);  // prologues
  // Epilogues: a tail reduction reads `tensor`, one of the results, or f(tensor, tensor).
  void reduce(TensorId tensor, std::optional<PointwiseMode> f);
  PointwiseProgram take() { return std::move(program_); }

 private:
  View view_of(TensorId id) const;  // absent for kNoTensor
  void add_random(const Node& node);
  void add_dropout(const Node& node);
  void add_dequantize(const Node& node);
  int value_of(TensorId tensor);
  int value_of_blocks(TensorId tensor, const Dims& blocks);  // one value per block
  int push(PointwiseProgram::Step step);

  const LoweredGraph& lowered_;
  PointwiseProgram program_;
  std::unordered_map<TensorId, int> values_;
};

}  // namespace ashlar

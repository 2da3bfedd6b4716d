// The straight-line program of a region's pointwise operations: one IR, interpreted row by row on
// the CPU and printed as CUDA C++ for the prologue or epilogue of a GPU kernel.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "plan/view.hpp"

namespace ashlar {

// Size limits of a program, so that executors need no allocation. The partitioner starts a new
// region instead of exceeding them.
inline constexpr int kMaxProgramSteps = 96;
inline constexpr int kMaxProgramLoads = 32;
inline constexpr int kMaxProgramStores = 16;
inline constexpr int kMaxProgramRows = 2;  // accumulators
inline constexpr int kMaxProgramRandoms = 4;

// Whether f32 cannot represent every value of the type.
constexpr bool needs_f64(DType dtype) {
  return bit_width(dtype) >= 32 && dtype != DType::f32 && dtype != DType::complex_f32;
}

struct PointwiseProgram {
  // A step computes one value per element of `space`; its index in `steps` is its value number.
  struct Step {
    enum class Kind : std::uint8_t { accumulator, load, constant, compute, random };
    Kind kind = Kind::load;
    int row = 0;  // accumulator: index of the accumulator row
    // load: broadcast to `space`. random: no memory; the strides give the position of an element in
    // the random stream.
    View view = {};
    // load: block extents along each axis of `space` whose elements share one value; strides then
    // count blocks. Empty: no sharing. For BlockScaleDequantize in GEMM prologues only.
    Dims blocks = {};
    double constant = 0.0;                   // constant
    Pointwise op = {};                       // compute
    std::array<int, 3> args = {-1, -1, -1};  // compute: operands by Pointwise::In
    DType compute = f32;
    Rng random = {};              // random: distribution; seed and offset unless given by tensors
    View seed = {}, offset = {};  // random: one element each, optional
    // Set if the value stands for a tensor of integer, boolean or fp8 type, whose rounding and
    // saturation are part of the semantics. Wider floats may stay unrounded in a register.
    std::optional<DType> round_to = {};
  };
  struct Store {
    View view = {};  // dims equal `space`
    int value = -1;
  };

  Dims space = {};
  std::vector<Step> steps;
  std::vector<Store> stores;
  int result = -1;  // prologues: the value passed to the anchor
  // Epilogues: the value reduced by each of Region::reductions.
  std::vector<int> reduced;

  bool empty() const { return steps.empty(); }
  bool has_accumulator() const {
    return !steps.empty() && steps[0].kind == Step::Kind::accumulator;
  }
  bool has_random() const;
  bool has_blocks() const;  // Step::blocks
  // A prologue that only loads one tensor.
  bool is_plain_load() const;
  // An epilogue that only stores the accumulator.
  bool is_plain_store() const;
  // f64 if a step computes in f64 or integers, or accesses f64, i32, u32 or i64 data (which f32
  // cannot represent); else f32.
  DType precision() const;
  // FLOPs per element, for cost models; an elementary function counts as 10.
  double flops_per_element() const;
  std::string to_text(const Graph& graph) const;
};

PointwiseProgram plain_load(const View& view);
PointwiseProgram plain_store(const View& view);

// Step::round_to for a register that stands for a tensor of type `dtype`.
std::optional<DType> register_rounding(DType dtype);

}  // namespace ashlar

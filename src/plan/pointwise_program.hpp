// The straight-line program of a region's pointwise work: one IR, run by the CPU row by row and
// printed by CUDA as the prologue or epilogue of a kernel.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "plan/view.hpp"

namespace ashlar {

// Programs stay within these, so that executors need no allocation; the cut starts a new region
// instead.
inline constexpr int kMaxProgramSteps = 96;
inline constexpr int kMaxProgramLoads = 32;
inline constexpr int kMaxProgramStores = 16;
inline constexpr int kMaxProgramRows = 2;  // accumulators
inline constexpr int kMaxProgramRandoms = 4;

// Whether float has not enough bits for every value of the type.
constexpr bool needs_f64(DType dtype) {
  return bit_width(dtype) >= 32 && dtype != DType::f32 && dtype != DType::complex_f32;
}

struct PointwiseProgram {
  // One value per element of `space`. A step's position in `steps` is the number of its value.
  struct Step {
    enum class Kind : std::uint8_t { accumulator, load, constant, compute, random };
    Kind kind = Kind::load;
    int row = 0;  // accumulator: which of the rows handed in
    // load: already broadcast to `space`. random: no memory; its strides give the position of an
    // element in the stream of random numbers.
    View view = {};
    // load: how many neighbours along each axis of `space` share an element; strides then count
    // blocks of them. Empty: none do. Of BlockScaleDequantize, before products only.
    Dims blocks = {};
    double constant = 0.0;                   // constant
    Pointwise op = {};                       // compute
    std::array<int, 3> args = {-1, -1, -1};  // compute: operands by Pointwise::In
    DType compute = f32;
    Rng random = {};              // random: distribution, and seed and offset where no tensor holds
    View seed = {}, offset = {};  // them: one element each, absent or in memory
    // Set where the value passes through a tensor of integer, boolean or fp8 type, whose rounding
    // and saturation are part of the meaning. Wider floats may stay unrounded in a register.
    std::optional<DType> round_to = {};
  };
  struct Store {
    View view = {};  // dims equal `space`
    int value = -1;
  };

  Dims space = {};
  std::vector<Step> steps;
  std::vector<Store> stores;
  int result = -1;  // prologues: the value handed to the anchor
  // Epilogues: the value that each of Region::reductions reduces.
  std::vector<int> reduced;

  bool empty() const { return steps.empty(); }
  bool has_accumulator() const {
    return !steps.empty() && steps[0].kind == Step::Kind::accumulator;
  }
  bool has_random() const;
  bool has_blocks() const;  // Step::blocks
  // A prologue that only reads one tensor as it is.
  bool is_plain_load() const;
  // An epilogue that only stores the accumulator.
  bool is_plain_store() const;
  // f64 when a step computes in f64 or integers, or touches f64, i32, u32 or i64 data (which f32
  // cannot hold); else f32.
  DType precision() const;
  // Arithmetic per element, for cost models: elementary functions count as 10.
  double flops_per_element() const;
  std::string to_text(const Graph& graph) const;
};

PointwiseProgram plain_load(const View& view);
PointwiseProgram plain_store(const View& view);

// What `tensor` demands of a register that stands for it: see Step::round_to.
std::optional<DType> register_rounding(DType dtype);

}  // namespace ashlar

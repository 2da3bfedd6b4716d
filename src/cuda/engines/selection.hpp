// What the engines of gather and scatter share: vectors along rows, and refusals.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "cuda/text/program_text.hpp"
#include "plan/region.hpp"

namespace ashlar::cuda {

inline bool has_ragged_or_complex(const PointwiseProgram& program) {
  const auto refused = [](const View& view) {
    return view.ragged_offset != kNoTensor || is_complex(view.dtype);
  };
  return std::any_of(program.steps.begin(), program.steps.end(),
                     [&](const auto& step) {
                       return step.kind == PointwiseProgram::Step::Kind::load && refused(step.view);
                     }) ||
         std::any_of(program.stores.begin(), program.stores.end(),
                     [&](const auto& store) { return refused(store.view); });
}

// Elements per access along the last axis that all of the programs run along: 16 bytes of the
// widest type, fewer where alignment forbids it.
inline int row_vector(std::initializer_list<const PointwiseProgram*> programs) {
  constexpr int kVectorBits = 128, kMostElements = 16;
  int widest = 8;
  for (const PointwiseProgram* program : programs) {
    const int last = program->space.rank() - 1;
    const auto look = [&](const View& view) {
      if (view.strides[last] == 1) widest = std::max(widest, bit_width(view.dtype));
    };
    for (const auto& step : program->steps)
      if (step.kind == PointwiseProgram::Step::Kind::load) look(step.view);
    for (const auto& store : program->stores) look(store.view);
  }
  int length = std::min(kVectorBits / widest, kMostElements);
  for (const PointwiseProgram* program : programs)
    if (!program->empty()) length = vector_length(*program, length);
  return length;
}

}  // namespace ashlar::cuda

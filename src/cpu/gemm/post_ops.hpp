// Epilogues that a panel product applies in registers (see GemmPostOps).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "cpu/kernels/gemm_micro_kernel.hpp"
#include "plan/kernel.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cpu {

// activation(clamp(sum + bias + addend, low, high)), stored once. Columns run along one axis of the
// epilogue's space.
struct PostOpsPattern {
  View result;        // any dtype; its elements along the column axis are neighbours
  View bias, addend;  // not present(): none. A bias is the same for all rows
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::optional<Pointwise> activation;  // any function of one operand

  bool only_stores() const {
    return !bias.present() && !addend.present() && !activation &&
           low == -std::numeric_limits<double>::infinity() &&
           high == std::numeric_limits<double>::infinity();
  }
};

// What `epilogue` does, if that is all it does. `dtype` (f32 or f64) is the type of the sums, and
// of everything that is added to them. Activations are matched where the caller knows them.
enum class Activations : std::uint8_t { refused, matched };
std::optional<PostOpsPattern> match_post_ops(const PointwiseProgram& epilogue, int column_axis,
                                             DType dtype,
                                             Activations activations = Activations::refused);

// The element of a view at `coords`; null where the view is absent.
template <class T>
T* element_at(const View& view, const std::int64_t* coords, const KernelContext& context) {
  if (!view.present()) return nullptr;
  std::int64_t index = view.offset;
  for (int axis = 0; axis < view.strides.rank(); ++axis) index += coords[axis] * view.strides[axis];
  return static_cast<T*>(context.pointer(view.tensor)) + index;
}

}  // namespace ashlar::cpu

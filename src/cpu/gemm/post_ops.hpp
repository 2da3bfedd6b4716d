// Matches epilogues that the GEMM micro-kernels apply in registers (see GemmPostOps).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "cpu/kernels/gemm_micro_kernel.hpp"
#include "plan/kernel.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cpu {

// activation(clamp(acc + bias + addend, low, high)), stored once. Columns run along one axis of the
// epilogue's space.
struct PostOpsPattern {
  View result;        // any dtype; contiguous along the column axis
  View bias, addend;  // absent if not present(). A bias is the same for all rows
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::optional<Pointwise> activation;  // any unary pointwise mode

  bool only_stores() const {
    return !bias.present() && !addend.present() && !activation &&
           low == -std::numeric_limits<double>::infinity() &&
           high == std::numeric_limits<double>::infinity();
  }
};

// The post-ops of `epilogue`, or nullopt if it does anything else. `dtype` (f32 or f64) is the type
// of the accumulators and of everything added to them. Activations are matched only if the caller
// supports them.
enum class Activations : std::uint8_t { refused, matched };
std::optional<PostOpsPattern> match_post_ops(const PointwiseProgram& epilogue, int column_axis,
                                             DType dtype,
                                             Activations activations = Activations::refused);

// Pointer to the element of a view at `coords`; null if the view is absent.
template <class T>
T* element_at(const View& view, const std::int64_t* coords, const KernelContext& context) {
  if (!view.present()) return nullptr;
  std::int64_t index = view.offset;
  for (int axis = 0; axis < view.strides.rank(); ++axis) index += coords[axis] * view.strides[axis];
  return static_cast<T*>(context.pointer(view.tensor)) + index;
}

}  // namespace ashlar::cpu

// Operands read as integers: lengths, seeds, offsets. A plain load keeps all 64 bits; a pointwise
// prologue computes in double.
#pragma once

#include <cstring>

#include "base/element.hpp"
#include "cpu/operand.hpp"

namespace ashlar::cpu {

class IntegerOperand {
 public:
  IntegerOperand() = default;  // absent
  explicit IntegerOperand(const PointwiseProgram& program) : present_(!program.empty()) {
    if (!present_) return;
    if (program.is_plain_load())
      view_ = program.steps[0].view;
    else
      program_ = RowProgram<double>(program, program.space.rank() - 1);
  }
  bool present() const { return present_; }

  std::int64_t load(const KernelContext& context, const Coords& coords, std::int64_t absent) const {
    if (!present_) return absent;
    if (!view_.present()) {
      double value;
      program_.bind(context).load(coords.data(), 1, &value);
      return static_cast<std::int64_t>(value);
    }
    std::int64_t index = view_.offset;
    for (int axis = 0; axis < view_.dims.rank(); ++axis)
      index += coords[static_cast<std::size_t>(axis)] * view_.strides[axis];
    const void* data = context.pointer(view_.tensor);
    if (view_.dtype == i64) {
      std::int64_t value;
      std::memcpy(&value, static_cast<const std::int64_t*>(data) + index, sizeof(value));
      return value;
    }
    return static_cast<std::int64_t>(load_element(view_.dtype, data, index));
  }

 private:
  bool present_ = false;
  View view_;
  RowProgram<double> program_;
};

}  // namespace ashlar::cpu

// An int8 GEMM operand as bytes in memory: read in place, or materialised by its prologue first.
#pragma once

#include <algorithm>
#include <optional>

#include "base/element.hpp"
#include "cpu/row_program.hpp"
#include "cpu/threads.hpp"
#include "plan/region.hpp"

namespace ashlar::cpu {

class ByteOperand {
 public:
  // Whether an anchor's input is an integer type of at most 8 bits, loaded or computed by its
  // prologue.
  static bool fits(const Region& region, int slot) {
    const auto index = static_cast<std::size_t>(slot);
    const DType dtype = region.anchor->inputs[index].dtype;
    if (!is_integer(dtype) || bit_width(dtype) > 8) return false;
    const PointwiseProgram& program = region.prologues[index];
    if (program.is_plain_load()) return program.steps[0].view.dtype == dtype;
    return program.result >= 0 &&
           program.steps[static_cast<std::size_t>(program.result)].round_to == dtype;
  }

  // If the operand is materialised, `fastest` is its contiguous axis.
  ByteOperand(const Region& region, int slot, int fastest)
      : dtype_(region.anchor->inputs[static_cast<std::size_t>(slot)].dtype),
        dims_(region.prologues[static_cast<std::size_t>(slot)].space),
        fastest_(fastest) {
    const PointwiseProgram& program = region.prologues[static_cast<std::size_t>(slot)];
    if (program.is_plain_load() && (dtype_ == i8 || dtype_ == u8)) {
      view_ = program.steps[0].view;
      strides_ = view_->strides;
      return;
    }
    program_ = RowProgram<double>(program, fastest);
    strides_ = dims_;
    strides_[fastest] = 1;
    std::int64_t distance = dims_[fastest];
    for (int axis = dims_.rank() - 1; axis >= 0; --axis) {
      if (axis == fastest) continue;
      strides_[axis] = distance;
      distance *= dims_[axis];
    }
  }

  bool is_signed() const { return lowest_value(dtype_) < 0; }
  const Dims& dims() const { return dims_; }
  const Dims& strides() const { return strides_; }  // bytes
  std::int64_t materialised_bytes() const { return view_ ? 0 : element_count(dims_); }

  // The first byte of the operand. `memory` holds materialised_bytes().
  const std::uint8_t* bytes(const KernelContext& context, std::uint8_t* memory) const {
    if (view_)
      return static_cast<const std::uint8_t*>(context.pointer(view_->tensor)) + view_->offset;
    const std::int64_t length = dims_[fastest_];
    const std::int64_t rows = length == 0 ? 0 : element_count(dims_) / length;
    const auto bound = program_.bind(context);
    constexpr std::int64_t kElementsPerThread = 16384;
    parallel_for(rows, kElementsPerThread / std::max<std::int64_t>(length, 1) + 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t row = begin; row < end; ++row)
                     materialise_row(bound, row, memory);
                 });
    return memory;
  }

 private:
  void materialise_row(const RowProgram<double>::Bound& bound, std::int64_t row,
                       std::uint8_t* memory) const {
    constexpr std::int64_t kChunk = 256;
    alignas(64) double chunk[kChunk];
    std::array<std::int64_t, kMaxRank> coords{};
    std::int64_t rest = row;
    for (int axis = dims_.rank() - 1; axis >= 0; --axis) {
      if (axis == fastest_) continue;
      coords[static_cast<std::size_t>(axis)] = rest % dims_[axis];
      rest /= dims_[axis];
    }
    const std::int64_t length = dims_[fastest_];
    for (std::int64_t first = 0; first < length; first += kChunk) {
      const std::int64_t count = std::min(kChunk, length - first);
      coords[static_cast<std::size_t>(fastest_)] = first;
      bound.load(coords.data(), count, chunk);
      std::uint8_t* target = memory + row * length + first;
      for (std::int64_t i = 0; i < count; ++i)
        target[i] = static_cast<std::uint8_t>(static_cast<int>(chunk[i]));
    }
  }

  DType dtype_;
  Dims dims_;
  int fastest_;
  Dims strides_;
  std::optional<View> view_;  // read in place
  RowProgram<double> program_;
};

}  // namespace ashlar::cpu

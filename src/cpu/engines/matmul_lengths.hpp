// Per-batch M, N and K overrides of a matmul, read at run time.
#pragma once

#include <algorithm>

#include "cpu/integer_operand.hpp"

namespace ashlar::cpu {

class MatmulLengths {
 public:
  struct Batch {
    std::int64_t m, n, k;
  };

  explicit MatmulLengths(const Region& region)
      : padding_value_(region.anchor_as<Matmul>()->padding_value),
        m_(operand(region, Matmul::m_override)),
        n_(operand(region, Matmul::n_override)),
        k_(operand(region, Matmul::k_override)) {
    const Dims& a = region.anchor->inputs[Matmul::a].dims;
    const Dims& c = region.anchor->outputs[Matmul::c].dims;
    const int rank = c.rank();
    most_ = {c[rank - 2], c[rank - 1], a[rank - 1]};
  }
  bool limits_k() const { return k_.integers.present(); }
  bool limits_result() const { return m_.integers.present() || n_.integers.present(); }
  double padding_value() const { return padding_value_; }

  // `decode(dims, coords)` writes the batch coordinates of an operand of these dims.
  template <class Decode>
  Batch of(const KernelContext& context, const Decode& decode) const {
    const auto read = [&](const Length& length, std::int64_t most) {
      if (!length.integers.present()) return most;
      Coords coords{};
      decode(length.dims, coords);
      return std::clamp<std::int64_t>(length.integers.load(context, coords, most), 0, most);
    };
    return {read(m_, most_.m), read(n_, most_.n), read(k_, most_.k)};
  }

 private:
  struct Length {
    IntegerOperand integers;
    Dims dims;
  };
  static Length operand(const Region& region, int slot) {
    const PointwiseProgram& program = input_program(region, slot);
    return {IntegerOperand(program), program.space};
  }

  double padding_value_;
  Length m_, n_, k_;
  Batch most_;
};

}  // namespace ashlar::cpu

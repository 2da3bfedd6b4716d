// Matches epilogues that channels-last convolutions apply in registers: per-channel scale and
// shift, one residual, a clamp.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "plan/kernel.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cpu {

// result = clamp(acc * factor[channel] + offset[channel] + residual, low, high): the factor is the
// product of all multipliers, the offset the sum of all addends.
template <class T>
class ChannelPostOps {
 public:
  // nullopt if the epilogue is more than that, or stores anything but one tensor of type T. `axis`
  // is the channel axis; `alpha` multiplies the accumulator first.
  static std::optional<ChannelPostOps> of(const PointwiseProgram& epilogue, int axis, double alpha);

  const View& result() const { return result_; }
  const View* residual() const { return residual_.present() ? &residual_ : nullptr; }
  bool does_nothing() const;
  T low() const { return low_; }
  T high() const { return high_; }
  // Writes `channels` factors and offsets.
  void load(const KernelContext& context, std::int64_t channels, T* factor, T* offset) const;

 private:
  struct Operand {
    View view = {};  // absent: use the constant
    double constant = 0.0;
    bool multiplies = false;
  };
  bool take(const PointwiseProgram& program, const PointwiseProgram::Step& step, int value);
  bool take_operand(const PointwiseProgram& program, int operand, bool multiplies);

  int axis_ = 1;
  std::vector<Operand> operands_;  // multipliers first
  View residual_, result_;
  T low_ = -std::numeric_limits<T>::infinity(), high_ = std::numeric_limits<T>::infinity();
  bool clamps_ = false;
};

extern template class ChannelPostOps<float>;
extern template class ChannelPostOps<double>;

}  // namespace ashlar::cpu

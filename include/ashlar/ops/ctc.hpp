// Connectionist temporal classification (CTC) loss.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

enum class CtcInput : std::uint8_t { logits, probabilities };  // logits go through a softmax
// The gradient at time steps past the end of a sequence.
enum class CtcPadding : std::uint8_t { zero, skip };  // skip: the values of `previous`

// x [T, N, classes]; labels [N, longest], or concatenated [sum of lengths]; label_lengths,
// input_lengths [N]. loss [N] is the negative log-likelihood of the labels; gradient has the dims
// of x and is the gradient of the sum of losses with respect to x.
struct CtcLoss {
  ASHLAR_INPUTS(x, labels, label_lengths, input_lengths, ASHLAR_OPTIONAL(previous));
  ASHLAR_OUTPUTS(loss, ASHLAR_OPTIONAL(gradient));
  CtcInput input = CtcInput::logits;
  CtcPadding padding = CtcPadding::zero;
  std::int64_t blank = 0;
  // For labels that cannot be aligned: loss 0 and gradient 0 instead of infinity.
  bool zero_infinity = false;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("input", self.input);
    visit("padding", self.padding);
    visit("blank", self.blank);
    visit("zero_infinity", self.zero_infinity);
  }
};

}  // namespace ashlar

// Connectionist temporal classification.
#pragma once

#include <cstdint>

namespace ashlar {

enum class CtcInput : std::uint8_t { logits, probabilities };  // logits go through a softmax
// What the gradient holds at time steps past the end of a sequence.
enum class CtcPadding : std::uint8_t { zero, skip };  // skip: what `previous` holds

// x [T, N, classes]; labels [N, longest] or [sum of lengths], the labels of all sequences one after
// the other; label_lengths, input_lengths [N]. loss [N] is -log of the probability of the labels;
// gradient has the dims of x and is that of the sum of losses with respect to x.
struct CtcLoss {
  enum In { x, labels, label_lengths, input_lengths, previous };
  enum Out { loss, gradient };
  CtcInput input = CtcInput::logits;
  CtcPadding padding = CtcPadding::zero;
  std::int64_t blank = 0;
  // Sequences whose labels cannot be aligned: loss 0 and gradient 0 instead of infinity.
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

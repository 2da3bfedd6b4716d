// Losses.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

// Of class indices: with p = softmax(x) over the last axis, C classes and s = label_smoothing,
//   loss = -(1 - s) * log p[target] - s / C * sum of log p,
// and 0 for rows whose target is ignore_index. target has the dims of x with a last extent of 1.
// loss has these dims too, or one element (all extents 1) with `mean`: the sum over the rows that
// count, divided by their number (NaN if that is 0). stats = log of the sum of exp(x), per row,
// which the gradient reads. A target outside of [0, C) gives NaN.
struct CrossEntropyForward {
  ASHLAR_INPUTS(x, target);
  ASHLAR_OUTPUTS(loss, ASHLAR_OPTIONAL(stats));
  double label_smoothing = 0.0;
  std::int64_t ignore_index = -100;
  bool mean = false;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("label_smoothing", self.label_smoothing);
    visit("ignore_index", self.ignore_index);
    visit("mean", self.mean);
  }
};

// dx = dloss * (p - (1 - s) * [class == target] - s / C), with p = exp(x - stats); with `mean`
// divided by the number of rows that count. dloss has the dims of loss.
struct CrossEntropyBackward {
  ASHLAR_INPUTS(x, target, stats, dloss);
  ASHLAR_OUTPUTS(dx);
  double label_smoothing = 0.0;
  std::int64_t ignore_index = -100;
  bool mean = false;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("label_smoothing", self.label_smoothing);
    visit("ignore_index", self.ignore_index);
    visit("mean", self.mean);
  }
};

}  // namespace ashlar

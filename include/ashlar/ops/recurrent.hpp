// Recurrent neural networks: relu, tanh, LSTM, GRU.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>
#include <optional>

namespace ashlar {

enum class RnnMode : std::uint8_t { relu, tanh, lstm, gru };
enum class RnnBias : std::uint8_t { none, input, recurrent, both };
// linear multiplies the input of the first layer by a weight matrix; skip adds it unchanged.
enum class RnnInput : std::uint8_t { linear, skip };
// padded: [T, N, features]. packed: [sum of lengths, features], time step by time step, longest
// sequence first; needs seq_lengths.
enum class RnnLayout : std::uint8_t { padded, packed };

// docs/ops/recurrent.md defines the layout of weights, gates and `reserve`.
struct RnnAttributes {
  RnnMode mode = RnnMode::lstm;
  std::int64_t hidden_size = 0;
  std::int64_t projection_size = 0;  // lstm only; 0: none
  std::int64_t layers = 1;
  bool bidirectional = false;
  RnnBias bias = RnnBias::both;
  RnnInput input = RnnInput::linear;
  RnnLayout layout = RnnLayout::padded;
  double dropout = 0.0;                 // between layers
  std::optional<double> clip_low = {};  // lstm only: bounds that the cell state is clipped to
  std::optional<double> clip_high = {};
  bool clip_nan = false;       // whether a NaN in the cell state is replaced by clip_low
  double padding_value = 0.0;  // value of y past the end of a sequence

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("hidden_size", self.hidden_size);
    visit("projection_size", self.projection_size);
    visit("layers", self.layers);
    visit("bidirectional", self.bidirectional);
    visit("bias", self.bias);
    visit("input", self.input);
    visit("layout", self.layout);
    visit("dropout", self.dropout);
    visit("clip_low", self.clip_low);
    visit("clip_high", self.clip_high);
    visit("clip_nan", self.clip_nan);
    visit("padding_value", self.padding_value);
  }
};

// weights [count]; hx, hy [layers * directions, N, output size]; cx, cy [layers * directions, N,
// hidden]; seq_lengths [N]. Absent hx and cx are zero.
struct RnnForward : RnnAttributes {
  ASHLAR_INPUTS(x, weights, ASHLAR_OPTIONAL(hx, cx, seq_lengths, dropout_seed, dropout_offset));
  ASHLAR_OUTPUTS(y, ASHLAR_OPTIONAL(hy, cy, reserve));
};
// `reserve` is the output of the forward pass; dgates is an input of RnnBackwardWeights.
struct RnnBackwardData : RnnAttributes {
  ASHLAR_INPUTS(dy, weights, reserve,
                ASHLAR_OPTIONAL(hx, cx, dhy, dcy, seq_lengths, dropout_seed, dropout_offset));
  ASHLAR_OUTPUTS(dx, ASHLAR_OPTIONAL(dhx, dcx, dgates));
};
// dweights = gradient + previous; an absent previous is 0.
struct RnnBackwardWeights : RnnAttributes {
  ASHLAR_INPUTS(x, reserve, dgates,
                ASHLAR_OPTIONAL(hx, seq_lengths, dropout_seed, dropout_offset, previous));
  ASHLAR_OUTPUTS(dweights);
};

}  // namespace ashlar

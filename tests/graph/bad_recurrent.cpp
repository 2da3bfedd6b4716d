// Invalid inputs of recurrent networks.
#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

using F = RnnForward;
using D = RnnBackwardData;
using W = RnnBackwardWeights;

// A good tanh network of 3 hidden units on 2 features: 6 + 9 weights and two biases of 3.
constexpr std::int64_t kGivenWeights = 21;

RnnAttributes good() {
  RnnAttributes op;
  op.mode = RnnMode::tanh;
  op.hidden_size = 3;
  return op;
}

using Change = std::function<void(RnnAttributes&)>;
using Extra = std::function<std::vector<Operand<RnnForward>>(Graph&)>;

template <class Op>
Op changed(const Change& change) {
  Op op;
  static_cast<RnnAttributes&>(op) = good();
  if (change) change(op);
  return op;
}

void add_recurrent_forward(BadInputs& rows) {
  struct Shapes {
    Dims x = {4, 2, 2}, weights = {kGivenWeights};
    DType x_dtype = f32, weights_dtype = f32;
  };
  const auto row = [&](const char* name, const Change& change, std::vector<std::string> says,
                       const Shapes& shapes = {}, const Extra& extra = {},
                       std::vector<Wanted<F>> wanted = {}) {
    rows.push_back({name, "rnn_forward",
                    [=](Graph& g) {
                      std::vector<Operand<F>> operands = {{F::x, in(g, shapes.x, shapes.x_dtype)}};
                      operands.push_back({F::weights, in(g, shapes.weights, shapes.weights_dtype)});
                      if (extra)
                        for (const auto& operand : extra(g)) operands.push_back(operand);
                      g.apply(changed<F>(change), operands, wanted, kBad);
                    },
                    says});
  };
  const auto lengths = [](DType dtype, const Dims& dims) {
    return [=](Graph& g) { return std::vector<Operand<F>>{{F::seq_lengths, in(g, dims, dtype)}}; };
  };
  row("rnn hidden_size", [](auto& op) { op.hidden_size = 0; },
      {"hidden_size", "got 0", "expected at least 1"});
  row("rnn layers", [](auto& op) { op.layers = 0; }, {"layers", "got 0", "expected at least 1"});
  row("rnn projection of a tanh", [](auto& op) { op.projection_size = 2; },
      {"projection_size", "got 2", "expected 0 in mode tanh"});
  row("rnn projection too large",
      [](auto& op) {
        op.mode = RnnMode::lstm;
        op.projection_size = 4;
      },
      {"projection_size", "got 4", "0 (none) to hidden_size = 3"});
  row("rnn clip of a tanh", [](auto& op) { op.clip_low = 1.0; },
      {"clip_low", "got 1", "only lstm has a cell state"});
  row("rnn clip by NaN",
      [](auto& op) {
        op.mode = RnnMode::lstm;
        op.clip_high = std::numeric_limits<double>::quiet_NaN();
      },
      {"clip_high", "got nan", "expected a number"});
  row("rnn clip order",
      [](auto& op) {
        op.mode = RnnMode::lstm;
        op.clip_low = 2.0;
        op.clip_high = 1.0;
      },
      {"clip_low", "got 2", "at most clip_high = 1"});
  row("rnn clip_nan alone",
      [](auto& op) {
        op.mode = RnnMode::lstm;
        op.clip_nan = true;
      },
      {"clip_nan", "got true", "false without clip_low"});
  row("rnn dropout", [](auto& op) { op.dropout = 1.0; },
      {"dropout", "got 1", "a probability in [0, 1)"});
  row("rnn dropout without seed", [](auto& op) { op.dropout = 0.5; },
      {"input dropout_seed", "got nothing", "a tensor with dropout"});
  row("rnn seed without dropout", {},
      {"input dropout_seed", "got a tensor", "none without dropout"}, {}, [](Graph& g) {
        return std::vector<Operand<F>>{{F::dropout_seed, in(g, {1}, i64)}};
      });
  row("rnn offset without seed", {},
      {"input dropout_offset", "got a tensor", "none without dropout_seed"}, {}, [](Graph& g) {
        return std::vector<Operand<F>>{{F::dropout_offset, in(g, {1}, i64)}};
      });
  row(
      "rnn seed of many", [](auto& op) { op.dropout = 0.5; },
      {"dims of dropout_seed 'i2'", "got [2]", "a single element"}, {},
      [](Graph& g) {
        return std::vector<Operand<F>>{{F::dropout_seed, in(g, {2}, i64)}};
      });
  row("rnn rank of x", {}, {"rank of x 'i0'", "got 2", "3 in the padded layout"}, {.x = {4, 2}});
  row("rnn rank of packed x", [](auto& op) { op.layout = RnnLayout::packed; },
      {"rank of x 'i0'", "got 3", "2 in the packed layout"});
  row("rnn packed without lengths", [](auto& op) { op.layout = RnnLayout::packed; },
      {"input seq_lengths", "got nothing", "a tensor in the packed layout"}, {.x = {8, 2}});
  row("rnn lengths dims", {}, {"dims of seq_lengths 'i2'", "got [3]", "expected [2]"}, {},
      lengths(i32, {3}));
  row("rnn lengths rank", {}, {"rank of seq_lengths 'i2'", "got 2", "expected 1"}, {},
      lengths(i32, {2, 1}));
  row("rnn lengths dtype", {}, {"dtype of seq_lengths 'i2'", "got f32", "an integer type"}, {},
      lengths(f32, {2}));
  row("rnn dtype of x", {}, {"dtype of x 'i0'", "got i8", "a floating-point type"},
      {.x_dtype = i8});
  row("rnn dtype of weights", {}, {"dtype of weights 'i1'", "got i32", "a floating-point type"},
      {.weights_dtype = i32});
  row("rnn weights", {}, {"dims of weights 'i1'", "got [20]", "expected [21]"}, {.weights = {20}});
  row("rnn skip", [](auto& op) { op.input = RnnInput::skip; },
      {"features of x", "got 2", "hidden_size = 3, because input is skip"});
  row("rnn hx", {}, {"dims of hx 'i2'", "got [1, 2, 4]", "expected [1, 2, 3]"}, {}, [](Graph& g) {
    return std::vector<Operand<F>>{{F::hx, in(g, {1, 2, 4})}};
  });
  row("rnn cx of a tanh", {}, {"input cx 'i2'", "got a tensor", "none in mode tanh"}, {},
      [](Graph& g) {
        return std::vector<Operand<F>>{{F::cx, in(g, {1, 2, 3})}};
      });
  row("rnn cy of a tanh", {}, {"output cy", "got a tensor", "none in mode tanh"}, {}, {}, {F::cy});
  row("rnn reserve in fp8", {}, {"dtype of reserve", "got e4m3", "f64, f32, f16 or bf16"}, {}, {},
      {{F::reserve, e4m3}});
}

void add_recurrent_backward(BadInputs& rows) {
  struct Shapes {
    Dims dy = {4, 2, 3}, weights = {kGivenWeights}, reserve = {1, 4, 2, 3};
    DType reserve_dtype = f32;
    Dims dhy = {1, 2, 3}, dx = {};
  };
  const auto row = [&](const char* name, const Change& change, std::vector<std::string> says,
                       const Shapes& shapes = {}, std::vector<Wanted<D>> wanted = {}) {
    rows.push_back({name, "rnn_backward_data",
                    [=](Graph& g) {
                      std::vector<Operand<D>> operands = {{D::dy, in(g, shapes.dy)}};
                      operands.push_back({D::weights, in(g, shapes.weights)});
                      operands.push_back({D::reserve, in(g, shapes.reserve, shapes.reserve_dtype)});
                      operands.push_back({D::dhy, in(g, shapes.dhy)});
                      g.apply(changed<D>(change), operands, wanted, bad_with_dims(shapes.dx));
                    },
                    says});
  };
  row("rnn data hidden_size", [](auto& op) { op.hidden_size = -1; },
      {"hidden_size", "got -1", "at least 1"});
  row("rnn data weights", {},
      {"dims of weights 'i1'", "got 20", "15 weights plus 3 for each feature of x"},
      {.weights = {20}});
  row("rnn data dy", {}, {"dims of dy 'i0'", "got [4, 2, 4]", "expected [4, 2, 3]"},
      {.dy = {4, 2, 4}});
  row("rnn data reserve", {}, {"dims of reserve 'i2'", "got [1, 4, 2, 2]", "expected [1, 4, 2, 3]"},
      {.reserve = {1, 4, 2, 2}});
  row("rnn data reserve dtype", {}, {"dtype of reserve 'i2'", "got e5m2", "f64, f32, f16 or bf16"},
      {.reserve_dtype = e5m2});
  row("rnn data dhy", {}, {"dims of dhy 'i3'", "got [2, 2, 3]", "expected [1, 2, 3]"},
      {.dhy = {2, 2, 3}});
  row("rnn data dx", {}, {"dims of dx", "got [4, 2, 3]", "expected [4, 2, 2]"}, {.dx = {4, 2, 3}});
  row("rnn data dcx", {}, {"output dcx", "got a tensor", "none in mode tanh"}, {}, {D::dcx});
}

void add_weights(BadInputs& rows) {
  struct Shapes {
    Dims x = {4, 2, 2}, reserve = {1, 4, 2, 3}, dgates = {1, 4, 2, 3}, previous = {kGivenWeights};
    DType previous_dtype = f32;
  };
  const auto row = [&](const char* name, const Change& change, std::vector<std::string> says,
                       const Shapes& shapes = {}) {
    rows.push_back(
        {name, "rnn_backward_weights",
         [=](Graph& g) {
           std::vector<Operand<W>> operands = {{W::x, in(g, shapes.x)}};
           operands.push_back({W::reserve, in(g, shapes.reserve)});
           operands.push_back({W::dgates, in(g, shapes.dgates)});
           operands.push_back({W::previous, in(g, shapes.previous, shapes.previous_dtype)});
           g.apply(changed<W>(change), operands, {}, kBad);
         },
         says});
  };
  row("rnn weights layers", [](auto& op) { op.layers = -2; }, {"layers", "got -2", "at least 1"});
  row("rnn weights skip", [](auto& op) { op.input = RnnInput::skip; },
      {"features of x", "got 2", "hidden_size = 3"});
  row("rnn weights reserve", {}, {"dims of reserve 'i1'", "got [4, 2, 3]", "expected [1, 4, 2, 3]"},
      {.reserve = {4, 2, 3}});
  row("rnn weights dgates", {},
      {"dims of dgates 'i2'", "got [1, 4, 2, 6]", "expected [1, 4, 2, 3]"},
      {.dgates = {1, 4, 2, 6}});
  row("rnn weights previous", {}, {"dims of previous 'i3'", "got [22]", "expected [21]"},
      {.previous = {22}});
  row("rnn weights previous dtype", {},
      {"dtype of previous 'i3'", "got i64", "a floating-point type"}, {.previous_dtype = i64});
}

}  // namespace

void add_bad_recurrent(BadInputs& rows) {
  add_recurrent_forward(rows);
  add_recurrent_backward(rows);
  add_weights(rows);
}

}  // namespace ashlar::tests

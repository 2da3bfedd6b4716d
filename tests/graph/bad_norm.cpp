// Invalid inputs of normalisation.
#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

const Dims kImages = {2, 4, 3, 3};
const Dims kPerChannel = {1, 4, 1, 1};
const Dims kPerRow = {1, 4, 3, 3};

// A norm_forward from its operands by slot, with the outputs marked.
void norm_node(Graph& g, const NormForward& op, const std::vector<std::pair<int, Dims>>& operands,
               const std::vector<int>& outputs = {NormForward::y}, DType dtype = f32) {
  Node node{.name = "bad", .op = op, .inputs = {}, .outputs = {}};
  node.inputs.assign(8, kNoTensor);
  node.outputs.assign(5, kNoTensor);
  for (const auto& [slot, dims] : operands)
    node.inputs[static_cast<std::size_t>(slot)] = in(g, dims, slot == 0 ? f32 : dtype).id();
  for (int slot : outputs)
    node.outputs[static_cast<std::size_t>(slot)] =
        g.add_tensor({.name = "o" + std::to_string(slot), .infer_dtype = true});
  g.add_node(node);
}

void add_norm_forward(BadInputs& rows) {
  using N = NormForward;
  const auto norm = [&](const char* name, const NormForward& op,
                        std::vector<std::pair<int, Dims>> operands, std::vector<int> outputs,
                        std::vector<std::string> says, DType dtype = f32) {
    rows.push_back({name, "norm_forward",
                    [=](Graph& g) { norm_node(g, op, operands, outputs, dtype); }, says});
  };
  const NormForward layer, batch{.mode = NormMode::batch}, rms{.mode = NormMode::rms};
  const NormForward inference{.mode = NormMode::batch, .phase = NormPhase::inference};
  norm("batch norm of a vector", batch, {{N::x, {4}}}, {0},
       {"rank of x 'i0'", "got 1", "expected 2 to 8"});
  norm("norm axes of batch norm", {.mode = NormMode::batch, .axes = {1}}, {{N::x, kImages}}, {0},
       {"axes", "got [1]", "expected none: batch norm has fixed axes"});
  norm("norm axis", {.axes = {4}}, {{N::x, kImages}}, {0}, {"axes", "got 4", "expected -4 to 3"});
  norm("norm axis twice", {.axes = {3, -1}}, {{N::x, kImages}}, {0},
       {"axes", "got [3, 3]", "expected each axis once"});
  norm("group norm groups", {.mode = NormMode::group, .groups = 3}, {{N::x, kImages}}, {0},
       {"groups", "got 3", "expected a divisor of the 4 channels"});
  norm("group norm without groups", {.mode = NormMode::group, .groups = 0}, {{N::x, kImages}}, {0},
       {"groups", "got 0", "expected a divisor of the 4 channels"});
  norm("groups of layer norm", {.groups = 2}, {{N::x, kImages}}, {0},
       {"groups", "got 2", "expected 1: only group norm has groups"});
  norm("norm epsilon", {.epsilon = -1.0}, {{N::x, kImages}}, {0},
       {"epsilon", "got -1", "expected a value of at least 0"});
  norm("norm scale that does not broadcast", layer, {{N::x, kImages}, {N::scale, {1, 5, 3, 3}}},
       {0},
       {"dims of scale 'i1'", "got [1, 5, 3, 3]", "expected extents equal to [2, 4, 3, 3] or 1"});
  norm("norm scale against axes", {.axes = {3}}, {{N::x, kImages}, {N::scale, kPerRow}}, {0},
       {"dims of scale 'i1'", "got [1, 4, 3, 3]", "expected [1, 1, 1, 3]"});
  norm("norm scale of integers", layer, {{N::x, kImages}, {N::scale, kPerRow}}, {0},
       {"dtype of scale 'i1'", "got i32", "expected a floating-point type"}, i32);
  norm("norm bias dims", batch, {{N::x, kImages}, {N::scale, kPerChannel}, {N::bias, {1, 3, 1, 1}}},
       {0}, {"dims of bias 'i2'", "got [1, 3, 1, 1]", "expected [1, 4, 1, 1]"});
  norm("norm epsilon tensor of many", layer, {{N::x, kImages}, {N::epsilon_tensor, kPerChannel}},
       {0}, {"dims of epsilon_tensor 'i1'", "got [1, 4, 1, 1]", "expected a single element"});
  norm("norm epsilon tensor of integers", layer,
       {{N::x, kImages}, {N::epsilon_tensor, {1, 1, 1, 1}}}, {0},
       {"dtype of epsilon_tensor 'i1'", "got i64", "expected a floating-point type"}, i64);
  norm("norm mean dims", inference,
       {{N::x, kImages}, {N::mean, kImages}, {N::inv_variance, kPerChannel}}, {0},
       {"dims of mean 'i1'", "got [2, 4, 3, 3]", "expected [1, 4, 1, 1]"});
  norm("norm mean alone", inference, {{N::x, kImages}, {N::mean, kPerChannel}}, {0},
       {"mean and inv_variance", "got one of them", "expected both or neither"});
  norm("norm running mean alone", batch, {{N::x, kImages}, {N::running_mean, kPerChannel}}, {0},
       {"running_mean and running_var", "got one of them", "expected both or neither"});
  norm("running statistics of layer norm", layer,
       {{N::x, kImages}, {N::running_mean, {2, 1, 1, 1}}, {N::running_var, {2, 1, 1, 1}}}, {0},
       {"input running_mean", "got a tensor", "expected none: only batch norm"});
  norm("statistics in training", batch,
       {{N::x, kImages}, {N::mean, kPerChannel}, {N::inv_variance, kPerChannel}}, {0},
       {"input mean", "got a tensor", "expected none: only batch norm in inference"});
  norm("batch norm inference without statistics", inference, {{N::x, kImages}}, {0},
       {"statistics", "got none", "expected mean and inv_variance, or running_mean"});
  norm("batch norm inference with all statistics", inference,
       {{N::x, kImages},
        {N::mean, kPerChannel},
        {N::inv_variance, kPerChannel},
        {N::running_mean, kPerChannel},
        {N::running_var, kPerChannel}},
       {0}, {"statistics", "got both kinds", "expected mean and inv_variance, or running_mean"});
  norm("next running statistics of nothing", batch, {{N::x, kImages}}, {0, N::next_running_mean},
       {"next_running_mean", "got a tensor", "expected running_mean and running_var as inputs"});
  norm("next running statistics in inference", inference,
       {{N::x, kImages}, {N::running_mean, kPerChannel}, {N::running_var, kPerChannel}},
       {0, N::next_running_var},
       {"next_running_var", "got a tensor", "expected running_mean and running_var as inputs"});
  norm("mean of rms norm", rms, {{N::x, kImages}}, {0, N::out_mean},
       {"output out_mean", "got a tensor", "expected none: rms norm has no mean"});
  for (int slot : {N::out_mean, N::out_inv_variance})
    norm(slot == N::out_mean ? "mean in inference" : "inv_variance in inference", inference,
         {{N::x, kImages}, {N::running_mean, kPerChannel}, {N::running_var, kPerChannel}},
         {0, slot},
         {slot == N::out_mean ? "output out_mean" : "output out_inv_variance", "got a tensor",
          "expected none: batch norm in inference"});
  rows.push_back({"norm of integers",
                  "norm_forward",
                  [](Graph& g) { g.norm(in(g, kImages, i8), {}, {}, kBad); },
                  {"dtype of x 'i0'", "got i8", "expected a floating-point type"}});
}

void add_norm_backward(BadInputs& rows) {
  const auto backward = [&](const char* name, const NormBackward& op, const Dims& dy,
                            const Dims& scale, const Dims& mean, const Dims& inv_variance,
                            std::vector<std::string> says) {
    rows.push_back({name, "norm_backward",
                    [=](Graph& g) {
                      const auto given = [&](const Dims& dims) {
                        return dims.empty() ? Value() : in(g, dims);
                      };
                      const Value x = in(g, kImages), gradient = in(g, dy), factor = given(scale);
                      const Value m = given(mean), v = given(inv_variance);
                      g.norm_backward(x, gradient, op,
                                      {.scale = factor, .mean = m, .inv_variance = v}, kBad);
                    },
                    says});
  };
  const NormBackward batch{.mode = NormMode::batch}, rms{.mode = NormMode::rms};
  const Dims rms_mean = {2, 1, 1, 1};
  backward("norm_backward dy", batch, {2, 4, 3, 2}, {}, {}, {},
           {"dims of dy 'i1'", "got [2, 4, 3, 2]", "expected [2, 4, 3, 3]"});
  backward("norm_backward scale", batch, kImages, {1, 3, 1, 1}, {}, {},
           {"dims of scale 'i2'", "got [1, 3, 1, 1]", "expected [1, 4, 1, 1]"});
  backward("norm_backward mean alone", batch, kImages, kPerChannel, kPerChannel, {},
           {"mean and inv_variance", "got one of them", "expected both or neither"});
  backward("norm_backward statistics", batch, kImages, kPerChannel, kImages, kPerChannel,
           {"dims of mean 'i3'", "got [2, 4, 3, 3]", "expected [1, 4, 1, 1]"});
  backward("norm_backward mean of rms", rms, kImages, {}, rms_mean, rms_mean,
           {"input mean", "got a tensor", "expected none: rms norm has no mean"});
  backward("norm_backward groups", {.mode = NormMode::group, .groups = 5}, kImages, {}, {}, {},
           {"groups", "got 5", "expected a divisor of the 4 channels"});
  backward("norm_backward epsilon", {.epsilon = -2.0}, kImages, {}, {}, {},
           {"epsilon", "got -2", "expected a value of at least 0"});
  rows.push_back(
      {"norm_backward integer gradient",
       "norm_backward",
       [](Graph& g) { g.norm_backward(in(g, kImages), in(g, kImages, i32), {}, {}, kBad); },
       {"dtype of dy 'i", "got i32", "expected a floating-point type"}});
}

}  // namespace

void add_bad_norms(BadInputs& rows) {
  add_norm_forward(rows);
  add_norm_backward(rows);
}

}  // namespace ashlar::tests

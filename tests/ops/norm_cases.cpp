// Cases of normalisation.
#include "graph/enum_names.hpp"
#include "graph/norm_shapes.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

struct NormProblem {
  NormMode mode;
  std::string label;
  Dims x;
  Dims axes = {};
  std::int64_t groups = 1;
  bool one_shape = true;
};

std::vector<NormProblem> norm_problems() {
  return {
      {NormMode::layer, "rows", {7, 33}, {1}, 1, false},
      {NormMode::layer, "two axes", {3, 4, 5, 6}, {2, 3}},
      {NormMode::layer, "first axis", {9, 4}, {0}},
      {NormMode::layer, "one element", {3, 1}, {1}},
      {NormMode::layer, "no rows", {0, 5}, {1}},
      {NormMode::rms, "rows", {5, 67}, {1}, 1, false},
      {NormMode::rms, "middle axis", {2, 7, 3}, {1}},
      {NormMode::ada_layer, "tokens", {3, 4, 17}, {2}, 1, false},
      {NormMode::ada_layer, "whole images", {2, 3, 4, 5}, {1, 2, 3}},
      {NormMode::ada_layer, "rows", {5, 9}, {1}},
      {NormMode::batch, "images", {3, 5, 4, 3}, {}, 1, false},
      {NormMode::batch, "no spatial axes", {6, 7}},
      {NormMode::batch, "one batch", {1, 3, 5}},
      {NormMode::instance, "images", {2, 3, 5, 4}, {}, 1, false},
      {NormMode::instance, "three spatial axes", {2, 2, 2, 3, 2}},
      {NormMode::group, "images", {2, 6, 3, 5}, {}, 3, false},
      {NormMode::group, "one group", {2, 4, 7}, {}, 1},
      {NormMode::group, "one channel per group", {1, 5, 6}, {}, 5},
  };
}

void add_forward(std::vector<OpCase>& cases, const NormProblem& p) {
  const NormShapes shapes = norm_shapes(p.mode, p.x, p.axes, p.groups);
  const std::string name = std::string(enum_name(p.mode)) + ", " + p.label;
  const auto attributes = [p](NormPhase phase) {
    return NormForward{
        .mode = p.mode, .phase = phase, .epsilon = 0x1p-8, .groups = p.groups, .axes = p.axes};
  };
  cases.push_back(
      {"norm_forward", name + ", training", kFloating,
       [=](CaseBuilder& b) {
         const Value x = b.operand("x", p.x);
         const Value scale = b.input("scale", shapes.parameters, b.wide());
         const Value bias = b.input("bias_parameter", shapes.parameters, b.wide());
         Value mean, variance;
         if (p.mode == NormMode::batch) {
           mean = b.input("running_mean", shapes.statistics, b.wide());
           variance = b.input("running_var", shapes.statistics, b.wide());
         }
         const NormResults r = b.graph().norm(
             x, attributes(NormPhase::training),
             {.scale = scale, .bias = bias, .running_mean = mean, .running_var = variance});
         b.result(r.y);
         if (r.mean) b.result("mean_out", r.mean);
         b.result("inv_variance_out", r.inv_variance);
         if (r.next_running_mean) b.result("next_mean", r.next_running_mean);
         if (r.next_running_var) b.result("next_var", r.next_running_var);
       },
       false, p.one_shape});
  cases.push_back({"norm_forward", name + ", inference", kFloating,
                   [=](CaseBuilder& b) {
                     const Value x = b.operand("x", p.x);
                     Value mean, variance;
                     if (p.mode == NormMode::batch) {
                       mean = b.input("mean", shapes.statistics, b.wide());
                       variance = b.input("inv_variance", shapes.statistics, b.wide());
                     }
                     const Value scale = b.input("scale", shapes.parameters, b.dtype());
                     b.result(b.graph()
                                  .norm(x, attributes(NormPhase::inference),
                                        {.scale = scale, .mean = mean, .inv_variance = variance})
                                  .y);
                   },
                   false, true});
}

void add_backward(std::vector<OpCase>& cases, const NormProblem& p) {
  const NormShapes shapes = norm_shapes(p.mode, p.x, p.axes, p.groups);
  for (bool given : {false, true})
    cases.push_back(
        {"norm_backward",
         std::string(enum_name(p.mode)) + ", " + p.label + (given ? ", given statistics" : ""),
         kFloating,
         [=](CaseBuilder& b) {
           const Value x = b.operand("x", p.x), dy = b.operand("dy", p.x);
           const Value scale = b.input("scale", shapes.parameters, b.wide());
           Value mean, inv_variance;
           if (given && p.mode != NormMode::rms)
             mean = b.input("mean", shapes.statistics, b.wide());
           if (given) inv_variance = b.input("inv_variance", shapes.statistics, b.wide());
           const NormGradients r = b.graph().norm_backward(
               x, dy, {.mode = p.mode, .epsilon = 0x1p-8, .groups = p.groups, .axes = p.axes},
               {.scale = scale, .mean = mean, .inv_variance = inv_variance});
           b.result(r.dx);
           b.result("dscale", r.dscale);
           b.result("dbias", r.dbias);
         },
         false, p.one_shape || given});
}

void add_softmax(std::vector<OpCase>& cases) {
  struct Rows {
    std::string label;
    Dims x;
    std::int64_t axis;
    bool one_shape = true;
  };
  for (bool log : {false, true})
    for (const Rows& p : {Rows{"rows", {5, 37}, -1, false}, Rows{"columns", {37, 5}, 0, false},
                          Rows{"middle", {2, 7, 3, 2}, 1}, Rows{"extent 1", {4, 1}, 1},
                          Rows{"no elements", {3, 0}, 1}, Rows{"long", {2, 1031}, 1}}) {
      const std::string label = (log ? "log, " : "") + p.label;
      const SoftmaxAttributes attributes{.axis = p.axis, .log = log};
      cases.push_back(
          {"softmax_forward", label, kFloating,
           [=](CaseBuilder& b) { b.result(b.graph().softmax(b.operand("x", p.x), attributes)); },
           false, p.one_shape});
      cases.push_back(
          {"softmax_forward", label + ", with stats", kFloating,
           [=](CaseBuilder& b) {
             Graph& g = b.graph();
             const Value x = b.operand("x", p.x);
             Tensor y{.name = "y", .infer_dtype = true};
             Tensor stats{.name = "stats", .kind = TensorKind::output, .infer_dtype = true};
             Node node{.name = "softmax",
                       .op = SoftmaxForward{attributes},
                       .inputs = {x.id()},
                       .outputs = {},
                       .compute = b.wide()};
             node.outputs = {g.add_tensor(std::move(y)), g.add_tensor(std::move(stats))};
             const TensorId id = node.outputs[0];
             g.add_node(std::move(node));
             b.result(g.value(id));
           },
           false, true});
      cases.push_back({"softmax_backward", label, kFloating,
                       [=](CaseBuilder& b) {
                         const Value y = b.operand("y", p.x), dy = b.operand("dy", p.x);
                         b.result(b.graph().softmax_backward(y, dy, attributes));
                       },
                       false, p.one_shape});
    }
}

}  // namespace

std::vector<OpCase> norm_cases() {
  std::vector<OpCase> cases;
  for (const NormProblem& p : norm_problems()) {
    add_forward(cases, p);
    add_backward(cases, p);
  }
  add_softmax(cases);
  return cases;
}

}  // namespace ashlar::ops

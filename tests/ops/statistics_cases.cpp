// gen_stats, bn_finalize, bn_backward_weights, local norms, reductions with an index, and batch
// norm with addition, activation and mask.
#include "graph/enum_names.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

struct Images {
  std::string label;
  Dims x;
  bool one_shape = true;
};

Dims channel_dims(const Dims& x) {
  Dims dims = Dims::filled(x.rank(), 1);
  dims[1] = x[1];
  return dims;
}

std::vector<Images> images() {
  return {{"images", {3, 5, 4, 3}, false},
          {"no spatial axes", {7, 6}},
          {"three spatial axes", {2, 3, 2, 3, 4}},
          {"one element each", {1, 9, 1}},
          {"no images", {0, 4, 3}}};
}

void add_sums(std::vector<OpCase>& cases) {
  for (const Images& p : images()) {
    cases.push_back({"gen_stats", p.label, kFloating,
                     [=](CaseBuilder& b) {
                       const auto r =
                           b.graph().apply(GenStats{}, {{GenStats::x, b.operand("x", p.x)}},
                                           {GenStats::sum, GenStats::sq_sum});
                       b.result(r[GenStats::sum]);
                       b.result("sq_sum_out", r[GenStats::sq_sum]);
                     },
                     true, p.one_shape});
    for (bool line : {false, true})
      cases.push_back(
          {"bn_backward_weights", p.label + (line ? ", with coefficients" : ""), kFloating,
           [=](CaseBuilder& b) {
             using Bn = BnBackwardWeights;
             const Dims channels = channel_dims(p.x);
             const Value x = b.operand("x", p.x), dy = b.operand("dy", p.x);
             std::vector<Wanted<Bn>> wanted = {Bn::dscale, Bn::dbias};
             if (line) wanted.insert(wanted.end(), {Bn::eq_dy_scale, Bn::eq_x_scale, Bn::eq_bias});
             const std::vector<Operand<Bn>> operands = {
                 {Bn::x, x},
                 {Bn::dy, dy},
                 {Bn::mean, b.input("mean", channels, b.wide())},
                 {Bn::inv_variance, b.input("inv_variance", channels, b.wide())},
                 {Bn::scale, b.input("scale", channels, b.dtype())}};
             const auto r = b.graph().apply(Bn{}, operands, wanted);
             b.result(r[Bn::dscale]);
             b.result("dbias_out", r[Bn::dbias]);
             if (!line) return;
             for (Bn::Out slot : {Bn::eq_dy_scale, Bn::eq_x_scale, Bn::eq_bias})
               b.result("line" + std::to_string(slot), r[slot]);
           },
           false, p.one_shape || line});
  }
}

void add_finalize(std::vector<OpCase>& cases) {
  using Bn = BnFinalize;
  const Dims channels = {1, 11, 1, 1};
  const auto parameters = [channels](CaseBuilder& b) {
    return std::vector<Operand<Bn>>{{Bn::scale, b.operand("scale", channels)},
                                    {Bn::bias, b.input("shift", channels, b.wide())}};
  };
  const auto running = [channels](CaseBuilder& b, std::vector<Operand<Bn>>& operands) {
    operands.push_back({Bn::running_mean, b.input("running_mean", channels, b.wide())});
    operands.push_back({Bn::running_var, b.input("running_var", channels, b.wide())});
  };
  const auto add = [&](const char* label, bool tensors) {
    cases.push_back(
        {"bn_finalize", label, kFloating,
         [=](CaseBuilder& b) {
           std::vector<Operand<Bn>> operands = parameters(b);
           operands.push_back({Bn::sum, b.input("sum", channels, b.wide())});
           operands.push_back({Bn::sq_sum, b.input("sq_sum", channels, b.wide())});
           running(b, operands);
           if (tensors) {
             operands.push_back({Bn::epsilon_tensor, b.graph().scalar("epsilon", f32)});
             operands.push_back({Bn::momentum_tensor, b.graph().scalar("momentum", f32)});
             operands.push_back({Bn::count_tensor, b.graph().scalar("count", i64)});
           }
           const std::vector<Wanted<Bn>> wanted = {Bn::eq_scale,          Bn::eq_bias,
                                                   Bn::saved_mean,        Bn::saved_inv_variance,
                                                   Bn::next_running_mean, Bn::next_running_var};
           const auto r =
               b.graph().apply(Bn{.epsilon = 0x1p-8, .count = tensors ? 0 : 37}, operands, wanted);
           b.result(r[Bn::eq_scale]);
           for (std::size_t slot = 1; slot < r.all().size(); ++slot)
             b.result("out" + std::to_string(slot), r.all()[slot]);
         },
         false, tensors});
  };
  add("training", false);
  add("training, numbers from tensors", true);
  cases.push_back(
      {"bn_finalize", "inference", kFloating,
       [=](CaseBuilder& b) {
         std::vector<Operand<Bn>> operands = parameters(b);
         running(b, operands);
         const std::vector<Wanted<Bn>> wanted = {Bn::eq_scale, Bn::eq_bias, Bn::saved_inv_variance};
         const auto r = b.graph().apply(Bn{.phase = NormPhase::inference}, operands, wanted);
         b.result(r[Bn::eq_scale]);
         b.result("eq_bias_out", r[Bn::eq_bias]);
         b.result("inv_out", r[Bn::saved_inv_variance]);
       },
       false, true});
}

struct Window {
  std::string label;
  Dims x;
  LocalNormAttributes attributes;
  bool one_shape = true;
};

void add_lrn(std::vector<OpCase>& cases) {
  for (const Window& p :
       {Window{"channels", {2, 9, 4, 5}, {.window = 5, .alpha = 0.5}, false},
        Window{"even window", {3, 8, 7}, {.window = 4, .alpha = 1.0, .beta = 0.5, .k = 1.0}},
        Window{"no spatial axes", {4, 13}, {.window = 3, .alpha = 0.7, .beta = 1.0}},
        Window{"window past all channels", {2, 3, 6}, {.window = 16, .beta = 0.6, .k = 0.5}},
        Window{"window of one", {2, 3, 2, 2, 2}, {.window = 1, .alpha = 2.0, .beta = 1.5}},
        Window{"nothing", {2, 0, 4}, {}}}) {
    cases.push_back({"lrn_forward", p.label, kFloating,
                     [=](CaseBuilder& b) {
                       b.result(b.graph().apply(LrnForward{p.attributes},
                                                {{LrnForward::x, b.operand("x", p.x)}},
                                                {LrnForward::y}));
                     },
                     false, p.one_shape});
    cases.push_back({"lrn_backward", p.label, kFloating,
                     [=](CaseBuilder& b) {
                       const Value x = b.operand("x", p.x), dy = b.operand("dy", p.x);
                       b.result(b.graph().apply(LrnBackward{p.attributes},
                                                {{LrnBackward::x, x}, {LrnBackward::dy, dy}},
                                                {LrnBackward::dx}));
                     },
                     false, p.one_shape});
  }
}

void add_divisive(std::vector<OpCase>& cases) {
  for (const Window& p :
       {Window{"images", {2, 3, 7, 6}, {.window = 3, .alpha = 0.5}, false},
        Window{"even window", {1, 2, 9}, {.window = 4, .alpha = 1.0, .beta = 0.5, .k = 1.0}},
        Window{"three spatial axes", {1, 2, 3, 4, 3}, {.window = 2, .alpha = 0.7, .beta = 1.0}},
        Window{"window past the image", {2, 1, 3, 4}, {.window = 9, .beta = 0.6, .k = 0.5}}})
    for (bool with_means : {false, true}) {
      const std::string label = p.label + (with_means ? ", with means" : "");
      const bool one_shape = p.one_shape || with_means;
      cases.push_back(
          {"divisive_norm_forward", label, kFloating,
           [=](CaseBuilder& b) {
             using Op = DivisiveNormForward;
             const Value x = b.operand("x", p.x);
             const Value means = with_means ? b.input("means", p.x, b.wide()) : Value();
             b.result(b.graph().apply(Op{p.attributes}, {{Op::x, x}, {Op::means, means}}, {Op::y}));
           },
           false, one_shape});
      cases.push_back({"divisive_norm_backward", label, kFloating,
                       [=](CaseBuilder& b) {
                         using Op = DivisiveNormBackward;
                         const Value x = b.operand("x", p.x), dy = b.operand("dy", p.x);
                         const Value means = with_means ? b.input("means", p.x, b.wide()) : Value();
                         const std::vector<Operand<Op>> operands = {
                             {Op::x, x}, {Op::dy, dy}, {Op::means, means}};
                         std::vector<Wanted<Op>> wanted = {Op::dx};
                         if (with_means) wanted.push_back(Op::dmeans);
                         const auto r = b.graph().apply(Op{p.attributes}, operands, wanted);
                         b.result(r[Op::dx]);
                         if (with_means) b.result("dmeans_out", r[Op::dmeans]);
                       },
                       false, one_shape});
    }
}

void add_indices(std::vector<OpCase>& cases) {
  for (ReductionMode mode : {ReductionMode::min, ReductionMode::max, ReductionMode::amax})
    for (const auto& [label, x, axes] : {std::tuple<const char*, Dims, Dims>{"rows", {5, 37}, {1}},
                                         {"columns", {37, 5}, {0}},
                                         {"outer and inner", {3, 4, 5, 2}, {0, 2}},
                                         {"all", {4, 3, 6}, {0, 1, 2}},
                                         {"of nothing", {3, 0}, {1}}})
      cases.push_back({"reduction", std::string(enum_name(mode)) + " with index, " + label,
                       kArithmetic,
                       [mode = mode, x = x, axes = axes](CaseBuilder& b) {
                         const auto r = b.graph().apply(Reduction{.mode = mode, .axes = axes},
                                                        {{Reduction::x, b.operand("x", x)}},
                                                        {Reduction::y, {Reduction::index, i64}});
                         b.result(r[Reduction::y]);
                         b.result("index_out", r[Reduction::index]);
                       },
                       true, std::string(label) != "outer and inner"});
}

// y = relu(norm(x) + z) with mask = norm(x) + z > 0, and its gradient, as frameworks write them.
void add_masked_norm(std::vector<OpCase>& cases) {
  const Dims dims = {3, 5, 4, 3};
  cases.push_back(
      {"norm_forward", "batch, momentum from a tensor, addition, relu and mask", kFloating,
       [=](CaseBuilder& b) {
         using N = NormForward;
         Graph& g = b.graph();
         const Dims channels = channel_dims(dims);
         const std::vector<Operand<N>> operands = {
             {N::x, b.operand("x", dims)},
             {N::scale, b.input("scale", channels, b.wide())},
             {N::bias, b.input("shift", channels, b.wide())},
             {N::running_mean, b.input("running_mean", channels, b.wide())},
             {N::running_var, b.input("running_var", channels, b.wide())},
             {N::epsilon_tensor, g.scalar("epsilon", f32)},
             {N::momentum_tensor, g.scalar("momentum", f32)}};
         const std::vector<Wanted<N>> wanted = {N::y, N::out_mean, N::out_inv_variance,
                                                N::next_running_mean, N::next_running_var};
         const auto r = g.apply(N{.mode = NormMode::batch}, operands, wanted);
         const Value sum = r[N::y] + b.input("z", dims, b.dtype());
         b.result("mask", pointwise(PointwiseMode::cmp_gt, sum, g.constant(0.0, b.wide())));
         for (std::size_t slot = 1; slot < r.all().size(); ++slot)
           b.result("out" + std::to_string(slot), r.all()[slot]);
         b.result(relu(sum));
       },
       false, false});
  cases.push_back({"norm_backward", "batch, gradient through a mask", kFloating,
                   [=](CaseBuilder& b) {
                     Graph& g = b.graph();
                     const Dims channels = channel_dims(dims);
                     const Value x = b.operand("x", dims), dy = b.operand("dy", dims);
                     const Value mask = b.input("mask", dims, boolean);
                     const Value dz = select(mask, dy, g.constant(0.0, b.dtype()));
                     const NormGradients r = g.norm_backward(
                         x, dz, {.mode = NormMode::batch},
                         {.scale = b.input("scale", channels, b.wide()),
                          .mean = b.input("mean", channels, b.wide()),
                          .inv_variance = b.input("inv_variance", channels, b.wide())});
                     b.result(r.dx);
                     b.result("dscale_out", r.dscale);
                     b.result("dbias_out", r.dbias);
                     b.result("dz", dz);
                   },
                   false, false});
}

}  // namespace

std::vector<OpCase> statistics_cases() {
  std::vector<OpCase> cases;
  add_sums(cases);
  add_finalize(cases);
  add_lrn(cases);
  add_divisive(cases);
  add_indices(cases);
  add_masked_norm(cases);
  return cases;
}

}  // namespace ashlar::ops

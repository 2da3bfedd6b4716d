// Invalid inputs of split batch norm and local norms.
#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

const Dims kStatImages = {2, 4, 3, 3};
const Dims kStatChannels = {1, 4, 1, 1};
const Dims kOneNumber = {1, 1, 1, 1};

// An operand of a row: its slot, dims and dtype.
template <class Op>
struct Part {
  typename Op::In slot;
  Dims dims;
  DType dtype = f32;
};

// A row with one node of these operands, by slot, and all the named outputs.
template <class Op>
void row(BadInputs& rows, const char* name, const char* op_name, const Op& op,
         const std::vector<std::type_identity_t<Part<Op>>>& parts,
         const std::vector<std::type_identity_t<Wanted<Op>>>& wanted,
         const std::vector<std::string>& says) {
  rows.push_back({name, op_name,
                  [=](Graph& g) {
                    std::vector<Operand<Op>> operands;
                    for (const Part<Op>& part : parts)
                      operands.push_back({part.slot, in(g, part.dims, part.dtype)});
                    g.apply(op, operands, wanted, kBad);
                  },
                  says});
}

void add_gen_stats(BadInputs& rows) {
  const auto bad = [&](const char* name, const Part<GenStats>& x,
                       const std::vector<Wanted<GenStats>>& wanted,
                       const std::vector<std::string>& says) {
    row(rows, name, "gen_stats", GenStats{}, {x}, wanted, says);
  };
  bad("gen_stats of a vector", {GenStats::x, {4}}, {GenStats::sum, GenStats::sq_sum},
      {"rank of x 'i0'", "got 1", "expected 2 to 8"});
  bad("gen_stats of integers", {GenStats::x, kStatImages, i32}, {GenStats::sum, GenStats::sq_sum},
      {"dtype of x 'i0'", "got i32", "expected a floating-point type"});
  bad("gen_stats of other channels", {GenStats::x, kStatImages},
      {GenStats::sum, {GenStats::sq_sum, {}, {1, 3, 1, 1}}},
      {"dims of sq_sum", "got [1, 3, 1, 1]", "expected [1, 4, 1, 1]"});
  bad("gen_stats without squares", {GenStats::x, kStatImages}, {GenStats::sum},
      {"output sq_sum", "got nothing", "expected a tensor"});
}

void add_finalize(BadInputs& rows) {
  using Bn = BnFinalize;
  const Bn training{.count = 9}, inference{.phase = NormPhase::inference};
  const std::vector<Wanted<Bn>> plain = {Bn::eq_scale, Bn::eq_bias};
  const auto bad = [&](const char* name, const Bn& op, std::vector<Part<Bn>> parts,
                       const std::vector<Wanted<Bn>>& wanted,
                       const std::vector<std::string>& says) {
    parts.insert(parts.begin(), {{Bn::scale, kStatChannels}, {Bn::bias, kStatChannels}});
    row(rows, name, "bn_finalize", op, parts, wanted, says);
  };
  const std::vector<Part<Bn>> sums = {{Bn::sum, kStatChannels}, {Bn::sq_sum, kStatChannels}};
  const auto with = [&](std::vector<Part<Bn>> more) {
    more.insert(more.begin(), sums.begin(), sums.end());
    return more;
  };
  row(rows, "bn_finalize of images", "bn_finalize", training,
      {{Bn::scale, kStatImages}, {Bn::bias, kStatImages}}, plain,
      {"dims of scale 'i0'", "got [2, 4, 3, 3]", "expected [1, 4, 1, 1]"});
  row(rows, "bn_finalize scale of a vector", "bn_finalize", training,
      {{Bn::scale, {4}}, {Bn::bias, {4}}}, plain,
      {"rank of scale 'i0'", "got 1", "expected 2 to 8"});
  bad("bn_finalize of one sum", training, {{Bn::sum, kStatChannels}}, plain,
      {"sum and sq_sum", "got one of them", "expected both or neither"});
  bad("bn_finalize of no sums", training, {}, plain,
      {"input sum", "got nothing", "expected a tensor in training"});
  bad("bn_finalize of other sums", training, {{Bn::sum, {1, 3, 1, 1}}, {Bn::sq_sum, kStatChannels}},
      plain, {"dims of sum 'i2'", "got [1, 3, 1, 1]", "expected [1, 4, 1, 1]"});
  bad("bn_finalize of integer sums", training,
      {{Bn::sum, kStatChannels, i32}, {Bn::sq_sum, kStatChannels}}, plain,
      {"dtype of sum 'i2'", "got i32", "expected a floating-point type"});
  bad("bn_finalize inference of sums", inference, sums, plain,
      {"input running_mean", "got nothing", "expected a tensor in inference"});
  bad("bn_finalize of one running statistic", training, with({{Bn::running_mean, kStatChannels}}),
      plain, {"running_mean and running_var", "got one of them", "expected both or neither"});
  bad("bn_finalize without count", {}, sums, plain,
      {"count", "got 0", "expected at least 1, or a count_tensor"});
  bad("bn_finalize of negative count", {.count = -2}, sums, plain,
      {"count", "got -2", "expected at least 0"});
  bad("bn_finalize epsilon", {.epsilon = -1.0, .count = 9}, sums, plain,
      {"epsilon", "got -1", "expected a value of at least 0"});
  bad("bn_finalize count of many", training, with({{Bn::count_tensor, kStatChannels, i64}}), plain,
      {"dims of count_tensor 'i4'", "got [1, 4, 1, 1]", "expected a single element"});
  bad("bn_finalize count of truths", training, with({{Bn::count_tensor, kOneNumber, boolean}}),
      plain, {"dtype of count_tensor 'i4'", "got bool", "expected a numeric type"});
  bad("bn_finalize momentum of integers", training, with({{Bn::momentum_tensor, kOneNumber, i32}}),
      plain, {"dtype of momentum_tensor 'i4'", "got i32", "expected a floating-point type"});
  bad("bn_finalize next of nothing", training, sums,
      {Bn::eq_scale, Bn::eq_bias, Bn::next_running_mean},
      {"next_running_mean", "got a tensor", "expected running_mean and running_var as inputs"});
  bad("bn_finalize next in inference", inference,
      {{Bn::running_mean, kStatChannels}, {Bn::running_var, kStatChannels}},
      {Bn::eq_scale, Bn::eq_bias, Bn::next_running_var},
      {"next_running_var", "got a tensor", "expected running_mean and running_var as inputs"});
}

void add_backward_weights(BadInputs& rows) {
  using Bn = BnBackwardWeights;
  const std::vector<Wanted<Bn>> wanted = {Bn::dscale, Bn::dbias};
  const auto bad = [&](const char* name, const Dims& dy, const Part<Bn>& mean, DType scale,
                       const std::vector<std::string>& says) {
    row(rows, name, "bn_backward_weights", Bn{},
        {{Bn::x, kStatImages},
         {Bn::dy, dy},
         mean,
         {Bn::inv_variance, kStatChannels},
         {Bn::scale, kStatChannels, scale}},
        wanted, says);
  };
  bad("bn_backward_weights dy", {2, 4, 3, 2}, {Bn::mean, kStatChannels}, f32,
      {"dims of dy 'i1'", "got [2, 4, 3, 2]", "expected [2, 4, 3, 3]"});
  bad("bn_backward_weights mean", kStatImages, {Bn::mean, {2, 4, 1, 1}}, f32,
      {"dims of mean 'i2'", "got [2, 4, 1, 1]", "expected [1, 4, 1, 1]"});
  bad("bn_backward_weights scale", kStatImages, {Bn::mean, kStatChannels}, i8,
      {"dtype of scale 'i4'", "got i8", "expected a floating-point type"});
  row(rows, "bn_backward_weights without statistics", "bn_backward_weights", Bn{},
      {{Bn::x, kStatImages}, {Bn::dy, kStatImages}, {Bn::scale, kStatChannels}}, wanted,
      {"input mean", "got nothing", "expected a tensor"});
}

// The operands under test: x, and dy or means.
template <class Op>
constexpr int operand_count() {
  return std::is_same_v<Op, LrnForward> ? 1 : 2;
}

template <class Op>
void add_local_norm(BadInputs& rows, const std::string& op_name, bool divisive) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto bad = [&](const char* name, const LocalNormAttributes& attributes, const Dims& x,
                       const Dims& second, DType dtype, const std::vector<std::string>& says) {
    rows.push_back({op_name + ": " + name, op_name,
                    [=](Graph& g) {
                      std::vector<AnyOperand> operands = {{0, in(g, x, dtype)}};
                      if (operand_count<Op>() > 1) operands.push_back({1, in(g, second)});
                      g.apply_any(Op{attributes}, operands, {}, kBad);
                    },
                    says});
  };
  bad("window", {.window = 0}, kStatImages, kStatImages, f32,
      {"window", "got 0", "expected at least 1"});
  bad("alpha", {.alpha = kNaN}, kStatImages, kStatImages, f32,
      {"alpha", "got nan", "expected a finite number"});
  bad("beta", {.beta = -std::numeric_limits<double>::infinity()}, kStatImages, kStatImages, f32,
      {"beta", "got -inf", "expected a finite number"});
  bad("k", {.k = -0.5}, kStatImages, kStatImages, f32,
      {"k: got -0.5", "expected a finite number, at least 0"});
  bad("integers", {}, kStatImages, kStatImages, i8,
      {"dtype of x 'i0'", "got i8", "a floating-point type"});
  if (divisive)
    bad("rank", {}, {2, 4}, {2, 4}, f32, {"rank of x 'i0'", "got 2", "expected 3 to 8"});
  else
    bad("rank", {}, {4}, {4}, f32, {"rank of x 'i0'", "got 1", "expected 2 to 8"});
  if (operand_count<Op>() > 1)
    bad("shapes", {}, kStatImages, {2, 4, 3, 1}, f32,
        {"got [2, 4, 3, 1]", "expected [2, 4, 3, 3]"});
}

void add_indices_and_norms(BadInputs& rows) {
  const auto reduce = [&](const char* name, ReductionMode mode, const Wanted<Reduction>& index,
                          const std::vector<std::string>& says) {
    row(rows, name, "reduction", Reduction{.mode = mode, .axes = {1}},
        {{Reduction::x, kStatImages}}, {Reduction::y, index}, says);
  };
  reduce("index of a sum", ReductionMode::add, Reduction::index,
         {"output index", "got a tensor", "none: add picks no element"});
  reduce("index as a fraction", ReductionMode::max, {Reduction::index, f32},
         {"dtype of index", "got f32", "expected i32 or i64"});
  reduce("index in other dims", ReductionMode::min, {Reduction::index, i32, kStatImages},
         {"dims of index", "got [2, 4, 3, 3]", "expected [2, 1, 3, 3]"});
  row(rows, "index past 32 bits", "reduction",
      Reduction{.mode = ReductionMode::max, .axes = {0, 1}},
      {{Reduction::x, {1 << 16, 1 << 16}, u8}}, {Reduction::y, Reduction::index},
      {"dtype of index", "got i32", "expected i64 for a reduction of 4294967296 elements"});

  using N = NormForward;
  const N adaptive{.mode = NormMode::ada_layer};
  row(rows, "ada_layer norm over the first axis", "norm_forward",
      N{.mode = NormMode::ada_layer, .axes = {0, 2}}, {{N::x, kStatImages}}, {N::y},
      {"axes", "got [0, 2]", "expected axes above 0"});
  row(rows, "ada_layer norm of a vector", "norm_forward", adaptive, {{N::x, {4}}}, {N::y},
      {"rank of x 'i0'", "got 1", "expected 2 to 8"});
  row(rows, "ada_layer norm with one scale for all", "norm_forward", adaptive,
      {{N::x, kStatImages}, {N::scale, {1, 4, 3, 3}}}, {N::y},
      {"dims of scale 'i1'", "got [1, 4, 3, 3]", "expected [2, 4, 3, 3]"});
  row(rows, "momentum tensor of layer norm", "norm_forward", N{},
      {{N::x, kStatImages}, {N::momentum_tensor, kOneNumber}}, {N::y},
      {"input momentum_tensor", "got a tensor", "expected none: only batch norm"});
  row(rows, "momentum tensor of many", "norm_forward", N{.mode = NormMode::batch},
      {{N::x, kStatImages}, {N::momentum_tensor, kStatChannels}}, {N::y},
      {"dims of momentum_tensor 'i1'", "got [1, 4, 1, 1]", "expected a single element"});
}

}  // namespace

void add_bad_statistics(BadInputs& rows) {
  add_gen_stats(rows);
  add_finalize(rows);
  add_backward_weights(rows);
  add_local_norm<LrnForward>(rows, "lrn_forward", false);
  add_local_norm<LrnBackward>(rows, "lrn_backward", false);
  add_local_norm<DivisiveNormForward>(rows, "divisive_norm_forward", true);
  add_local_norm<DivisiveNormBackward>(rows, "divisive_norm_backward", true);
  row(rows, "gradient of means that are not there", "divisive_norm_backward",
      DivisiveNormBackward{},
      {{DivisiveNormBackward::x, kStatImages}, {DivisiveNormBackward::dy, kStatImages}},
      {DivisiveNormBackward::dx, DivisiveNormBackward::dmeans},
      {"output dmeans", "got a tensor", "expected means as an input"});
  add_indices_and_norms(rows);
}

}  // namespace ashlar::tests

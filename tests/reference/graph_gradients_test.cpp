// gradients(): every rule against central differences, sums of several readers, refusals.
#include <numbers>

#include "graph/enum_names.hpp"
#include "graph/pointwise_traits.hpp"
#include "reference/differences.hpp"

namespace ashlar::reference {
namespace {

using testing::HasSubstr;
using M = PointwiseMode;

// --- pointwise

class PointwiseModes : public testing::TestWithParam<int> {};

TEST_P(PointwiseModes, MatchDifferences) {
  const auto mode = static_cast<M>(GetParam());
  for (const bool broadcasts : {false, true})
    expect_matching_gradients(
        [&](Graph& g) {
          const Value x = g.input("x", {3, 4}, f64);
          const Value b = g.input("b", broadcasts ? Dims{4} : Dims{3, 4}, f64);
          Pointwise op{.alpha1 = 1.25, .alpha2 = -0.75};
          op.relu_lower_clip = 0.5;
          op.relu_upper_clip = 1.75;
          op.relu_lower_slope = 0.2;
          op.swish_beta = 1.3;
          std::vector<Value> operands = {x};
          if (operand_count(mode) > 1) operands.push_back(b);
          if (mode == M::pow || mode == M::mod) op.alpha2 = 0.75;
          if (mode == M::binary_select)
            operands.push_back(g.pointwise(M::cmp_gt, std::array{x, g.constant(1.0, f64, 2)}));
          std::vector<Value> wrt = {x};
          const bool has_second = operand_count(mode) > 1 && mode != M::mod &&
                                  (!is_activation_gradient(mode) || mode == M::relu_bwd);
          if (has_second) wrt.push_back(b);
          return Function{g.pointwise(mode, operands, op), wrt};
        },
        0.25, 2.0);
}

std::vector<int> differentiable_modes() {
  std::vector<int> modes;
  for (int i = 0; i < kPointwiseModeCount; ++i) {
    const auto mode = static_cast<M>(i);
    const bool is_constant = mode == M::gen_index || mode == M::floor || mode == M::ceil ||
                             (mode >= M::trunc && mode <= M::sign);
    if (!gives_boolean(mode) && !is_bitwise(mode) && !is_constant) modes.push_back(i);
  }
  return modes;
}

INSTANTIATE_TEST_SUITE_P(All, PointwiseModes, testing::ValuesIn(differentiable_modes()),
                         [](const auto& one) {
                           return std::string(enum_name(static_cast<M>(one.param)));
                         });

TEST(PointwiseGradient, OfExpansionsSumsTheCopies) {
  expect_matching_gradients(
      [](Graph& g) {
        const Value x = g.input("x", {3, 1}, f64), row = g.input("row", {4}, f64);
        const Value wide =
            g.pointwise(M::identity, std::array{x}, {.alpha1 = 1.5}, {.dims = {2, 3, 4}});
        return Function{exp(wide) * expand(row, {2, 3, 4}), {x, row}};
      },
      0.25, 2.0);
}

TEST(PointwiseGradient, OfNegativeOperands) {
  for (const M mode : {M::abs, M::relu_fwd, M::tanh_fwd, M::gelu_fwd, M::max, M::min, M::mul})
    expect_matching_gradients([&](Graph& g) {
      const Value x = g.input("x", {3, 4}, f64), b = g.input("b", {3, 1}, f64);
      std::vector<Value> operands = {x};
      if (operand_count(mode) > 1) operands.push_back(b);
      return Function{g.pointwise(mode, operands, {.alpha1 = -1.5}), {x, b}};
    });
}

TEST(PointwiseGradient, TiesOfMaximumShare) {
  Graph g;
  const Value x = g.input("x", {1}, f64), b = g.input("b", {1}, f64);
  const Value y = maximum(x, b);
  const auto found = gradients(g, std::array{y}, std::array{x, b});
  g.output("dx", found[0]);
  g.output("db", found[1]);
  Evaluation evaluation(g);
  evaluation.set("x", {2.0});
  evaluation.set("b", {2.0});
  expect_result(evaluation, "dx", {0.5});
  expect_result(evaluation, "db", {0.5});
}

TEST(PointwiseGradient, OfPowersWithConstantExponents) {
  for (const double exponent : {0.0, 1.0, 2.0, 3.0, -1.0, 0.5})
    expect_matching_gradients(
        [&](Graph& g) {
          const Value x = g.input("x", {5}, f64);
          return Function{pointwise(M::pow, x, g.constant(exponent, f64, 1)), {x}};
        },
        0.5, 2.0);
}

// --- reductions

TEST(ReductionGradient, MatchesDifferences) {
  for (const ReductionMode mode :
       {ReductionMode::add, ReductionMode::mul, ReductionMode::min, ReductionMode::max,
        ReductionMode::amax, ReductionMode::avg, ReductionMode::norm1, ReductionMode::norm2,
        ReductionMode::mul_no_zeros})
    for (const Dims& axes : {Dims{1}, Dims{0, 2}, Dims{}})
      expect_matching_gradients([&](Graph& g) {
        const Value x = g.input("x", {2, 3, 4}, f64);
        return Function{g.reduce(x, mode, axes), {x}};
      });
}

TEST(ReductionGradient, EqualMaximaShare) {
  Graph g;
  const Value x = g.input("x", {4}, f64);
  g.output("dx", gradients(g, std::array{g.reduce(x, ReductionMode::max)}, std::array{x})[0]);
  Evaluation evaluation(g);
  evaluation.set("x", {1.0, 3.0, 3.0, -2.0});
  expect_result(evaluation, "dx", {0.0, 0.5, 0.5, 0.0});
}

// --- GEMM-like operations

TEST(MatmulGradient, MatchesDifferences) {
  const std::pair<Dims, Dims> shapes[] = {{{3, 4}, {4, 5}},
                                          {{2, 3, 4}, {2, 4, 2}},
                                          {{2, 3, 4}, {1, 4, 2}},
                                          {{1, 3, 4}, {3, 4, 2}},
                                          {{2, 1, 3, 4}, {1, 3, 4, 2}}};
  for (const auto& [a, b] : shapes)
    expect_matching_gradients([&, &a = a, &b = b](Graph& g) {
      const Value left = g.input("a", a, f64), right = g.input("b", b, f64);
      return Function{g.matmul(left, right), {left, right}};
    });
}

TEST(ConvolutionGradient, MatchesDifferences) {
  const ConvAttributes padded{
      .padding = {1, 0}, .post_padding = Dims{0, 1}, .stride = {2, 1}, .alpha = 1.5, .beta = 0.5};
  expect_matching_gradients([&](Graph& g) {
    const Value x = g.input("x", {2, 4, 5, 4}, f64), w = g.input("w", {6, 2, 2, 2}, f64);
    Dims dims =
        g.conv(x, w, {.padding = {1, 0}, .post_padding = Dims{0, 1}, .stride = {2, 1}}).dims();
    const Value z = g.input("z", dims, f64);
    return Function{g.conv(x, w, padded, {}, z), {x, w, z}};
  });
  expect_matching_gradients([&](Graph& g) {
    const Value dy = g.input("a", {1, 2, 3, 4}, f64), w = g.input("w", {2, 2, 2, 2}, f64);
    return Function{g.conv_backward_data(
                        dy, w, {.padding = {1, 0}, .post_padding = Dims{0, 1}, .stride = {2, 1}},
                        of_dims({1, 2, 5, 4})),
                    {dy, w}};
  });
  expect_matching_gradients([&](Graph& g) {
    const Value x = g.input("x", {1, 2, 5, 4}, f64), dy = g.input("a", {1, 3, 3, 2}, f64);
    return Function{
        g.conv_backward_filter(x, dy, {.mode = ConvMode::convolution}, of_dims({3, 2, 3, 3})),
        {x, dy}};
  });
}

TEST(CausalConvolutionGradient, MatchesDifferences) {
  using Op = CausalConvForward;
  expect_matching_gradients([&](Graph& g) {
    const Value x = g.input("x", {2, 3, 7}, f64), w = g.input("w", {3, 3}, f64);
    const Value bias = g.input("bias", {3}, f64), state = g.input("state", {2, 3, 2}, f64);
    Op op;
    op.activation = CausalConvActivation::silu;
    const Value y =
        g.apply(op, {{Op::x, x}, {Op::w, w}, {Op::bias, bias}, {Op::initial_state, state}});
    return Function{y, {x, w, bias, state}};
  });
}

TEST(MixtureGradient, MatchesDifferences) {
  using Op = MoeGroupedMatmul;
  expect_matching_gradients(
      [&](Graph& g) {
        const Value token = g.input("token", {1, 6, 4}, f64);
        const Value weight = g.input("weight", {3, 4, 5}, f64);
        const Value offsets = g.input("offsets", {3, 1, 1}, i32);
        const Value y = g.apply(
            Op{}, {{Op::token, token}, {Op::weight, weight}, {Op::first_token_offset, offsets}});
        return Function{y, {token, weight}};
      },
      -1.0, 1.0,
      [](Evaluation& e) {
        e.set("offsets", {0, 2, 3});
      });
}

// --- norms, softmax, attention

TEST(NormGradient, MatchesDifferences) {
  struct Case {
    NormMode mode;
    Dims x, parameters;
    std::int64_t groups = 1;
  };
  const Case cases[] = {
      {NormMode::layer, {3, 5}, {1, 5}},           {NormMode::rms, {3, 5}, {1, 5}},
      {NormMode::ada_layer, {2, 3, 5}, {2, 1, 5}}, {NormMode::batch, {3, 2, 4}, {1, 2, 1}},
      {NormMode::instance, {2, 3, 4}, {1, 3, 1}},  {NormMode::group, {2, 4, 3}, {1, 4, 1}, 2}};
  for (const Case& one : cases)
    for (const NormPhase phase : {NormPhase::training, NormPhase::inference}) {
      if (one.mode == NormMode::batch && phase == NormPhase::inference) continue;
      expect_matching_gradients([&](Graph& g) {
        const Value x = g.input("x", one.x, f64);
        const Value scale = g.input("scale", one.parameters, f64);
        const Value bias = g.input("bias", one.parameters, f64);
        const NormForward op{
            .mode = one.mode, .phase = phase, .epsilon = 0.125, .groups = one.groups};
        return Function{g.norm(x, op, {.scale = scale, .bias = bias}).y, {x, scale, bias}};
      });
    }
}

TEST(NormGradient, OfBatchNormInInference) {
  for (const bool running : {false, true})
    expect_matching_gradients(
        [&](Graph& g) {
          const Value x = g.input("x", {3, 2, 4}, f64), scale = g.input("scale", {1, 2, 1}, f64);
          const Value bias = g.input("bias", {1, 2, 1}, f64);
          const Value mean = g.input("mean", {1, 2, 1}, f64), var = g.input("v", {1, 2, 1}, f64);
          NormOperands operands{.scale = scale, .bias = bias};
          (running ? operands.running_mean : operands.mean) = mean;
          (running ? operands.running_var : operands.inv_variance) = var;
          const NormForward op{
              .mode = NormMode::batch, .phase = NormPhase::inference, .epsilon = 0.125};
          return Function{g.norm(x, op, operands).y, {x, scale, bias}};
        },
        0.25, 1.5);
}

TEST(SoftmaxGradient, MatchesDifferences) {
  using Op = SoftmaxForward;
  for (const bool log : {false, true}) {
    Op op;
    op.log = log;
    op.axis = 1;
    expect_matching_gradients([&](Graph& g) {
      const Value x = g.input("x", {2, 5, 3}, f64);
      const auto out = g.apply(op, {{Op::x, x}}, {Op::stats});
      return Function{out[Op::y] * out[Op::stats], {x}};
    });
    expect_matching_gradients([&](Graph& g) {
      const Value y = g.input("a", {2, 5}, f64), dy = g.input("b", {2, 5}, f64);
      return Function{g.softmax_backward(y, dy, {.log = log}), {y, dy}};
    });
  }
}

TEST(AttentionGradient, MatchesDifferences) {
  expect_matching_gradients([&](Graph& g) {
    const Value q = g.input("q", {2, 4, 3, 5}, f64), k = g.input("k", {2, 2, 6, 5}, f64);
    const Value v = g.input("v", {2, 2, 6, 4}, f64), bias = g.input("bias", {1, 4, 3, 6}, f64);
    const Value y =
        g.attention(q, k, v, {.right_bound = 1, .alignment = MaskAlignment::bottom_right},
                    {.bias = bias})
            .first;
    return Function{y, {q, k, v, bias}};
  });
}

TEST(MultiHeadAttentionGradient, MatchesDifferences) {
  using Op = MultiHeadAttentionForward;
  expect_matching_gradients([&](Graph& g) {
    const Value q = g.input("q", {2, 1, 3, 4}, f64), k = g.input("k", {2, 1, 5, 4}, f64);
    const Value v = g.input("v", {2, 1, 5, 4}, f64);
    Op op;
    op.heads = 2;
    op.q_projection = op.k_projection = op.v_projection = 3;
    op.o_projection = 4;
    const Value weights = g.input("weights", {2 * (3 * 4 * 3 + 3 * 4)}, f64);
    const Value y = g.apply(op, {{Op::q, q}, {Op::k, k}, {Op::v, v}, {Op::weights, weights}});
    return Function{y, {q, k, v, weights}};
  });
}

TEST(RecurrentGradient, MatchesDifferences) {
  using Op = RnnForward;
  for (const RnnMode mode : {RnnMode::tanh, RnnMode::lstm, RnnMode::gru})
    expect_matching_gradients([&](Graph& g) {
      Op op;
      op.mode = mode;
      op.hidden_size = 3;
      op.bias = RnnBias::none;
      const int gates = mode == RnnMode::lstm ? 4 : mode == RnnMode::gru ? 3 : 1;
      const Value x = g.input("x", {4, 2, 5}, f64);
      const Value weights = g.input("weights", {gates * (3 * 5 + 3 * 3)}, f64);
      const Value hx = g.input("hx", {1, 2, 3}, f64);
      const auto out = g.apply(op, {{Op::x, x}, {Op::weights, weights}, {Op::hx, hx}}, {Op::hy});
      const Value total =
          g.reduce(out[Op::y], ReductionMode::add, {0}) + g.reshape(out[Op::hy], {1, 2, 3}) * 2.0;
      return Function{total, {x, weights, hx}};
    });
}

// --- spatial operations

TEST(ResampleGradient, MatchesDifferences) {
  const ResampleAttributes kinds[] = {
      {.window = {2, 3}, .stride = {1, 2}, .padding = {1, 1}},
      {.mode = ResampleMode::avgpool_include_padding, .window = {2, 2}, .padding = {1, 0}},
      {.mode = ResampleMode::avgpool_exclude_padding, .window = {3, 2}, .padding = {1, 1}},
      {.mode = ResampleMode::bilinear, .size = {7, 3}},
      {.mode = ResampleMode::nearest, .size = {2, 9}}};
  for (const ResampleAttributes& kind : kinds)
    expect_matching_gradients([&](Graph& g) {
      const Value x = g.input("x", {2, 2, 4, 5}, f64);
      return Function{g.resample(x, kind), {x}};
    });
  expect_matching_gradients([&](Graph& g) {
    const Value x = g.input("x", {2, 2, 4, 5}, f64);
    return Function{g.resample_with_index(x, kinds[0]).first, {x}};
  });
}

TEST(SpatialTransformerGradient, MatchesDifferences) {
  using Generator = GridGeneratorForward;
  using Sampler = GridSampleForward;
  expect_matching_gradients([&](Graph& g) {
    const Value theta = g.input("theta", {1, 2, 3}, f64), x = g.input("x", {1, 2, 5, 4}, f64);
    Generator generator;
    generator.size = {3, 4};
    const Value grid = g.apply(generator, {{Generator::theta, theta * 0.4}});
    return Function{g.apply(Sampler{}, {{Sampler::x, x}, {Sampler::grid, grid}}), {theta, x}};
  });
}

TEST(LocalNormGradient, MatchesDifferences) {
  expect_matching_gradients([&](Graph& g) {
    const Value x = g.input("x", {2, 6, 3}, f64);
    LrnForward op;
    op.window = 3;
    op.alpha = 0.5;
    return Function{g.apply(op, {{LrnForward::x, x}}), {x}};
  });
  using Op = DivisiveNormForward;
  expect_matching_gradients([&](Graph& g) {
    const Value x = g.input("x", {1, 2, 4, 3}, f64), means = g.input("means", {1, 2, 4, 3}, f64);
    Op op;
    op.window = 3;
    op.alpha = 0.5;
    return Function{g.apply(op, {{Op::x, x}, {Op::means, means}}), {x, means}};
  });
}

// --- data movement, dropout, CTC

TEST(MovementGradient, MatchesDifferences) {
  expect_matching_gradients([&](Graph& g) {
    const Value x = g.input("x", {2, 3, 4}, f64), z = g.input("z", {2, 5, 4}, f64);
    const Value both = g.concat(std::array{x, z, x}, 1);
    return Function{g.reshape(g.transpose(both, {2, 0, 1}), {8, 11}), {x, z}};
  });
  expect_matching_gradients([&](Graph& g) {
    const Value x = g.input("x", {1, 4, 4, 6}, f64);
    TensorTransform op;
    op.fold = {2, 3};
    op.alpha = 1.5;
    return Function{g.apply(op, {{TensorTransform::x, x}}), {x}};
  });
}

TEST(TopKGradient, MatchesDifferences) {
  for (const bool largest : {true, false})
    expect_matching_gradients([&](Graph& g) {
      const Value x = g.input("x", {3, 7}, f64);
      TopK op;
      op.k = 3;
      op.largest = largest;
      return Function{g.apply(op, {{TopK::x, x}}), {x}};
    });
}

TEST(SliceGradient, MatchesDifferences) {
  expect_matching_gradients([&](Graph& g) {
    const Value x = g.input("x", {2, 7, 5}, f64);
    return Function{g.slice(x, {0, 1, 0}, {2, 6, 5}, {1, 3, 2}), {x}};
  });
}

TEST(DropoutGradient, MatchesDifferences) {
  using Op = DropoutForward;
  for (const bool with_mask : {false, true})
    expect_matching_gradients([&](Graph& g) {
      const Value x = g.input("x", {40}, f64);
      Op op;
      op.probability = 0.25;
      op.seed = 7;
      std::vector<Wanted<Op>> wanted;
      if (with_mask) wanted.emplace_back(Op::mask);
      return Function{g.apply(op, {{Op::x, x}}, wanted), {x}};
    });
}

TEST(CtcGradient, MatchesDifferences) {
  using Op = CtcLoss;
  expect_matching_gradients(
      [&](Graph& g) {
        const Value x = g.input("x", {5, 2, 4}, f64);
        const Value loss = g.apply(Op{}, {{Op::x, x},
                                          {Op::labels, g.input("labels", {2, 2}, i32)},
                                          {Op::label_lengths, g.input("m", {2}, i32)},
                                          {Op::input_lengths, g.input("t", {2}, i32)}});
        return Function{loss, {x}};
      },
      -1.0, 1.0,
      [](Evaluation& e) {
        e.set("labels", {1, 2, 3, 3});
        e.set("m", {2, 1});
        e.set("t", {5, 4});
      });
}

// --- the walk over the graph

TEST(Differences, FindAWrongGradient) {
  int calls = 0;  // the first graph is the function, the second one the gradient
  const DifferenceReport report = compare_with_differences(
      [&](Graph& g) {
        const Value x = g.input("x", {4}, f64);
        return Function{x * x * (++calls == 1 ? 1.0 : 1.001), {x}};
      },
      1);
  EXPECT_THAT(report.wrong, HasSubstr("x: gradient"));
  EXPECT_EQ(report.undecided, 0);
}

TEST(Gradients, AddUpOverReadersAndResults) {
  Graph g;
  const Value x = g.input("x", {2}, f64), y = x * x + x * 3.0, z = exp(x);
  const Value one = g.input("one", {2}, f64), two = g.input("two", {2}, f64);
  g.output("dx", gradients(g, std::array{y, z}, std::array{x}, {.cotangents = {one, two}})[0]);
  Evaluation evaluation(g);
  evaluation.set("x", {0.0, 1.0});
  evaluation.set("one", {1.0, 2.0});
  evaluation.set("two", {5.0, 0.0});
  expect_result(evaluation, "dx", {3.0 + 5.0, 2 * (2.0 + 3.0)});
}

TEST(Gradients, AreEmptyWithoutDependence) {
  Graph g;
  const Value x = g.input("x", {1}, f32), other = g.input("other", {1}, f32);
  const Value steps = pointwise(M::floor, g.input("steps", {1}, f32));
  const auto found = gradients(g, std::array{exp(x) + steps}, std::array{other, steps, x});
  EXPECT_FALSE(found[0]);
  EXPECT_TRUE(found[1]);
  EXPECT_TRUE(found[2]);
  EXPECT_FALSE(gradients(g, std::array{steps}, std::array{g.value(2)})[0]);
}

TEST(Gradients, OfIntermediateValues) {
  Graph g;
  const Value x = g.input("x", {1}, f64), h = x * 3.0;
  const auto found = gradients(g, std::array{h * h}, std::array{h, x});
  g.output("dh", found[0]);
  g.output("dx", found[1]);
  Evaluation evaluation(g);
  evaluation.set("x", {2.0});
  expect_result(evaluation, "dh", {12.0});
  expect_result(evaluation, "dx", {36.0});
}

TEST(Gradients, OfGradients) {
  expect_matching_gradients(
      [](Graph& g) {
        const Value x = g.input("x", {3, 4}, f64), w = g.input("w", {4, 2}, f64);
        const Value loss = g.reduce(exp(g.matmul(x * x, w)), ReductionMode::add);
        const Value dx = gradients(g, std::array{loss}, std::array{x})[0];
        return Function{g.reduce(dx * dx, ReductionMode::add), {x, w}};
      },
      0.25, 1.0);
}

TEST(Gradients, HaveTheDtypeOfTheirValueOrTheChosenOne) {
  for (const bool chosen : {false, true}) {
    Graph g;
    const Value x = g.input("x", {4, 8}, bf16), w = g.input("w", {8, 3}, bf16);
    const Value loss = g.reduce(g.matmul(x, w), ReductionMode::add, {}, {.dtype = f32});
    GradientOptions options;
    if (chosen) options.dtype = f32;
    for (const Value value : gradients(g, std::array{loss}, std::array{x, w}, options))
      EXPECT_EQ(value.dtype(), chosen ? f32 : bf16);
  }
}

TEST(Gradients, HaveTheLayoutOfTheirValue) {
  Graph g;
  const Value x = g.input("x", {2, 4, 6, 6}, f32, channels_last);
  const Value w = g.input("w", {8, 4, 3, 3}, f32);
  const Value loss = g.reduce(g.conv(x, w), ReductionMode::add);
  const auto found = gradients(g, std::array{loss}, std::array{x, w});
  EXPECT_EQ(found[0].tensor().strides, x.tensor().strides);
  EXPECT_EQ(found[1].tensor().strides, w.tensor().strides);
}

std::string refusal(const std::function<void(Graph&)>& call) {
  Graph g;
  try {
    call(g);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(Gradients, RefuseWhatHasNone) {
  EXPECT_THAT(refusal([](Graph& g) {
                const Value x = g.input("x", {1, 2, 4, 4}, f32);
                Im2Col op;
                op.window = {2, 2};
                const Value y = g.apply(op, {{Im2Col::x, x}});
                gradients(g, std::array{g.reduce(y, ReductionMode::add)}, std::array{x});
              }),
              HasSubstr("im2col 'im2col_0': no gradient: this operation has no rule"));
  EXPECT_THAT(refusal([](Graph& g) {
                const Value x = g.input("x", {2}, f32);
                gradients(g, std::array{exp(x)}, std::array{x});
              }),
              HasSubstr("got dims [2] and no cotangent, expected one element or a cotangent"));
  EXPECT_THAT(refusal([](Graph& g) {
                const Value x = g.input("x", {2}, f32), dy = g.input("dy", {3}, f32);
                gradients(g, std::array{exp(x)}, std::array{x}, {.cotangents = {dy}});
              }),
              HasSubstr("got dims [3], expected [2]"));
  EXPECT_THAT(refusal([](Graph& g) {
                const Value x = g.input("x", {1}, i32);
                gradients(g, std::array{cast(x, f32)}, std::array{x});
              }),
              HasSubstr("wrt 'x': got dtype i32, expected a floating type"));
  EXPECT_THAT(refusal([](Graph& g) { gradients(g, std::array{Value()}, {}); }),
              HasSubstr("gradients: of: got an empty value"));
  EXPECT_THAT(refusal([](Graph& g) {
                Graph other;
                const Value x = other.input("x", {1}, f32);
                gradients(g, std::array{x}, {});
              }),
              HasSubstr("a tensor of another graph"));
}

TEST(Gradients, LeaveTheGraphUnchangedWhenTheyRefuse) {
  Graph g;
  const Value x = g.input("x", {1, 2, 4, 4}, f32);
  Im2Col op;
  op.window = {2, 2};
  const Value y = g.reduce(exp(g.apply(op, {{Im2Col::x, x}})), ReductionMode::add);
  g.output("y", y);
  const std::string before = g.to_json();
  EXPECT_THROW(gradients(g, std::array{y}, std::array{x}), Error);
  EXPECT_EQ(g.to_json(), before);
}

}  // namespace
}  // namespace ashlar::reference

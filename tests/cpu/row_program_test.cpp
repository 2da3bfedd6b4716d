// Row programs: every mode against double precision, rounding, fusion, buffers.
#include "cpu/row_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/element.hpp"
#include "cpu/kernels/pointwise.hpp"
#include "graph/pointwise_traits.hpp"

namespace ashlar::cpu {
namespace {

using Step = PointwiseProgram::Step;

Step load_step(TensorId tensor, DType dtype, const Dims& dims, const Dims& strides,
               std::int64_t offset = 0) {
  Step step;
  step.kind = Step::Kind::load;
  step.view = {tensor, offset, dtype, dims, strides, kNoTensor};
  return step;
}

Step compute_step(PointwiseMode mode, std::array<int, 3> args, DType compute = f32) {
  Step step;
  step.kind = Step::Kind::compute;
  step.op.mode = mode;
  step.args = args;
  step.compute = compute;
  return step;
}

// Tensors bound in order.
class Memory {
 public:
  explicit Memory(std::vector<void*> pointers) : pointers_(std::move(pointers)) {
    for (std::size_t i = 0; i < pointers_.size(); ++i)
      locations_.push_back({Location::Kind::bound, static_cast<std::int64_t>(i), nullptr});
  }
  KernelContext context() const { return {locations_, pointers_, nullptr, nullptr}; }

 private:
  std::vector<void*> pointers_;
  std::vector<Location> locations_;
};

// --- every mode

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double slope(PointwiseMode mode, const Pointwise& op, double x) {
  constexpr double kRootHalf = 0.70710678118654752, kDensity = 0.39894228040143268,
                   kRoot = 0.79788456080286536;
  switch (mode) {
    case PointwiseMode::relu_bwd:
      return x <= op.relu_lower_clip ? op.relu_lower_slope : x >= op.relu_upper_clip ? 0.0 : 1.0;
    case PointwiseMode::tanh_bwd: return 1.0 / (std::cosh(x) * std::cosh(x));
    case PointwiseMode::sigmoid_bwd: return sigmoid(x) * sigmoid(-x);
    case PointwiseMode::elu_bwd: return x > 0 ? 1.0 : op.elu_alpha * std::exp(x);
    case PointwiseMode::gelu_bwd:
      return 0.5 * std::erfc(-x * kRootHalf) + x * kDensity * std::exp(-x * x / 2);
    case PointwiseMode::softplus_bwd: return sigmoid(op.softplus_beta * x);
    case PointwiseMode::swish_bwd: {
      const double b = op.swish_beta;
      return sigmoid(b * x) + b * x * sigmoid(b * x) * sigmoid(-b * x);
    }
    default: {
      const double u = kRoot * (x + 0.044715 * x * x * x), du = kRoot * (1 + 3 * 0.044715 * x * x);
      return sigmoid(2 * u) + 2 * x * du * sigmoid(2 * u) * sigmoid(-2 * u);
    }
  }
}

double expected(const Pointwise& op, double x, double b, double p) {
  switch (op.mode) {
    case PointwiseMode::add: return x + b;
    case PointwiseMode::mul: return x * b;
    case PointwiseMode::min: return std::min(x, b);
    case PointwiseMode::max: return std::max(x, b);
    case PointwiseMode::add_square: return x + b * b;
    case PointwiseMode::div: return x / b;
    case PointwiseMode::mod: return std::fmod(x, b);
    case PointwiseMode::pow: return std::pow(x, b);
    case PointwiseMode::sub: return x - b;
    case PointwiseMode::atan2: return std::atan2(x, b);
    case PointwiseMode::sqrt: return std::sqrt(x);
    case PointwiseMode::abs: return std::fabs(x);
    case PointwiseMode::ceil: return std::ceil(x);
    case PointwiseMode::cos: return std::cos(x);
    case PointwiseMode::exp: return std::exp(x);
    case PointwiseMode::floor: return std::floor(x);
    case PointwiseMode::log: return std::log(x);
    case PointwiseMode::neg: return -x;
    case PointwiseMode::rsqrt: return 1.0 / std::sqrt(x);
    case PointwiseMode::sin: return std::sin(x);
    case PointwiseMode::tan: return std::tan(x);
    case PointwiseMode::erf: return std::erf(x);
    case PointwiseMode::identity: return x;
    case PointwiseMode::reciprocal: return 1.0 / x;
    case PointwiseMode::relu_fwd:
      return x < op.relu_lower_clip
                 ? op.relu_lower_clip + op.relu_lower_slope * (x - op.relu_lower_clip)
                 : std::min(x, op.relu_upper_clip);
    case PointwiseMode::tanh_fwd: return std::tanh(x);
    case PointwiseMode::sigmoid_fwd: return sigmoid(x);
    case PointwiseMode::elu_fwd: return x > 0 ? x : op.elu_alpha * std::expm1(x);
    case PointwiseMode::gelu_fwd: return 0.5 * x * std::erfc(-x * 0.70710678118654752);
    case PointwiseMode::softplus_fwd:
      return (std::max(op.softplus_beta * x, 0.0) +
              std::log1p(std::exp(-std::fabs(op.softplus_beta * x)))) /
             op.softplus_beta;
    case PointwiseMode::swish_fwd: return x * sigmoid(op.swish_beta * x);
    case PointwiseMode::gelu_approx_tanh_fwd:
      return x * sigmoid(2 * 0.79788456080286536 * (x + 0.044715 * x * x * x));
    case PointwiseMode::cmp_eq: return x == b;
    case PointwiseMode::cmp_neq: return x != b;
    case PointwiseMode::cmp_gt: return x > b;
    case PointwiseMode::cmp_ge: return x >= b;
    case PointwiseMode::cmp_lt: return x < b;
    case PointwiseMode::cmp_le: return x <= b;
    case PointwiseMode::logical_and: return x != 0 && b != 0;
    case PointwiseMode::logical_or: return x != 0 || b != 0;
    case PointwiseMode::logical_not: return x == 0;
    case PointwiseMode::binary_select: return p != 0 ? x : b;
    case PointwiseMode::trunc: return std::trunc(x);
    case PointwiseMode::round: return std::nearbyint(x);
    case PointwiseMode::sign: return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0;
    case PointwiseMode::log1p: return std::log1p(x);
    case PointwiseMode::expm1: return std::expm1(x);
    default: return x * slope(op.mode, op, b);
  }
}

bool is_positive_only(PointwiseMode mode) {
  return mode == PointwiseMode::sqrt || mode == PointwiseMode::rsqrt ||
         mode == PointwiseMode::log || mode == PointwiseMode::pow || mode == PointwiseMode::log1p;
}

bool is_arithmetic(PointwiseMode mode) {
  return mode < PointwiseMode::cos && mode != PointwiseMode::pow && mode != PointwiseMode::atan2;
}

// Tolerance in ULP: one rounding, or a few for formulas and elementary functions (see
// float_math_test.cpp).
double units(PointwiseMode mode, bool is_float) {
  return is_float && is_arithmetic(mode) ? 1.01 : 10.0;
}

template <class T>
void check_mode(PointwiseMode mode) {
  constexpr std::int64_t kCount = 1003;
  std::vector<T> x(kCount), b(kCount), p(kCount), y(kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    const double t = static_cast<double>(i * 7919 % kCount) / kCount;
    const auto at = static_cast<std::size_t>(i);
    x[at] = static_cast<T>(is_positive_only(mode) ? 1e-3 + 20 * t : 24 * t - 12);
    b[at] =
        static_cast<T>(i % 5 == 0 ? x[at] : static_cast<T>(6.0 * std::sin(static_cast<double>(i))));
    p[at] = static_cast<T>(i % 3);
  }
  const DType dtype = sizeof(T) == 4 ? f32 : f64;
  PointwiseProgram program;
  program.space = {kCount};
  for (TensorId tensor = 0; tensor < 3; ++tensor)
    program.steps.push_back(load_step(tensor, dtype, {kCount}, {1}));
  const int operands = operand_count(mode);
  Step step = compute_step(mode, {0, operands > 1 ? 1 : -1, operands > 2 ? 2 : -1}, dtype);
  step.op.relu_lower_clip = -1.5;
  step.op.relu_upper_clip = 6.0;
  step.op.relu_lower_slope = 0.25;
  step.op.elu_alpha = 1.25;
  step.op.softplus_beta = 0.75;
  step.op.swish_beta = 1.5;
  program.steps.push_back(step);
  program.stores.push_back({{3, 0, dtype, {kCount}, {1}, kNoTensor}, 3});
  const RowProgram<T> rows(program, 0);
  const Memory memory({x.data(), b.data(), p.data(), y.data()});
  const std::int64_t origin = 0;
  rows.bind(memory.context()).store(&origin, kCount, nullptr);
  const double unit = unit_roundoff(dtype);
  for (std::size_t i = 0; i < kCount; ++i) {
    const double want = expected(step.op, x[i], b[i], p[i]);
    // FMA contraction is allowed, so terms that cancel are measured by their magnitude.
    double size = std::fabs(want);
    if (mode == PointwiseMode::add_square) size += std::fabs(double(x[i]));
    if (mode == PointwiseMode::relu_fwd) size += std::fabs(double(x[i]));
    if (mode == PointwiseMode::gelu_approx_tanh_fwd) size += std::fabs(double(x[i]));
    if (is_activation_gradient(mode)) size += std::fabs(double(x[i]));
    // Functions may lose digits below the smallest normal number (docs/numerics.md).
    const double least = is_arithmetic(mode) ? smallest_step(dtype)
                                             : static_cast<double>(std::numeric_limits<T>::min());
    const double bound = 2 * units(mode, sizeof(T) == 4) * unit * size + least;
    ASSERT_LE(std::fabs(static_cast<double>(y[i]) - want), bound)
        << "mode " << static_cast<int>(mode) << " x " << x[i] << " b " << b[i] << ": " << y[i]
        << ", expected " << want;
  }
}

template <class T>
void check_modes() {
  for (int number = 0; number < kPointwiseModeCount; ++number) {
    const auto mode = static_cast<PointwiseMode>(number);
    if (mode != PointwiseMode::gen_index && !is_bitwise(mode)) check_mode<T>(mode);
  }
}

TEST(RowProgram, EveryModeInFloat) { check_modes<float>(); }
TEST(RowProgram, EveryModeInDouble) { check_modes<double>(); }

// --- bitwise modes

template <class T>
std::vector<T> run_bitwise(PointwiseMode mode, DType dtype, const std::vector<T>& x,
                           const std::vector<T>& b) {
  const auto count = static_cast<std::int64_t>(x.size());
  std::vector<T> y(x.size());
  pointwise_row<T>(mode, dtype)({}, x.data(), b.data(), nullptr, count, y.data());
  return y;
}

// Every pair of operands of a type, and all counts around its width, against integer arithmetic.
template <class T>
void check_bitwise(DType dtype) {
  SCOPED_TRACE(to_string(dtype));
  const auto low = static_cast<int>(lowest_value(dtype)),
             high = static_cast<int>(largest_value(dtype));
  const int width = bit_width(dtype);
  const auto wrapped = [&](int value) {
    const auto bits = static_cast<unsigned>(value) & ((1u << width) - 1);
    return static_cast<int>(bits) > high ? static_cast<int>(bits) - (1 << width)
                                         : static_cast<int>(bits);
  };
  std::vector<T> x, b, counts, shifted;
  for (int i = low; i <= high; ++i) {
    for (int j = low; j <= high; ++j) {
      x.push_back(static_cast<T>(i));
      b.push_back(static_cast<T>(j));
    }
    for (int count = -2; count <= width + 40; ++count) {
      shifted.push_back(static_cast<T>(i));
      counts.push_back(static_cast<T>(count));
    }
  }
  const auto expect = [&](PointwiseMode mode, const std::vector<T>& left,
                          const std::vector<T>& right, auto&& integers) {
    const std::vector<T> y = run_bitwise(mode, dtype, left, right);
    for (std::size_t i = 0; i < left.size(); ++i)
      ASSERT_EQ(y[i], integers(static_cast<int>(left[i]), static_cast<int>(right[i])))
          << static_cast<int>(mode) << " of " << left[i] << " and " << right[i];
  };
  expect(PointwiseMode::bit_and, x, b, [](int p, int q) { return p & q; });
  expect(PointwiseMode::bit_or, x, b, [](int p, int q) { return p | q; });
  expect(PointwiseMode::bit_xor, x, b, [](int p, int q) { return p ^ q; });
  expect(PointwiseMode::bit_not, x, b, [&](int p, int) { return wrapped(~p); });
  if (dtype == boolean) return;
  expect(PointwiseMode::shift_left, shifted, counts, [&](int p, int count) {
    return count < 0 || count >= width ? 0 : wrapped(p * (1 << count));
  });
  expect(PointwiseMode::shift_right, shifted, counts,
         [&](int p, int count) { return p >> (count < 0 || count >= width ? 31 : count); });
}

TEST(RowProgram, BitwiseModesOfNarrowTypes) {
  for (const DType dtype : {boolean, i4, u4, i8, u8}) {
    check_bitwise<float>(dtype);
    check_bitwise<double>(dtype);
  }
}

TEST(RowProgram, BitwiseModesOfWideTypes) {
  using Numbers = std::vector<double>;
  const auto run = [](PointwiseMode mode, DType dtype, const Numbers& x, const Numbers& b) {
    return run_bitwise(mode, dtype, x, b);
  };
  const double all = 4294967295.0, most = 2147483647.0, least = -2147483648.0;
  EXPECT_EQ(run(PointwiseMode::bit_not, u32, {0, 5, all}, {0, 0, 0}), (Numbers{all, all - 5, 0}));
  EXPECT_EQ(run(PointwiseMode::bit_not, i32, {0, least, 7}, {0, 0, 0}), (Numbers{-1, most, -8}));
  EXPECT_EQ(run(PointwiseMode::shift_left, i32, {1, 3, -1, 1}, {31, 30, 4, 32}),
            (Numbers{least, -1073741824.0, -16, 0}));
  EXPECT_EQ(run(PointwiseMode::shift_left, u32, {1, 3, all, 1}, {31, 31, 4, -1}),
            (Numbers{2147483648.0, 2147483648.0, all - 15, 0}));
  EXPECT_EQ(run(PointwiseMode::shift_right, i32, {least, -9, most, -1}, {31, 1, 30, 99}),
            (Numbers{-1, -5, 1, -1}));
  EXPECT_EQ(run(PointwiseMode::shift_right, u32, {all, all, 7}, {31, 1, 32}),
            (Numbers{1, most, 0}));
  EXPECT_EQ(run(PointwiseMode::shift_left, i64, {1, 0x1.fffffffffffffp52, 1, -1}, {52, 0, 63, 3}),
            (Numbers{0x1p52, 0x1.fffffffffffffp52, -0x1p63, -8}));
  EXPECT_EQ(run(PointwiseMode::shift_right, i64, {-0x1p52, 0x1p52, -1, 5}, {51, 52, 63, 64}),
            (Numbers{-2, 1, -1, 0}));
  EXPECT_EQ(run(PointwiseMode::bit_and, i64, {0x1p52 + 5, -0x1p52, -1}, {7, -0x1p40, 0x1p53}),
            (Numbers{5, -0x1p52, 0x1p53}));
  EXPECT_EQ(run(PointwiseMode::bit_xor, i64, {0x1p52 + 5, -3}, {0x1p52, 3}), (Numbers{5, -2}));
}

float run_unary(PointwiseMode mode, float x, float b = 0) {
  PointwiseProgram program;
  program.space = {1};
  program.steps = {load_step(0, f32, {1}, {1}), load_step(1, f32, {1}, {1}),
                   compute_step(mode, {0, operand_count(mode) > 1 ? 1 : -1, -1})};
  program.result = 2;
  const RowProgram<float> rows(program, 0);
  const Memory memory({&x, &b});
  const std::int64_t origin = 0;
  float y = 0;
  rows.bind(memory.context()).load(&origin, 1, &y);
  return y;
}

TEST(RowProgram, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  for (int m = 0; m < kPointwiseModeCount; ++m) {
    const auto mode = static_cast<PointwiseMode>(m);
    if (gives_boolean(mode) || mode == PointwiseMode::gen_index ||
        mode == PointwiseMode::binary_select || is_bitwise(mode))
      continue;
    if (operand_count(mode) == 1) {
      EXPECT_TRUE(std::isnan(run_unary(mode, nan))) << m;
    }
  }
  for (PointwiseMode mode : {PointwiseMode::min, PointwiseMode::max}) {
    EXPECT_TRUE(std::isnan(run_unary(mode, nan, 1)));
    EXPECT_TRUE(std::isnan(run_unary(mode, 1, nan)));
  }
  EXPECT_EQ(run_unary(PointwiseMode::exp, 89.0f), inf);
  EXPECT_EQ(run_unary(PointwiseMode::exp, inf), inf);
  EXPECT_EQ(run_unary(PointwiseMode::exp, -inf), 0.0f);
  EXPECT_EQ(run_unary(PointwiseMode::exp, 1000.0f), inf);
  EXPECT_EQ(run_unary(PointwiseMode::log, 0.0f), -inf);
  EXPECT_EQ(run_unary(PointwiseMode::log, inf), inf);
  EXPECT_TRUE(std::isnan(run_unary(PointwiseMode::log, -1.0f)));
  EXPECT_EQ(run_unary(PointwiseMode::log1p, -1.0f), -inf);
  EXPECT_EQ(run_unary(PointwiseMode::log1p, inf), inf);
  EXPECT_TRUE(std::isnan(run_unary(PointwiseMode::log1p, -1.5f)));
  EXPECT_EQ(run_unary(PointwiseMode::log1p, 1e-30f), 1e-30f);
  EXPECT_EQ(run_unary(PointwiseMode::expm1, 1e-30f), 1e-30f);
  EXPECT_EQ(run_unary(PointwiseMode::expm1, inf), inf);
  EXPECT_EQ(run_unary(PointwiseMode::expm1, 89.0f), inf);
  EXPECT_EQ(run_unary(PointwiseMode::expm1, -inf), -1.0f);
  EXPECT_EQ(run_unary(PointwiseMode::trunc, -inf), -inf);
  EXPECT_EQ(run_unary(PointwiseMode::round, 2.5f), 2.0f);
  EXPECT_EQ(run_unary(PointwiseMode::round, 1e30f), 1e30f);
  EXPECT_EQ(run_unary(PointwiseMode::sign, -inf), -1.0f);
  EXPECT_EQ(run_unary(PointwiseMode::sign, -0.0f), 0.0f);
  EXPECT_EQ(run_unary(PointwiseMode::tanh_fwd, inf), 1.0f);
  EXPECT_EQ(run_unary(PointwiseMode::tanh_fwd, -inf), -1.0f);
  EXPECT_EQ(run_unary(PointwiseMode::erf, inf), 1.0f);
  EXPECT_EQ(run_unary(PointwiseMode::erf, -inf), -1.0f);
  EXPECT_EQ(run_unary(PointwiseMode::sigmoid_fwd, -inf), 0.0f);
  EXPECT_EQ(run_unary(PointwiseMode::softplus_fwd, inf), inf);
  EXPECT_EQ(run_unary(PointwiseMode::softplus_fwd, -inf), 0.0f);
  EXPECT_FLOAT_EQ(run_unary(PointwiseMode::sin, 1e6f), static_cast<float>(std::sin(1e6)));
  EXPECT_FLOAT_EQ(run_unary(PointwiseMode::gelu_fwd, -10.0f),
                  static_cast<float>(-5.0 * std::erfc(10.0 / std::sqrt(2.0))));
}

TEST(RowProgram, IntegerDivisionTruncatesAndTakesZero) {
  std::vector<std::int32_t> x = {7, -7, 7, 5, 0}, b = {2, 2, -2, 0, 0}, y(5, 99);
  PointwiseProgram program;
  program.space = {5};
  program.steps = {load_step(0, i32, {5}, {1}), load_step(1, i32, {5}, {1}),
                   compute_step(PointwiseMode::div, {0, 1, -1}, i32)};
  program.stores.push_back({{2, 0, i32, {5}, {1}, kNoTensor}, 2});
  ASSERT_EQ(program.precision(), f64);
  const RowProgram<double> rows(program, 0);
  const Memory memory({x.data(), b.data(), y.data()});
  const std::int64_t origin = 0;
  rows.bind(memory.context()).store(&origin, 5, nullptr);
  EXPECT_EQ(y, (std::vector<std::int32_t>{3, -3, -3, 0, 0}));
}

TEST(RowProgram, RoundsWhereAValuePassesThroughANarrowType) {
  for (DType dtype : {e4m3, e5m2, i8, u8, boolean}) {
    std::vector<float> x = {0.3f, -3.49f, 2.5f, 300.0f, -70000.0f, 17.2f}, y(6);
    PointwiseProgram program;
    program.space = {6};
    program.steps = {load_step(0, f32, {6}, {1}),
                     compute_step(PointwiseMode::identity, {0, -1, -1}),
                     compute_step(PointwiseMode::neg, {1, -1, -1})};
    program.steps[1].round_to = dtype;
    program.result = 2;
    const RowProgram<float> rows(program, 0);
    const Memory memory({x.data()});
    const std::int64_t origin = 0;
    rows.bind(memory.context()).load(&origin, 6, y.data());
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_EQ(-y[i], round_to(dtype, x[i])) << to_string(dtype) << " " << x[i];
  }
}

// y[r, c] = relu(alpha1 * acc + bias[c]) * scale[r] + index of c; the sum before relu goes to a
// second tensor.
TEST(RowProgram, EpilogueWithBroadcastsTwoStoresAndIndices) {
  constexpr std::int64_t kRows = 3, kColumns = 700;
  std::vector<float> bias(kColumns), y(kRows * kColumns), sums(kRows * kColumns),
      accumulator(kColumns);
  std::vector<float> scale = {2.0f, -1.0f, 0.5f};
  for (std::int64_t c = 0; c < kColumns; ++c)
    bias[static_cast<std::size_t>(c)] = static_cast<float>(c % 13) - 6;
  PointwiseProgram program;
  program.space = {kRows, kColumns};
  Step accumulator_step;
  accumulator_step.kind = Step::Kind::accumulator;
  program.steps = {accumulator_step,
                   load_step(0, f32, program.space, {0, 1}),
                   compute_step(PointwiseMode::add, {0, 1, -1}),
                   compute_step(PointwiseMode::relu_fwd, {2, -1, -1}),
                   load_step(1, f32, program.space, {1, 0}),
                   compute_step(PointwiseMode::mul, {3, 4, -1}),
                   compute_step(PointwiseMode::gen_index, {5, -1, -1}),
                   compute_step(PointwiseMode::add, {5, 6, -1})};
  program.steps[2].op.alpha1 = 3.0;
  program.steps[6].op.axis = 1;
  program.stores = {{{2, 0, f32, program.space, {kColumns, 1}, kNoTensor}, 7},
                    {{3, 0, f32, program.space, {1, kRows}, kNoTensor}, 2}};
  const RowProgram<float> rows(program, 1);
  const Memory memory({bias.data(), scale.data(), y.data(), sums.data()});
  const auto bound = rows.bind(memory.context());
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t c = 0; c < kColumns; ++c)
      accumulator[static_cast<std::size_t>(c)] = static_cast<float>((r + c) % 7) - 3;
    const std::int64_t coords[] = {r, 100};
    const std::vector<float> before = accumulator;
    bound.store(coords, kColumns - 100, accumulator.data() + 100);
    EXPECT_EQ(before, accumulator);
  }
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < kColumns; ++c) {
      const float sum = 3 * static_cast<float>((r + c) % 7 - 3) + bias[static_cast<std::size_t>(c)];
      const float result =
          std::max(sum, 0.0f) * scale[static_cast<std::size_t>(r)] + static_cast<float>(c);
      EXPECT_EQ(y[static_cast<std::size_t>(r * kColumns + c)], c < 100 ? 0.0f : result)
          << r << " " << c;
      EXPECT_EQ(sums[static_cast<std::size_t>(c * kRows + r)], c < 100 ? 0.0f : sum)
          << r << " " << c;
    }
}

// The maximum number of live values.
TEST(RowProgram, ManyLiveValues) {
  float x = 1.0f;
  PointwiseProgram program;
  program.space = {600};
  program.steps.push_back(load_step(0, f32, {600}, {0}));
  constexpr int kLive = 46;
  for (int i = 1; i <= kLive; ++i) {
    program.steps.push_back(compute_step(PointwiseMode::add, {0, i - 1, -1}));
  }
  int sum = 1;
  for (int i = 2; i <= kLive; ++i) {
    program.steps.push_back(compute_step(PointwiseMode::add, {sum, i, -1}));
    sum = static_cast<int>(program.steps.size()) - 1;
  }
  program.result = sum;
  ASSERT_LE(program.steps.size(), static_cast<std::size_t>(kMaxProgramSteps));
  const RowProgram<float> rows(program, 0);
  const Memory memory({&x});
  std::vector<float> y(600);
  const std::int64_t origin = 0;
  rows.bind(memory.context()).load(&origin, 600, y.data());
  // Value i is i + 1; the sum runs over i = 1 .. kLive.
  for (float value : y) EXPECT_EQ(value, static_cast<float>(kLive * (kLive + 3) / 2));
}

TEST(RowProgram, ViewReadsInPlaceWhereItCan) {
  std::vector<float> x = {0, 1, 2, 3, 4, 5, 6, 7};
  const Memory memory({x.data()});
  float buffer[4];
  const std::int64_t coords[] = {2};
  const RowProgram<float> contiguous(plain_load({0, 1, f32, {7}, {1}, kNoTensor}), 0);
  EXPECT_EQ(contiguous.bind(memory.context()).view(coords, 4, buffer), x.data() + 3);
  const RowProgram<float> strided(plain_load({0, 1, f32, {3}, {2}, kNoTensor}), 0);
  const float* row = strided.bind(memory.context()).view(coords, 1, buffer);
  EXPECT_EQ(row, buffer);
  EXPECT_EQ(row[0], 5.0f);
  const RowProgram<float> stepped(plain_load({0, 0, f32, {8}, {1}, kNoTensor}), 0, nullptr, 3);
  const float* third = stepped.bind(memory.context()).view(coords, 2, buffer);
  EXPECT_EQ(third[0], 2.0f);
  EXPECT_EQ(third[1], 5.0f);
}

// --- non-temporal stores

TEST(RowProgram, StreamedStoresFillExactlyTheirElements) {
  for (const DType dtype : {f32, f64, f16, i8, boolean})
    for (const std::int64_t offset : {0, 1, 5, 16})
      for (const std::int64_t count : {1, 15, 64, 255, 256, 257, 1000}) {
        const Dims dims = {2048}, strides = {1};
        PointwiseProgram program;
        program.space = dims;
        program.steps = {load_step(0, f32, dims, strides, offset), load_step(1, f32, dims, {0}),
                         compute_step(PointwiseMode::add, {0, 1, -1})};
        program.stores = {{View{2, offset, dtype, dims, strides, kNoTensor}, 2}};
        std::vector<float> x(4096), b = {3};
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 9) - 3;
        alignas(64) std::byte cached[4096 * 8], streamed[4096 * 8];
        std::fill(std::begin(cached), std::end(cached), std::byte{0x5a});
        std::fill(std::begin(streamed), std::end(streamed), std::byte{0x5a});
        const std::int64_t at = 7;
        const RowProgram<float> to_caches(program, 0),
            to_memory(program, 0, nullptr, 1, StoreTo::memory);
        to_caches.bind(Memory({x.data(), b.data(), cached}).context()).store(&at, count, nullptr);
        to_memory.bind(Memory({x.data(), b.data(), streamed}).context()).store(&at, count, nullptr);
        ASSERT_EQ(std::memcmp(cached, streamed, sizeof(cached)), 0)
            << to_string(dtype) << " from " << offset << ", " << count;
        const double sum = x[static_cast<std::size_t>(offset + at)] + 3;
        ASSERT_EQ(load_element(dtype, streamed, offset + at),
                  dtype == boolean ? static_cast<double>(sum != 0) : sum);
      }
}

}  // namespace
}  // namespace ashlar::cpu

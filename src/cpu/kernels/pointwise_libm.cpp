// Pointwise operations through the C library, one element at a time.
#include "cpu/kernels/pointwise_libm.hpp"

#include <cmath>

#include "base/fail.hpp"

namespace ashlar::cpu {

namespace {

template <auto kFunction, class T>
void unary_row(const Pointwise& op, const T* x, const T*, const T*, std::int64_t count, T* y,
               const RowHints&) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = kFunction(op, x[i]);
}

template <auto kFunction, class T>
void binary_row(const Pointwise& op, const T* x, const T* b, const T*, std::int64_t count, T* y,
                const RowHints&) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = kFunction(op, x[i], b[i]);
}

// dx = dy * slope(x)
template <auto kSlope>
void gradient_row(const Pointwise& op, const double* dy, const double* x, const double*,
                  std::int64_t count, double* dx, const RowHints&) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * kSlope(op, x[i]);
}

// Neither form overflows or cancels: the first for x >= 0, else the second.
double sigmoid(double x) {
  if (x >= 0) return 1.0 / (1.0 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1.0 + e);
}

double sigmoid_slope(double x) {
  const double e = std::exp(-std::fabs(x));
  return e / ((1.0 + e) * (1.0 + e));
}

constexpr double kInverseSqrt2 = 0.70710678118654752440;
constexpr double kInverseSqrt2Pi = 0.39894228040143267794;
constexpr double kSqrt2OverPi = 0.79788456080286535588;
constexpr double kGeluCubic = 0.044715;

double gelu_argument(double x) { return 2 * kSqrt2OverPi * (x + kGeluCubic * x * x * x); }

// --- unary functions, in the order of PointwiseMode

double exp_of(const Pointwise&, double x) { return std::exp(x); }
double log_of(const Pointwise&, double x) { return std::log(x); }
double log1p_of(const Pointwise&, double x) { return std::log1p(x); }
double expm1_of(const Pointwise&, double x) { return std::expm1(x); }
double erf_of(const Pointwise&, double x) { return std::erf(x); }
double tanh_of(const Pointwise&, double x) { return std::tanh(x); }
double sigmoid_of(const Pointwise&, double x) { return sigmoid(x); }
double elu_of(const Pointwise& op, double x) { return x > 0 ? x : op.elu_alpha * std::expm1(x); }
double gelu_of(const Pointwise&, double x) { return 0.5 * x * std::erfc(-x * kInverseSqrt2); }
double softplus_of(const Pointwise& op, double x) {
  const double scaled = op.softplus_beta * x;
  return ((scaled > 0 ? scaled : 0.0) + std::log1p(std::exp(-std::fabs(scaled)))) /
         op.softplus_beta;
}
double swish_of(const Pointwise& op, double x) { return x * sigmoid(op.swish_beta * x); }
double gelu_tanh_of(const Pointwise&, double x) { return x * sigmoid(gelu_argument(x)); }

double tanh_slope(const Pointwise&, double x) { return 4.0 * sigmoid_slope(2.0 * x); }
double sigmoid_slope_of(const Pointwise&, double x) { return sigmoid_slope(x); }
double elu_slope(const Pointwise& op, double x) { return x > 0 ? 1.0 : op.elu_alpha * std::exp(x); }
double gelu_slope(const Pointwise&, double x) {
  return 0.5 * std::erfc(-x * kInverseSqrt2) + x * kInverseSqrt2Pi * std::exp(-0.5 * x * x);
}
double softplus_slope(const Pointwise& op, double x) { return sigmoid(op.softplus_beta * x); }
double swish_slope(const Pointwise& op, double x) {
  const double scaled = op.swish_beta * x;
  return sigmoid(scaled) + scaled * sigmoid_slope(scaled);
}
double gelu_tanh_slope(const Pointwise&, double x) {
  const double argument = gelu_argument(x);
  const double slope = 2 * kSqrt2OverPi * (1.0 + 3 * kGeluCubic * x * x);
  return sigmoid(argument) + x * sigmoid_slope(argument) * slope;
}

template <class T>
T sin_of(const Pointwise&, T x) {
  return std::sin(x);
}
template <class T>
T cos_of(const Pointwise&, T x) {
  return std::cos(x);
}
template <class T>
T tan_of(const Pointwise&, T x) {
  return std::tan(x);
}
template <class T>
T mod_of(const Pointwise&, T x, T b) {
  return std::fmod(x, b);
}
template <class T>
T pow_of(const Pointwise&, T x, T b) {
  return std::pow(x, b);
}
template <class T>
T atan2_of(const Pointwise&, T x, T b) {
  return std::atan2(x, b);
}

// Integer division truncates; division by zero gives 0.
double whole_quotient(const Pointwise&, double x, double b) {
  return b == 0 ? 0.0 : std::trunc(x / b);
}
double whole_reciprocal(const Pointwise&, double x) { return x == 0 ? 0.0 : std::trunc(1.0 / x); }

// Modes that float also takes from the library.
template <class T>
PointwiseRow<T> common_row(PointwiseMode mode) {
  switch (mode) {
    case PointwiseMode::sin: return unary_row<sin_of<T>, T>;
    case PointwiseMode::cos: return unary_row<cos_of<T>, T>;
    case PointwiseMode::tan: return unary_row<tan_of<T>, T>;
    case PointwiseMode::mod: return binary_row<mod_of<T>, T>;
    case PointwiseMode::pow: return binary_row<pow_of<T>, T>;
    case PointwiseMode::atan2: return binary_row<atan2_of<T>, T>;
    default:
      fail(ErrorCode::internal, "pointwise mode {} has no row kernel", static_cast<int>(mode));
  }
}

}  // namespace

template <>
PointwiseRow<float> libm_row<float>(PointwiseMode mode, bool) {
  return common_row<float>(mode);
}

template <>
PointwiseRow<double> libm_row<double>(PointwiseMode mode, bool integer) {
  switch (mode) {
    case PointwiseMode::exp: return unary_row<exp_of, double>;
    case PointwiseMode::log: return unary_row<log_of, double>;
    case PointwiseMode::log1p: return unary_row<log1p_of, double>;
    case PointwiseMode::expm1: return unary_row<expm1_of, double>;
    case PointwiseMode::erf: return unary_row<erf_of, double>;
    case PointwiseMode::tanh_fwd: return unary_row<tanh_of, double>;
    case PointwiseMode::sigmoid_fwd: return unary_row<sigmoid_of, double>;
    case PointwiseMode::elu_fwd: return unary_row<elu_of, double>;
    case PointwiseMode::gelu_fwd: return unary_row<gelu_of, double>;
    case PointwiseMode::softplus_fwd: return unary_row<softplus_of, double>;
    case PointwiseMode::swish_fwd: return unary_row<swish_of, double>;
    case PointwiseMode::gelu_approx_tanh_fwd: return unary_row<gelu_tanh_of, double>;
    case PointwiseMode::tanh_bwd: return gradient_row<tanh_slope>;
    case PointwiseMode::sigmoid_bwd: return gradient_row<sigmoid_slope_of>;
    case PointwiseMode::elu_bwd: return gradient_row<elu_slope>;
    case PointwiseMode::gelu_bwd: return gradient_row<gelu_slope>;
    case PointwiseMode::softplus_bwd: return gradient_row<softplus_slope>;
    case PointwiseMode::swish_bwd: return gradient_row<swish_slope>;
    case PointwiseMode::gelu_approx_tanh_bwd: return gradient_row<gelu_tanh_slope>;
    case PointwiseMode::div:
      if (integer) return binary_row<whole_quotient, double>;
      break;
    case PointwiseMode::reciprocal:
      if (integer) return unary_row<whole_reciprocal, double>;
      break;
    default: break;
  }
  return common_row<double>(mode);
}

}  // namespace ashlar::cpu

// Validation and symbolic differentiation of score programs.
#include "graph/score_program.hpp"

#include <fmt/format.h>

#include <numbers>

#include "graph/enum_names.hpp"
#include "graph/pointwise_traits.hpp"

namespace ashlar {

namespace {

using Mode = PointwiseMode;
using Number = std::int64_t;

std::string describe_args(const ScoreStep& step) {
  return fmt::format("args [{}]", fmt::join(step.args.begin(), step.args.end(), ", "));
}

bool is_available(Number arg, std::size_t step, const ScoreOperands& operands) {
  if (arg < 0 || arg >= kFirstScoreStep + static_cast<Number>(step)) return false;
  if (arg == kScoreGradient) return operands.gradient;
  if (arg >= kFirstScoreInput && arg < kScoreGradient)
    return operands.inputs[arg - kFirstScoreInput];
  return true;
}

// Appends the derivative of each step to the program. A slope is the number of the value that holds
// it, or nothing where the derivative is 0.
class Differentiator {
 public:
  explicit Differentiator(const ScoreProgram& program)
      : steps_(program), slopes_(static_cast<std::size_t>(kFirstScoreStep)) {
    one_ = constant(1.0);
    slopes_[0] = one_;
    for (std::size_t n = 0; n < program.size(); ++n)
      slopes_.push_back(program[n].constant ? Slope() : slope_of(program[n], number(n)));
  }

  ScoreProgram result() {
    const Slope slope =
        slopes_.size() == static_cast<std::size_t>(kFirstScoreStep) ? slopes_[0] : slopes_.back();
    emit(Mode::identity, {slope ? *slope : constant(0.0)});
    return without_unused();
  }

 private:
  using Slope = std::optional<Number>;

  static Number number(std::size_t step) { return kFirstScoreStep + static_cast<Number>(step); }

  Number emit(Pointwise op, Dims args) {
    steps_.push_back({.op = op, .args = args, .constant = {}});
    return number(steps_.size() - 1);
  }
  Number emit(Mode mode, Dims args) { return emit(Pointwise{.mode = mode}, args); }
  Number constant(double value) {
    steps_.push_back({.op = {}, .args = {}, .constant = value});
    return number(steps_.size() - 1);
  }
  Number scaled(double factor, Number x) {
    return factor == 1.0 ? x : emit(Pointwise{.mode = Mode::identity, .alpha1 = factor}, {x});
  }
  Number times(Number a, Number b) {
    if (a == one_) return b;
    return b == one_ ? a : emit(Mode::mul, {a, b});
  }
  Slope times(Number factor, Slope slope) { return slope ? Slope(times(factor, *slope)) : Slope(); }
  Slope sum(Slope a, Slope b) {
    if (!a || !b) return a ? a : b;
    return emit(Mode::add, {*a, *b});
  }
  Slope negative(Slope a) { return a ? Slope(scaled(-1.0, *a)) : a; }
  Slope choose(Number predicate, Slope a, Slope b) {
    if (!a && !b) return {};
    const Number zero = a && b ? 0 : constant(0.0);
    return emit(Mode::binary_select, {a.value_or(zero), b.value_or(zero), predicate});
  }

  Slope slope_of(const ScoreStep& step, Number y) {
    Slope slopes[3];
    for (int i = 0; i < step.args.rank(); ++i) slopes[i] = slopes_[at(step.args[i])];
    if (!slopes[0] && !slopes[1]) return {};
    const Number x = scaled(step.op.alpha1, step.args[0]);
    const Slope dx = slopes[0] ? Slope(scaled(step.op.alpha1, *slopes[0])) : Slope();
    if (step.args.rank() == 1) return unary(step.op, x, dx, y);
    const Number b = scaled(step.op.alpha2, step.args[1]);
    const Slope db = slopes[1] ? Slope(scaled(step.op.alpha2, *slopes[1])) : Slope();
    if (step.op.mode == Mode::binary_select) return choose(step.args[2], dx, db);
    return binary(step.op, x, b, dx, db, y);
  }

  Slope binary(Pointwise op, Number x, Number b, Slope dx, Slope db, Number y) {
    switch (op.mode) {
      case Mode::add: return sum(dx, db);
      case Mode::sub: return sum(dx, negative(db));
      case Mode::mul: return sum(times(b, dx), times(x, db));
      case Mode::min: return choose(emit(Mode::cmp_le, {x, b}), dx, db);
      case Mode::max: return choose(emit(Mode::cmp_ge, {x, b}), dx, db);
      case Mode::add_square: return sum(dx, times(scaled(2.0, b), db));
      case Mode::div: {
        const Slope numerator = sum(dx, negative(times(y, db)));
        return emit(Mode::div, {*numerator, b});
      }
      case Mode::mod: {  // x - trunc(x / b) b
        if (!db) return dx;
        const Number ratio = emit(Mode::div, {x, b});
        const Number whole =
            emit(Mode::binary_select, {emit(Mode::ceil, {ratio}), emit(Mode::floor, {ratio}),
                                       emit(Mode::cmp_lt, {ratio, constant(0.0)})});
        return sum(dx, negative(times(whole, db)));
      }
      case Mode::pow: {
        Slope result;
        if (dx) {
          const Number lower = emit(Mode::pow, {x, emit(Mode::sub, {b, one_})});
          result = times(times(b, lower), dx);
        }
        return sum(result, db ? times(times(y, emit(Mode::log, {x})), db) : Slope());
      }
      case Mode::atan2: {  // (b dx - x db) / (x^2 + b^2)
        const Number square = emit(Mode::add_square, {emit(Mode::mul, {x, x}), b});
        return emit(Mode::div, {*sum(times(b, dx), negative(times(x, db))), square});
      }
      default: break;
    }
    if (!is_activation_gradient(op.mode)) return {};  // comparisons
    op.alpha1 = op.alpha2 = 1.0;
    return dx ? Slope(emit(op, {*dx, b})) : Slope();
  }

  Slope unary(Pointwise op, Number x, Slope dx, Number y) {
    const auto activation_gradient = [&](Mode gradient) {
      op.mode = gradient;
      op.alpha1 = op.alpha2 = 1.0;
      return Slope(emit(op, {*dx, x}));
    };
    switch (op.mode) {
      case Mode::sqrt: return emit(Mode::div, {scaled(0.5, *dx), y});
      case Mode::abs: {
        const Number zero = constant(0.0);
        const Number sign =
            emit(Mode::sub, {emit(Mode::cmp_gt, {x, zero}), emit(Mode::cmp_lt, {x, zero})});
        return times(sign, dx);
      }
      case Mode::cos: return negative(times(emit(Mode::sin, {x}), dx));
      case Mode::exp: return times(y, dx);
      case Mode::log: return emit(Mode::div, {*dx, x});
      case Mode::neg: return negative(dx);
      case Mode::rsqrt: return emit(Mode::div, {scaled(-0.5, *times(y, dx)), x});
      case Mode::sin: return times(emit(Mode::cos, {x}), dx);
      case Mode::tan: return times(emit(Mode::add_square, {one_, y}), dx);
      case Mode::erf: {  // 2 / sqrt(pi) exp(-x^2)
        const Number density = emit(Mode::exp, {scaled(-1.0, emit(Mode::mul, {x, x}))});
        return times(scaled(2.0 * std::numbers::inv_sqrtpi, density), dx);
      }
      case Mode::log1p: return emit(Mode::div, {*dx, emit(Mode::add, {one_, x})});
      case Mode::expm1: return times(emit(Mode::add, {one_, y}), dx);
      case Mode::identity: return dx;
      case Mode::reciprocal: return negative(times(emit(Mode::mul, {y, y}), dx));
      case Mode::relu_fwd: return activation_gradient(Mode::relu_bwd);
      case Mode::tanh_fwd: return activation_gradient(Mode::tanh_bwd);
      case Mode::sigmoid_fwd: return activation_gradient(Mode::sigmoid_bwd);
      case Mode::elu_fwd: return activation_gradient(Mode::elu_bwd);
      case Mode::gelu_fwd: return activation_gradient(Mode::gelu_bwd);
      case Mode::softplus_fwd: return activation_gradient(Mode::softplus_bwd);
      case Mode::swish_fwd: return activation_gradient(Mode::swish_bwd);
      case Mode::gelu_approx_tanh_fwd: return activation_gradient(Mode::gelu_approx_tanh_bwd);
      default: return {};  // steps: floor, ceil, trunc, round, sign, logical_not
    }
  }

  // Eliminates steps that the last step does not need, and renumbers the rest.
  ScoreProgram without_unused() const {
    std::vector<bool> needed(steps_.size());
    needed.back() = true;
    for (std::size_t n = steps_.size(); n-- > 0;)
      if (needed[n])
        for (Number arg : steps_[n].args)
          if (arg >= kFirstScoreStep) needed[at(arg - kFirstScoreStep)] = true;
    ScoreProgram kept;
    std::vector<Number> numbers(steps_.size());
    for (std::size_t n = 0; n < steps_.size(); ++n) {
      if (!needed[n]) continue;
      numbers[n] = number(kept.size());
      kept.push_back(steps_[n]);
      for (Number& arg : kept.back().args)
        if (arg >= kFirstScoreStep) arg = numbers[at(arg - kFirstScoreStep)];
    }
    return kept;
  }

  static std::size_t at(Number value) { return static_cast<std::size_t>(value); }

  ScoreProgram steps_;
  std::vector<Slope> slopes_;
  Number one_ = 0;
};

}  // namespace

std::optional<ScoreProgramFault> find_fault(const ScoreProgram& program,
                                            const ScoreOperands& operands) {
  if (program.size() > kMaxScoreSteps)
    return ScoreProgramFault{kMaxScoreSteps, fmt::format("{} steps", program.size()),
                             fmt::format("at most {}", kMaxScoreSteps)};
  for (std::size_t n = 0; n < program.size(); ++n) {
    const ScoreStep& step = program[n];
    const auto fault = [&](std::string got, std::string expected) {
      return ScoreProgramFault{n, std::move(got), std::move(expected)};
    };
    if (step.constant) {
      if (!step.args.empty()) return fault(describe_args(step), "none with a constant");
      continue;
    }
    if (step.op.mode == PointwiseMode::gen_index)
      return fault("mode gen_index", "values 1 to 4, which are the positions");
    if (is_bitwise(step.op.mode))
      return fault(fmt::format("mode {}", enum_name(step.op.mode)),
                   "a mode for floating-point numbers, which scores are");
    const int count = operand_count(step.op.mode);
    if (step.args.rank() != count)
      return fault(describe_args(step), fmt::format("{} for {}", count, enum_name(step.op.mode)));
    const Number last = kFirstScoreStep + static_cast<Number>(n) - 1;
    for (Number arg : step.args)
      if (!is_available(arg, n, operands))
        return fault(fmt::format("value {}", arg),
                     fmt::format("0 to 4, a score input that is given (5 to 8){}{}",
                                 operands.gradient ? ", the gradient (9)" : "",
                                 n == 0 ? ""
                                        : fmt::format(" or an earlier step ({} to {})",
                                                      kFirstScoreStep, last)));
    if (step.op.relu_lower_clip > step.op.relu_upper_clip)
      return fault(fmt::format("relu_lower_clip {}", step.op.relu_lower_clip),
                   fmt::format("at most relu_upper_clip = {}", step.op.relu_upper_clip));
    if (step.op.softplus_beta == 0.0) return fault("softplus_beta 0", "a value other than 0");
  }
  return {};
}

std::optional<std::size_t> undifferentiable_step(const ScoreProgram& program) {
  std::vector<bool> depends(static_cast<std::size_t>(kFirstScoreStep) + program.size());
  depends[0] = true;
  for (std::size_t n = 0; n < program.size(); ++n) {
    const ScoreStep& step = program[n];
    if (is_activation_gradient(step.op.mode) && step.args.rank() == 2 &&
        depends[static_cast<std::size_t>(step.args[1])])
      return n;
    for (Number arg : step.args)
      if (depends[static_cast<std::size_t>(arg)])
        depends[static_cast<std::size_t>(kFirstScoreStep) + n] = true;
  }
  return {};
}

ScoreProgram differentiate(const ScoreProgram& program) { return Differentiator(program).result(); }

ScoreProgram gradient_of(const ScoreProgram& program) {
  ScoreProgram gradient = differentiate(program);
  const auto slope = kFirstScoreStep + static_cast<Number>(gradient.size()) - 1;
  gradient.push_back({.op = {.mode = Mode::mul}, .args = {slope, kScoreGradient}, .constant = {}});
  return gradient;
}

}  // namespace ashlar

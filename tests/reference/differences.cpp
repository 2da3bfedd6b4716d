#include "reference/differences.hpp"

#include <fmt/format.h>

#include <ashlar/gradients.hpp>
#include <cmath>
#include <random>

namespace ashlar::reference {

namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Vector moved(const Vector& x, const Vector& direction, double step) {
  Vector result = x;
  for (std::size_t i = 0; i < x.size(); ++i) result[i] += step * direction[i];
  return result;
}

// sum(dy * y) as a function of one input.
class Loss {
 public:
  Loss(Evaluation& forward, const Vector& dy) : forward_(forward), dy_(dy) {}
  double at(const std::string& input, const Vector& x) {
    forward_.set(input, x);
    forward_.run_nodes();
    return dot(forward_.get("y"), dy_);
  }
  // The central difference, and an estimate of its rounding error.
  std::pair<double, double> slope(const std::string& input, const Vector& x,
                                  const Vector& direction, double step) {
    const double above = at(input, moved(x, direction, step));
    const double below = at(input, moved(x, direction, -step));
    constexpr double kRounding = 1e-14;
    return {(above - below) / (2 * step),
            kRounding * (std::abs(above) + std::abs(below) + 1) / step};
  }

 private:
  Evaluation& forward_;
  const Vector& dy_;
};

}  // namespace

DifferenceReport compare_with_differences(const Build& build, std::uint64_t seed, double low,
                                          double high, const FillInputs& fill) {
  Graph f, b;
  const Function forward_function = build(f), function = build(b);
  f.output("y", forward_function.y);
  const Value dy = b.input("dy", function.y.dims(), f64);
  const std::vector<Value> found =
      gradients(b, std::array{function.y}, function.wrt, {.cotangents = {dy}});
  std::vector<std::string> names;
  for (std::size_t i = 0; i < found.size(); ++i) {
    names.push_back(function.wrt[i].tensor().name);
    if (found[i]) b.output("d" + names.back(), found[i]);
  }
  DifferenceReport report;
  if (std::ranges::none_of(found, [](Value value) { return static_cast<bool>(value); }))
    return report;

  Evaluation forward(f), backward(b);
  forward.fill_inputs(seed, low, high);
  if (fill) fill(forward);
  for (const Tensor& tensor : b.tensors())
    if (tensor.kind == TensorKind::input && forward.has(tensor.name))
      backward.set(tensor.name, forward.get(tensor.name));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  Vector weights(static_cast<std::size_t>(number_count(dy.tensor())));
  for (double& weight : weights) weight = uniform(random);
  backward.set("dy", weights);
  backward.run_nodes();

  Loss loss(forward, weights);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Vector x = forward.get(names[i]);
    Vector direction(x.size());
    for (double& part : direction) part = uniform(random);
    const double slope = found[i] ? dot(backward.get("d" + names[i]), direction) : 0.0;
    constexpr double kStep = 1e-4, kSmallStep = 1e-6, kRelative = 1e-6;
    const auto [wide, wide_rounding] = loss.slope(names[i], x, direction, kStep);
    const auto [narrow, rounding] = loss.slope(names[i], x, direction, kSmallStep);
    loss.at(names[i], x);
    ++report.compared;
    const double scale = 1 + std::abs(narrow);
    if (std::abs(slope - narrow) <= 100 * kRelative * scale + rounding) continue;
    // The difference of two steps bounds the curvature; a kink between them does not converge.
    if (std::isfinite(slope) && std::abs(wide - narrow) > kRelative * scale + rounding) {
      ++report.undecided;
      continue;
    }
    report.wrong +=
        fmt::format("{}: gradient {}, differences {} and {}\n", names[i], slope, wide, narrow);
  }
  return report;
}

}  // namespace ashlar::reference

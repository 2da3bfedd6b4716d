// Random number generation with Philox4x32-10: a pure function of seed, offset and row-major
// position.
#include <numbers>

#include "base/dropout.hpp"
#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

// Box-Muller. Elements 2k and 2k + 1 share the uniform values u, v of their two lanes:
//   sqrt(-2 log u) cos(2 pi v)  and  sqrt(-2 log u) sin(2 pi v)
template <class Scalar>
Scalar standard_normal(std::uint64_t seed, std::uint64_t offset, std::uint64_t index) {
  const std::uint64_t even = index & ~std::uint64_t{1};
  const Scalar u = static_cast<double>(uniform_open(philox_element(seed, offset, even)));
  const Scalar v = static_cast<double>(uniform_open(philox_element(seed, offset, even + 1)));
  const Scalar radius = sqrt(Scalar(-2.0) * log(u));
  const Scalar angle = Scalar(2.0 * std::numbers::pi) * v;
  return radius * (index == even ? cos(angle) : sin(angle));
}

}  // namespace

template <class Operands>
void evaluate(const Rng& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto y = operands.output(Rng::y);
  const auto seed = static_cast<std::uint64_t>(
      operands.has_input(Rng::seed_tensor) ? operands.integer(Rng::seed_tensor) : op.seed);
  const auto offset = static_cast<std::uint64_t>(
      operands.has_input(Rng::offset_tensor) ? operands.integer(Rng::offset_tensor) : op.offset);

  for_each(y.dims(), [&](const Index& index) {
    const auto i = static_cast<std::uint64_t>(flatten(y.dims(), index));
    switch (op.distribution) {
      case RngDistribution::bernoulli:
        return y.store(index, Scalar(bernoulli(seed, offset, i, op.probability) ? 1.0 : 0.0));
      case RngDistribution::uniform: {
        const Scalar u = static_cast<double>(uniform_open(philox_element(seed, offset, i)));
        return y.store(index, Scalar(op.minimum) + (Scalar(op.maximum) - Scalar(op.minimum)) * u);
      }
      case RngDistribution::normal:
        return y.store(index, Scalar(op.mean) + Scalar(op.standard_deviation) *
                                                    standard_normal<Scalar>(seed, offset, i));
    }
  });
}

ASHLAR_REFERENCE(Rng);

}  // namespace ashlar::reference

// Rotary position embedding: pair (u, v) of a row becomes (u cos a - v sin a, v cos a + u sin a),
// or the same with -a where `inverse`; elements from `width` on are copied.
#include "graph/rope_angles.hpp"
#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

template <class Scalar>
struct Turn {
  Scalar cos, sin;
};

// A computed cosine or sine: `value` from an angle in double precision, rounded to the compute
// type. The product position * frequency, and its reduction to a quarter turn, cost a few
// roundings of the angle.
template <class Scalar>
Scalar computed(double value, double angle, double scale) {
  if constexpr (std::is_same_v<Scalar, double>) {
    return value * scale;
  } else {
    constexpr double kAngleUnits = 8.0;
    const double shift = kAngleUnits * Rounding<Arithmetic::f64>::unit * std::fabs(angle);
    return Scalar::of_function(value * scale, std::min(shift, 2.0) * scale, kFunctionUnits);
  }
}

template <class Operands>
auto turn_of(const Rope& op, const Operands& operands, const Index& row, std::int64_t pair) {
  using Scalar = typename Operands::Scalar;
  if (operands.has_input(Rope::cos)) {
    const Index at = {row[0], row[1], row[2], pair};
    return Turn<Scalar>{operands.input(Rope::cos).load(at), operands.input(Rope::sin).load(at)};
  }
  const double position = operands.has_input(Rope::positions)
                              ? nominal(operands.input(Rope::positions).load(Index{row[0], row[2]}))
                              : real(row[2]);
  const double angle = position * rope_frequency(op, pair), scale = rope_scale(op);
  return Turn<Scalar>{computed<Scalar>(std::cos(angle), angle, scale),
                      computed<Scalar>(std::sin(angle), angle, scale)};
}

}  // namespace

template <class Operands>
void evaluate(const Rope& op, const Operands& operands) {
  const auto x = operands.input(Rope::x);
  const auto y = operands.output(Rope::y);
  const RopePairing pairing = rope_pairing(op);
  Dims rows = x.dims();
  rows[3] = 1;
  for_each(rows, [&](const Index& row) {
    Index first = row, second = row;
    for (std::int64_t pair = 0; pair < op.width / 2; ++pair) {
      const auto turn = turn_of(op, operands, row, pair);
      const auto sin = op.inverse ? -turn.sin : turn.sin;
      first[3] = pair * pairing.step;
      second[3] = first[3] + pairing.distance;
      const auto u = x.load(first), v = x.load(second);
      y.store(first, u * turn.cos - v * sin);
      y.store(second, v * turn.cos + u * sin);
    }
    for (first[3] = op.width; first[3] < x.dims()[3]; ++first[3]) y.store(first, x.load(first));
  });
}

ASHLAR_REFERENCE(Rope);

}  // namespace ashlar::reference

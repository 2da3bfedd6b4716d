// Input values for recurrent networks.
#include "graph/rnn_shapes.hpp"
#include "support/fill_use.hpp"

namespace ashlar::support {

namespace {

// Activated gates are in (0, 1) or (-1, 1), states in (-1, 1), and so on: plausible outputs of a
// forward pass.
double record_value(const RnnShape& shape, std::int64_t at, Random& random) {
  const std::int64_t gate = at / shape.hidden;
  if (shape.mode == RnnMode::relu) return std::max(0.0, uniform(random, -1.0, 1.0));
  const bool in_unit_interval = (shape.mode == RnnMode::lstm && (gate < 2 || gate == 3)) ||
                                (shape.mode == RnnMode::gru && gate < 2);
  return in_unit_interval ? uniform(random, 0.05, 0.95) : uniform(random, -1.0, 1.0);
}

template <class Rnn>
std::optional<double> fill(const Use& use, const Rnn& op, Random& random) {
  const Dims& sequence = use.dims(0);
  if (use.slot == "seq_lengths") {
    // Sometimes a length beyond the extent.
    const std::int64_t most =
        op.layout == RnnLayout::packed
            ? sequence[0] / std::max<std::int64_t>(1, use.dims(Rnn::seq_lengths)[0]) + 2
            : sequence[0];
    return random() % 8 == 0 ? whole(random, -2, most + 3) : whole(random, 0, most);
  }
  if (use.slot == "reserve") {
    const RnnShape shape(op, sequence.rank() == 3 ? sequence : Dims{0, 0}, 0, 0);
    return record_value(shape, use.element % shape.reserve_width(), random);
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> fill_recurrent(const Use& use, Random& random) {
  if (const auto* op = std::get_if<RnnForward>(&use.node->op)) return fill(use, *op, random);
  if (const auto* op = std::get_if<RnnBackwardData>(&use.node->op)) return fill(use, *op, random);
  if (const auto* op = std::get_if<RnnBackwardWeights>(&use.node->op))
    return fill(use, *op, random);
  return std::nullopt;
}

}  // namespace ashlar::support

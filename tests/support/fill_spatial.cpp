// Input values for CTC, the spatial transformer, im2col and tensor_transform.
#include "support/fill_use.hpp"

namespace ashlar::support {

namespace {

std::optional<double> fill_ctc(const Use& use, const CtcLoss& op, Random& random) {
  const Dims& x = use.dims(CtcLoss::x);
  const Dims& labels = use.dims(CtcLoss::labels);
  const auto share = [&](std::int64_t total) { return total / std::max<std::int64_t>(x[1], 1); };
  if (use.slot == "x" && op.input == CtcInput::probabilities) return uniform(random, 0.05, 1.0);
  // Sometimes out of range: the operation defines the result.
  constexpr int kWrong = 24;
  const bool wrong = random() % kWrong == 0;
  if (use.slot == "labels") return wrong ? whole(random, -2, x[2] + 2) : whole(random, 0, x[2] - 1);
  if (use.slot == "label_lengths") {
    const std::int64_t most = labels.rank() == 1 ? share(labels[0]) : labels[1];
    return wrong ? whole(random, -2, most + 4) : whole(random, 0, most);
  }
  if (use.slot == "input_lengths")
    return wrong ? whole(random, -2, x[0] + 4) : whole(random, x[0] / 2, x[0]);
  return std::nullopt;
}

}  // namespace

std::optional<double> fill_spatial(const Use& use, Random& random) {
  if (const auto* op = std::get_if<CtcLoss>(&use.node->op)) return fill_ctc(use, *op, random);
  // Mostly near x, sometimes far outside.
  if (use.slot == "grid") return random() % 64 == 0 ? 1e9 : uniform(random, -1.4, 1.4);
  return std::nullopt;
}

}  // namespace ashlar::support

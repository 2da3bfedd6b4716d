#include "cuda/text/operation_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/element.hpp"
#include "graph/enum_names.hpp"
#include "graph/pointwise_traits.hpp"

namespace ashlar::cuda {

namespace {

// Attribute arguments after the operands; of bitwise modes the width and sign of their type.
std::string attributes(const Pointwise& op, DType compute) {
  if (is_bitwise(op.mode))
    return fmt::format(", {}, {}", bit_width(compute), lowest_value(compute) < 0.0);
  switch (op.mode) {
    case PointwiseMode::relu_fwd:
    case PointwiseMode::relu_bwd:
      return fmt::format(", {}, {}, {}", literal(op.relu_lower_clip), literal(op.relu_upper_clip),
                         literal(op.relu_lower_slope));
    case PointwiseMode::elu_fwd:
    case PointwiseMode::elu_bwd: return fmt::format(", {}", literal(op.elu_alpha));
    case PointwiseMode::softplus_fwd:
    case PointwiseMode::softplus_bwd: return fmt::format(", {}", literal(op.softplus_beta));
    case PointwiseMode::swish_fwd:
    case PointwiseMode::swish_bwd: return fmt::format(", {}", literal(op.swish_beta));
    default: return {};
  }
}

}  // namespace

std::string operation_text(const Pointwise& op, DType compute, std::vector<std::string> operands,
                           bool is_short) {
  std::string name = fmt::format("op_{}", enum_name(op.mode));
  if (!is_floating(compute) &&
      (op.mode == PointwiseMode::div || op.mode == PointwiseMode::reciprocal))
    name += "_integer";
  if (is_short) name += "_short";
  std::string list;
  for (std::size_t n = 0; n < operands.size(); ++n) {
    const double alpha = n == 0 ? op.alpha1 : n == 1 ? op.alpha2 : 1.0;
    list += (n == 0 ? "" : ", ") +
            (alpha == 1.0 ? operands[n] : fmt::format("{} * {}", literal(alpha), operands[n]));
  }
  return fmt::format("{}<R>({}{})", name, list, attributes(op, compute));
}

std::string literal(double value) {
  if (std::isnan(value)) return "(R)quiet_nan()";
  if (std::isinf(value)) return value > 0 ? "(R)infinity()" : "-(R)infinity()";
  std::string text = fmt::format("{:.17g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return "(R)" + (value < 0 ? "(" + text + ")" : text);
}

std::string type_name(DType dtype) {
  return std::string(dtype == DType::boolean ? "boolean" : to_string(dtype));
}

std::string tag(DType dtype) { return type_name(dtype) + "()"; }

}  // namespace ashlar::cuda

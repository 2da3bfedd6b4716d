// PointwiseProgram: queries, cost and text form.
#include "plan/pointwise_program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graph/enum_names.hpp"

namespace ashlar {

namespace {

using Kind = PointwiseProgram::Step::Kind;

bool is_elementary_function(PointwiseMode mode) {
  switch (mode) {
    case PointwiseMode::pow:
    case PointwiseMode::atan2:
    case PointwiseMode::cos:
    case PointwiseMode::exp:
    case PointwiseMode::log:
    case PointwiseMode::log1p:
    case PointwiseMode::expm1:
    case PointwiseMode::sin:
    case PointwiseMode::tan:
    case PointwiseMode::erf: return true;
    default:
      return (mode >= PointwiseMode::tanh_fwd && mode <= PointwiseMode::gelu_approx_tanh_fwd) ||
             (mode >= PointwiseMode::tanh_bwd && mode <= PointwiseMode::gelu_approx_tanh_bwd);
  }
}

}  // namespace

bool PointwiseProgram::has_random() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const Step& step) { return step.kind == Kind::random; });
}

bool PointwiseProgram::has_blocks() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const Step& step) { return !step.blocks.empty(); });
}

bool PointwiseProgram::is_plain_load() const {
  return steps.size() == 1 && steps[0].kind == Kind::load && stores.empty() && result == 0;
}

bool PointwiseProgram::is_plain_store() const {
  return steps.size() == 1 && has_accumulator() && stores.size() == 1 && reduced.empty();
}

DType PointwiseProgram::precision() const {
  for (const Step& step : steps) {
    if (step.kind == Kind::load && needs_f64(step.view.dtype)) return f64;
    if (step.kind == Kind::compute && needs_f64(step.compute)) return f64;
    if (step.round_to && needs_f64(*step.round_to)) return f64;
  }
  for (const Store& store : stores)
    if (store.view.dtype == f64) return f64;
  return f32;
}

double PointwiseProgram::flops_per_element() const {
  double flops = 0;
  constexpr double kOfRandomNumber = 10;
  for (const Step& step : steps) {
    if (step.kind == Kind::compute) flops += is_elementary_function(step.op.mode) ? 10 : 1;
    if (step.kind == Kind::random) flops += kOfRandomNumber;
  }
  return flops;
}

std::string PointwiseProgram::to_text(const Graph& graph) const {
  std::string text;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    text += fmt::format("  v{} = ", i);
    switch (step.kind) {
      case Kind::accumulator: text += "accumulator"; break;
      case Kind::load: text += fmt::format("load {}", graph.tensor(step.view.tensor).name); break;
      case Kind::constant: text += fmt::format("{}", step.constant); break;
      case Kind::random: text += enum_name(step.random.distribution); break;
      case Kind::compute: {
        text += enum_name(step.op.mode);
        for (int arg : step.args)
          if (arg >= 0) text += fmt::format(" v{}", arg);
      }
    }
    if (step.round_to) text += fmt::format(" as {}", to_string(*step.round_to));
    text += '\n';
  }
  for (const Store& store : stores)
    text += fmt::format("  store v{} to {}\n", store.value, graph.tensor(store.view.tensor).name);
  for (const int value : reduced) text += fmt::format("  reduce v{}\n", value);
  return text;
}

PointwiseProgram plain_load(const View& view) {
  PointwiseProgram program;
  program.space = view.dims;
  program.steps.push_back({.kind = Kind::load, .view = view});
  program.result = 0;
  return program;
}

PointwiseProgram plain_store(const View& view) {
  PointwiseProgram program;
  program.space = view.dims;
  program.steps.push_back({.kind = Kind::accumulator});
  program.stores.push_back({view, 0});
  return program;
}

std::optional<DType> register_rounding(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::f32:
    case DType::f16:
    case DType::bf16: return std::nullopt;
    default: return dtype;
  }
}

}  // namespace ashlar

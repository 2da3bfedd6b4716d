// The text of Plan::explain().
#include "plan/plan_data.hpp"

namespace ashlar {

namespace {

std::string in_units(double value, const char* unit) {
  const char* prefix[] = {"", "k", "M", "G", "T", "P"};
  int step = 0;
  while (value >= 1000 && step < 5) {
    value /= 1000;
    ++step;
  }
  return fmt::format("{:.3g} {}{}", value, prefix[step], unit);
}

std::string in_time(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string tensor_names(const Graph& graph, const std::vector<TensorId>& ids) {
  std::string text;
  for (TensorId id : ids) text += (text.empty() ? "" : ", ") + graph.tensor(id).name;
  return text.empty() ? "nothing" : text;
}

// Peak FLOP/s of the device for the region. Relative to 16-bit operands, tensor cores run 8-bit
// operands at twice and tf32 at half the rate; the wider operand decides.
double peak_of(const Region& region, const DeviceProps& device, bool allow_tf32) {
  if (!region.anchor || region.anchor->inputs.empty()) return device.flops_f32;
  const auto& inputs = region.anchor->inputs;
  DType dtype = inputs[0].dtype;
  if (is_gemm_like(region.anchor->op)) {
    if (bit_width(inputs[1].dtype) > bit_width(dtype)) dtype = inputs[1].dtype;
    const int capability = device.compute_capability;
    if (bit_width(dtype) <= 8 && capability >= (is_floating(dtype) ? 89 : 75))
      return 2 * device.flops_f16;
    if (dtype == f32 && allow_tf32 && capability >= 80) return device.flops_f16 / 2;
  }
  return bit_width(dtype) <= 16 ? device.flops_f16 : device.flops_f32;
}

// The roofline time of the region and whether it is compute- or memory-bound.
std::string roofline_of(const Region& region, const DeviceProps& device, bool allow_tf32) {
  const double arithmetic = region.flops() / peak_of(region, device, allow_tf32);
  const double memory = region.bytes() / device.bytes_per_second;
  return fmt::format("{} ({}, {}; {}-bound)", in_time(std::max(arithmetic, memory)),
                     in_units(region.flops(), "FLOP"), in_units(region.bytes(), "B"),
                     arithmetic > memory ? "compute" : "memory");
}

// Scratch bytes reserved by the kernel; before it is built, the estimate of its configuration.
std::int64_t scratch_of(const PlanData::Step& step) {
  return step.kernel ? step.kernel->scratch_layout().total_bytes()
                     : step.choice.config.scratch_bytes;
}

// By step: its fusion boundaries with earlier steps.
std::vector<std::string> explain_boundaries(const PlanData& plan) {
  std::vector<std::size_t> step_of(plan.lowered.graph.nodes().size(), 0);
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (const NodeId id : plan.steps[i].region.nodes) step_of[static_cast<std::size_t>(id)] = i;
  std::vector<std::string> texts(plan.steps.size());
  for (const FusionBoundary& one : fusion_boundaries(plan.lowered, plan.limits))
    texts[step_of[static_cast<std::size_t>(one.to)]] += fmt::format(
        "  boundary  with region {}, '{}': {}\n", step_of[static_cast<std::size_t>(one.from)] + 1,
        plan.lowered.graph.tensor(one.value).name, one.reason);
  return texts;
}

std::string explain_step(const PlanData& plan, std::size_t index, const std::string& apart) {
  const PlanData::Step& step = plan.steps[index];
  const Graph& graph = plan.lowered.graph;
  std::string text = fmt::format("region {} of {}: {}\n", index + 1, plan.steps.size(),
                                 step.region.to_text(graph));
  text += fmt::format("  reads     {}\n  writes    {}\n", tensor_names(graph, step.region.reads),
                      tensor_names(graph, step.region.writes));
  text += apart;
  text += fmt::format("  roofline  {}\n",
                      roofline_of(step.region, plan.device, plan.options.allow_tf32));
  if (step.choice.engine) {
    text += fmt::format("  engine    {} ({})\n", step.choice.engine->id(),
                        to_string(step.choice.engine->kind()));
    if (!step.choice.config.knobs.empty())
      text += fmt::format("  config    {}\n", step.choice.config.to_text());
    text += fmt::format("  estimate  {}, scratch {} bytes\n", in_time(step.choice.seconds),
                        scratch_of(step));
  } else {
    text += fmt::format("  engine    none: this build has no engines for {}\n",
                        plan.device.kind == DeviceKind::cuda ? "CUDA" : "the CPU");
  }
  int others = 0;
  for (const Attempt& attempt : step.choice.attempts) {
    if (attempt.is_other_operation)
      ++others;
    else
      text +=
          fmt::format("  tried     {}{}: {}\n", attempt.engine == step.choice.engine ? "* " : "  ",
                      attempt.engine->id(), attempt.outcome);
  }
  if (others > 0) text += fmt::format("  others    {} engines for other operations\n", others);
  return text;
}

}  // namespace

std::string PlanData::explain() const {
  std::string text =
      fmt::format("plan for '{}' on {} ({})\n", graph.name(), device.name, device.description);
  if (!device.present) text += "this device is not present: the plan is explained, not built\n";
  text += fmt::format("{} operation(s) in {} region(s)\n", graph.nodes().size(), steps.size());
  for (const std::string& note : lowered.notes) text += fmt::format("rewrite: {}\n", note);
  double seconds = 0;
  const std::vector<std::string> apart = explain_boundaries(*this);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    text += explain_step(*this, i, apart[i]);
    seconds += steps[i].choice.seconds;
  }
  text += fmt::format("estimate: {} in total\n", in_time(seconds));
  text += device.present
              ? fmt::format("workspace: {} bytes from the caller, {} bytes owned by the plan\n",
                            workspace_bytes, owned_bytes)
              : "workspace: known when the plan is built\n";
  text += fmt::format(
      "notes: {}, {}, accumulation {}, {}, {}\n",
      notes.deterministic ? "deterministic" : "not deterministic", notes.tf32 ? "tf32" : "no tf32",
      notes.reduced_precision_accumulation ? "in reduced precision"
      : notes.truncating_accumulation      ? "truncated by tensor cores"
                                           : "in the compute type",
      notes.winograd ? fmt::format("winograd tiles of {}", notes.winograd) : "no winograd",
      notes.runtime_compiled ? "compiled at run time" : "no run-time compilation");
  return text;
}

}  // namespace ashlar

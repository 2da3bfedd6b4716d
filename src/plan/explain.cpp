// The text of Plan::explain().
#include <fmt/format.h>

#include <ashlar/inspect.hpp>

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

std::string region_text(const Inspection& whole, std::size_t index) {
  const RegionInspection& region = whole.regions[index];
  std::string text =
      fmt::format("region {} of {}: {}\n", index + 1, whole.regions.size(), region.name);
  text += fmt::format("  reads     {}\n  writes    {}\n", tensor_names(whole.graph, region.reads),
                      tensor_names(whole.graph, region.writes));
  for (const RegionBoundary& boundary : region.boundaries)
    text += fmt::format("  boundary  with region {}, '{}': {}\n", boundary.region + 1,
                        whole.graph.tensor(boundary.value).name, boundary.reason);
  text += fmt::format("  roofline  {} ({}, {}; {}-bound)\n", in_time(region.roofline_seconds()),
                      in_units(region.flops, "FLOP"), in_units(region.bytes, "B"),
                      region.arithmetic_seconds > region.memory_seconds ? "compute" : "memory");
  if (!region.engine.empty()) {
    text += fmt::format("  engine    {} ({}, {})\n", region.engine, region.kind,
                        to_string(region.method));
    if (!region.config.empty()) text += fmt::format("  config    {}\n", region.config);
    text += fmt::format("  estimate  {}, scratch {} bytes\n", in_time(region.seconds),
                        region.scratch_bytes);
  } else {
    text += fmt::format("  engine    none: this build has no engines for {}\n",
                        whole.device.kind == DeviceKind::cuda ? "CUDA" : "the CPU");
  }
  int others = 0;
  for (const EngineAttempt& attempt : region.attempts) {
    if (attempt.is_other_operation)
      ++others;
    else
      text += fmt::format("  tried     {}{}: {}\n", attempt.is_chosen ? "* " : "  ", attempt.engine,
                          attempt.outcome);
  }
  if (others > 0) text += fmt::format("  others    {} engines for other operations\n", others);
  return text;
}

}  // namespace

std::string Inspection::to_text() const {
  std::string text =
      fmt::format("plan for '{}' on {} ({})\n", graph.name(), device.name, device.description);
  if (!device.present) text += "this device is not present: the plan is explained, not built\n";
  text += fmt::format("{} operation(s) in {} region(s)\n", operations, regions.size());
  for (const std::string& note : rewrites) text += fmt::format("rewrite: {}\n", note);
  for (std::size_t i = 0; i < regions.size(); ++i) text += region_text(*this, i);
  text += fmt::format("estimate: {} in total\n", in_time(seconds()));
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

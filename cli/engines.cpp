#include <fmt/format.h>

#include <algorithm>
#include <ashlar/plan.hpp>
#include <functional>
#include <map>
#include <memory>

#include "commands.hpp"
#include "compile_flags.hpp"
#include "op_probes.hpp"

namespace ashlar::cli {

namespace {

int print_engines(const std::string& device_name) {
  const Device device = device_name.empty() ? Device::best() : Device::named(device_name);
  const std::vector<EngineInfo> rows = engines(device.props().kind);
  std::size_t id_width = 0;
  std::size_t kind_width = 0;
  for (const EngineInfo& row : rows) {
    id_width = std::max(id_width, row.id.size());
    kind_width = std::max(kind_width, row.kind.size());
  }
  fmt::print("{} engines for {} ({}), most special first:\n", rows.size(), device.props().name,
             device.props().description);
  for (const EngineInfo& row : rows)
    fmt::print("  {:<{}}  {:<{}}  {}\n", row.id, id_width, row.kind, kind_width, row.description);
  return kExitOk;
}

// The engines of all regions of a graph, each once, and whether each region has a vectorised one.
struct Coverage {
  bool defined = false;
  bool vectorised = true;
  std::vector<std::string> ids;
  auto operator<=>(const Coverage&) const = default;
};

Coverage coverage_of(const OpProbe& probe, DType dtype, const Device& device) {
  Coverage coverage;
  std::vector<RegionEngines> regions;
  try {
    regions = engines_for(make_probe(probe, dtype), device);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_graph) throw;
    coverage.vectorised = false;
    return coverage;
  }
  coverage.defined = true;
  for (const RegionEngines& region : regions) {
    bool vectorised = false;
    for (const EngineInfo& engine : region.engines) {
      vectorised = vectorised || !engine.is_reference;
      if (std::find(coverage.ids.begin(), coverage.ids.end(), engine.id) == coverage.ids.end())
        coverage.ids.push_back(engine.id);
    }
    coverage.vectorised = coverage.vectorised && vectorised;
  }
  return coverage;
}

// For every operation, its dtypes grouped by the engines that run them.
int print_operations(const std::string& device_name) {
  const Device device = device_name.empty() ? Device::best() : Device::named(device_name);
  std::size_t fast = 0;
  for (const OpProbe& probe : op_probes()) {
    std::map<Coverage, std::string, std::greater<>> groups;
    for (const DType dtype : kAllDTypes) {
      std::string& names = groups[coverage_of(probe, dtype, device)];
      names += fmt::format("{}{}", names.empty() ? "" : " ", to_string(dtype));
    }
    fmt::print("{}\n", probe.op);
    fast += groups.begin()->first.vectorised ? 1 : 0;
    for (const auto& [coverage, dtypes] : groups) {
      const char* level = !coverage.defined     ? "not defined"
                          : coverage.vectorised ? "vectorised"
                                                : "reference";
      fmt::print("  {:<11}  {}{}\n", level, dtypes,
                 coverage.defined ? fmt::format(": {}", fmt::join(coverage.ids, ", ")) : "");
    }
  }
  fmt::print("{} operations on {}: {} vectorised, {} by the reference alone\n", op_probes().size(),
             device.props().name, fast, op_probes().size() - fast);
  return kExitOk;
}

}  // namespace

void add_engines_command(CLI::App& app, Action& action) {
  auto device = std::make_shared<std::string>();
  auto operations = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("engines", "List the engines of a device in the order they are tried");
  add_device_flag(*command, *device);
  command->add_flag("--ops", *operations,
                    "List every operation and dtype with the engines that run it, vectorised or "
                    "by the reference");
  command->callback([=, &action] {
    action = [=] { return *operations ? print_operations(*device) : print_engines(*device); };
  });
}

}  // namespace ashlar::cli

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/inspect.hpp>
#include <ashlar/operations.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "commands.hpp"
#include "compile_flags.hpp"

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

// How the regions of an operation's sample are computed, and the engines of all of them, each once.
struct Coverage {
  // By the best engine of each region, of these the slowest; none: the dtype is not defined.
  std::optional<ComputeMethod> method;
  std::vector<std::string> ids;
  auto operator<=>(const Coverage&) const = default;
};

Coverage coverage_of(const std::string& operation, DType dtype, const Device& device) {
  Coverage coverage;
  std::vector<RegionInspection> regions;
  try {
    regions = inspect(sample_graph(operation, dtype), device).regions;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_graph) throw;
    return coverage;
  }
  for (const RegionInspection& region : regions) {
    ComputeMethod best = ComputeMethod::reference;
    for (const EngineAttempt& engine : region.attempts) {
      if (!engine.is_supported) continue;
      best = std::max(best, engine.method);
      if (std::find(coverage.ids.begin(), coverage.ids.end(), engine.engine) == coverage.ids.end())
        coverage.ids.push_back(engine.engine);
    }
    coverage.method = std::min(coverage.method.value_or(best), best);
  }
  return coverage;
}

// For every operation, its dtypes grouped by the engines that run them.
int print_operations(const std::string& device_name) {
  const Device device = device_name.empty() ? Device::best() : Device::named(device_name);
  std::map<ComputeMethod, int, std::greater<>> methods;  // by the method of their best dtypes
  for (const OperationInfo& operation : ashlar::operations()) {
    std::map<Coverage, std::string, std::greater<>> groups;
    for (const DType dtype : kAllDTypes) {
      std::string& names = groups[coverage_of(operation.name, dtype, device)];
      names += fmt::format("{}{}", names.empty() ? "" : " ", to_string(dtype));
    }
    fmt::print("{}\n", operation.name);
    if (const auto method = groups.begin()->first.method) ++methods[*method];
    for (const auto& [coverage, dtypes] : groups)
      fmt::print("  {:<21}  {}{}\n", coverage.method ? to_string(*coverage.method) : "not defined",
                 dtypes, coverage.method ? fmt::format(": {}", fmt::join(coverage.ids, ", ")) : "");
  }
  std::string summary;
  for (const auto& [method, count] : methods)
    summary += fmt::format("{} {} by {}", summary.empty() ? ":" : ",", count, to_string(method));
  fmt::print("{} operations on {}{}\n", ashlar::operations().size(), device.props().name, summary);
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
                    "List every operation and dtype with the engines that run it and how the best "
                    "of them computes: tensor cores, SIMD, CUDA cores, one thread per output, "
                    "reference");
  command->callback([=, &action] {
    action = [=] { return *operations ? print_operations(*device) : print_engines(*device); };
  });
}

}  // namespace ashlar::cli

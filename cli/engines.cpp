#include <fmt/format.h>

#include <algorithm>
#include <ashlar/plan.hpp>
#include <memory>

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

}  // namespace

void add_engines_command(CLI::App& app, Action& action) {
  auto device = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("engines", "List the engines of a device in the order they are tried");
  add_device_flag(*command, *device);
  command->callback([device, &action] { action = [device] { return print_engines(*device); }; });
}

}  // namespace ashlar::cli

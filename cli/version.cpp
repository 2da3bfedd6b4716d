#include <ashlar/version.h>
#include <fmt/format.h>

#include <ashlar/device.hpp>

#include "commands.hpp"

namespace ashlar::cli {

void add_version_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("version", "Print the version and the devices known here");
  command->callback([&action] {
    action = [] {
      fmt::print("ashlar {}\n", ASHLAR_VERSION);
      for (const std::string& name : Device::known_names()) {
        const DeviceProps props = Device::named(name).props();
        fmt::print("  {:<14} {}: {}\n", name, props.present ? "present" : "absent ",
                   props.description);
      }
      return kExitOk;
    };
  });
}

}  // namespace ashlar::cli

// The subcommands. Each adds itself to the command line and stores what to do when it was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace ashlar::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitCheckFailed = 1,
  kExitBadInput = 2,  // usage, files, graphs, sizes this machine cannot hold
  kExitInternal = 3,  // a defect of Ashlar or a failing device
};

using Action = std::function<int()>;  // returns an ExitCode; may throw

void add_run_command(CLI::App& app, Action& action);
void add_explain_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
void add_engines_command(CLI::App& app, Action& action);
void add_validate_command(CLI::App& app, Action& action);
void add_print_command(CLI::App& app, Action& action);
void add_bundle_command(CLI::App& app, Action& action);
void add_tune_command(CLI::App& app, Action& action);
void add_doctor_command(CLI::App& app, Action& action);
void add_version_command(CLI::App& app, Action& action);

}  // namespace ashlar::cli

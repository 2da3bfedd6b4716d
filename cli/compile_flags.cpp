#include "compile_flags.hpp"

#include <fmt/format.h>

#include <ashlar/error.hpp>

namespace ashlar::cli {

Device CompileFlags::chosen_device() const {
  return device.empty() ? Device::best() : Device::named(device);
}

Device CompileFlags::present_device() const {
  Device chosen = chosen_device();
  if (!chosen.props().present)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("device {} is not present here; `ashlar explain` works without it",
                            chosen.props().name));
  return chosen;
}

CompileOptions CompileFlags::chosen_options() const {
  CompileOptions chosen = options;
  chosen.fuse = !no_fuse;
  chosen.allow_tf32 = !no_tf32;
  chosen.allow_winograd = !no_winograd;
  chosen.recompute = parse_recompute(recompute);
  for (const std::string& pair : in_place) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--in-place: got '{}', expected OUTPUT=INPUT", pair));
    chosen.in_place.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return chosen;
}

namespace {

void add_tuning_flags(CLI::App& command, CompileFlags& flags, Tunes tunes) {
  CLI::Option* const back_to_back =
      command.add_flag("--back-to-back", flags.options.tune_back_to_back,
                       "Tuning compares runs one after the other on tensors of their own (a CUDA "
                       "graph), as a model runs its layers, instead of one run on cold caches");
  CLI::Option* const top =
      command
          .add_option("--top", flags.options.max_candidates,
                      "Tuning times only the N candidates of each region that are expected to be "
                      "the fastest")
          ->type_name("N")
          ->check(CLI::Range(1, 1000000));
  if (tunes == Tunes::always) return;
  CLI::Option* const tune = command.add_flag(
      "--tune", flags.options.tune, "Time the engines of every region here and take the fastest");
  back_to_back->needs(tune);
  top->needs(tune);
}

std::string at_least_0_bytes(const std::string& text) {
  return text.starts_with('-') ? fmt::format("got {}, expected at least 0 bytes", text)
                               : std::string();
}

void add_memory_flags(CLI::App& command, CompileFlags& flags) {
  command
      .add_option("--workspace-limit", flags.options.workspace_limit,
                  "Most bytes of workspace the plan may ask for")
      ->type_name("BYTES")
      ->check(at_least_0_bytes);
  command
      .add_option("--recompute", flags.recompute,
                  "Compute values again for readers that run much later, instead of keeping them: "
                  "none, cheap (no matmuls, convolutions or attention) or all")
      ->check(CLI::IsMember({"none", "cheap", "all"}));
  command
      .add_option("--recompute-budget", flags.options.recompute_budget,
                  "Recompute no more than it takes for this workspace")
      ->type_name("BYTES")
      ->check(at_least_0_bytes);
  command
      .add_option("--in-place", flags.in_place,
                  "Plan for an output in the memory of an input; may be repeated")
      ->type_name("OUTPUT=INPUT")
      ->allow_extra_args(false);
}

}  // namespace

void add_device_flag(CLI::App& command, std::string& device) {
  // Asking which there are would start the driver, for every command and its help.
  command
      .add_option("--device", device,
                  "Device: cpu, cuda:0 or one that 'ashlar version' lists (default: the best one "
                  "present)")
      ->type_name("NAME");
}

void add_compile_flags(CLI::App& command, CompileFlags& flags, Tunes tunes) {
  add_device_flag(command, flags.device);
  command.add_flag("--deterministic", flags.options.deterministic,
                   "Use only engines that repeat their bits");
  command.add_flag("--no-tf32", flags.no_tf32, "Never round f32 products to tf32");
  command.add_flag("--no-winograd", flags.no_winograd,
                   "Never compute 3 x 3 convolutions in Winograd tiles");
  add_tuning_flags(command, flags, tunes);
  command.add_option("--engine", flags.options.engine, "Take this engine wherever it can run")
      ->type_name("ID");
  command.add_flag("--no-fuse", flags.no_fuse, "One region per operation");
  add_memory_flags(command, flags);
}

}  // namespace ashlar::cli

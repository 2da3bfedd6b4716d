// The options that `run`, `explain`, `bundle` and `tune` share: which device, and how to compile
// for it.
#pragma once

#include <CLI/CLI.hpp>
#include <ashlar/device.hpp>
#include <ashlar/plan.hpp>
#include <string>
#include <vector>

namespace ashlar::cli {

struct CompileFlags {
  std::string device;  // empty: the best one present
  CompileOptions options;
  bool no_fuse = false;
  bool no_tf32 = false;
  bool no_winograd = false;
  std::string recompute = "none";
  std::vector<std::string> in_place;  // "output=input"

  Device chosen_device() const;
  Device present_device() const;  // throws Error(invalid_argument) for one that cannot run here
  CompileOptions chosen_options() const;
};

void add_device_flag(CLI::App& command, std::string& device);
// Whether the command tunes anyway, or where `--tune` asks for it.
enum class Tunes { when_asked, always };
void add_compile_flags(CLI::App& command, CompileFlags& flags, Tunes tunes = Tunes::when_asked);

}  // namespace ashlar::cli

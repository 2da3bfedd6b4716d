// The options that `run` and `explain` share: which device, and how to compile for it.
#pragma once

#include <CLI/CLI.hpp>
#include <ashlar/device.hpp>
#include <ashlar/plan.hpp>
#include <string>

namespace ashlar::cli {

struct CompileFlags {
  std::string device;  // empty: the best one present
  CompileOptions options;
  bool no_fuse = false;
  bool no_tf32 = false;
  bool no_winograd = false;

  Device chosen_device() const;
  CompileOptions chosen_options() const;
};

void add_device_flag(CLI::App& command, std::string& device);
void add_compile_flags(CLI::App& command, CompileFlags& flags);

}  // namespace ashlar::cli

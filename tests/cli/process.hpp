// Runs the built command and keeps what it said.
#pragma once

#include <string>
#include <vector>

namespace ashlar::cli_test {

struct Outcome {
  int exit_code = -1;  // 128 + signal when it was killed
  std::string output;
  std::string errors;
};

// `ashlar` with these arguments. `environment` entries are NAME=VALUE; `stdout_path` replaces the
// captured standard output.
Outcome ashlar(const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment = {},
               const std::string& stdout_path = {});

std::string example(const std::string& name);  // path of examples/graphs/<name>.json

// A fresh folder that lives as long as the test program.
std::string scratch_folder(const std::string& name);
void write_text(const std::string& path, const std::string& text);
std::string read_text(const std::string& path);

}  // namespace ashlar::cli_test

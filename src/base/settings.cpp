// Reads the settings from environment variables.
#include "base/settings.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <utility>

namespace ashlar {

namespace {

constexpr std::array kLevels = {
    std::pair{std::string_view("off"), LogLevel::off},
    std::pair{std::string_view("error"), LogLevel::error},
    std::pair{std::string_view("info"), LogLevel::info},
    std::pair{std::string_view("explain"), LogLevel::explain},
    std::pair{std::string_view("debug"), LogLevel::debug},
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string cache_directory() {
  if (const std::string own = variable("ASHLAR_CACHE"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/ashlar";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/ashlar";
  return {};
}

std::vector<std::string> present(std::initializer_list<const char*> names) {
  std::vector<std::string> values;
  for (const char* name : names)
    if (std::string value = variable(name); !value.empty()) values.push_back(std::move(value));
  return values;
}

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Settings from_environment() {
  Settings result;
  // An unknown level keeps the default: a library must not fail over a misspelt log level.
  if (const char* level = std::getenv("ASHLAR_LOG")) parse_log_level(level, result.log_level);
  result.target = variable("ASHLAR_TARGET");
  result.nvrtc = variable("ASHLAR_NVRTC");
  result.cublaslt = variable("ASHLAR_CUBLASLT");
  result.bundles = list_of(variable("ASHLAR_BUNDLE"));
  result.kernels = variable("ASHLAR_KERNELS");
  result.cuda_sync = !variable("ASHLAR_CUDA_SYNC").empty();
  result.cache_directory = cache_directory();
  result.cuda_roots = present({"CUDA_HOME", "CUDA_PATH"});
  result.python_roots = present({"VIRTUAL_ENV", "CONDA_PREFIX"});
  return result;
}

}  // namespace

bool parse_log_level(std::string_view name, LogLevel& level) {
  for (const auto& [known, value] : kLevels) {
    if (known != name) continue;
    level = value;
    return true;
  }
  return false;
}

const Settings& settings() {
  static const Settings result = from_environment();
  return result;
}

}  // namespace ashlar

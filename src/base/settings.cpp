#include "base/settings.hpp"

#include <array>
#include <cstdlib>
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

Settings from_environment() {
  Settings result;
  // An unknown level keeps the default: a library must not fail over a misspelt log level.
  if (const char* level = std::getenv("ASHLAR_LOG")) parse_log_level(level, result.log_level);
  if (const char* target = std::getenv("ASHLAR_TARGET")) result.target = target;
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

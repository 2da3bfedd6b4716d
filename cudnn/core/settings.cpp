#include "core/settings.hpp"

#include <algorithm>
#include <cstdlib>

namespace ashlar::cudnn {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Settings read() {
  Settings settings;
  const std::string level = variable("CUDNN_LOGLEVEL_DBG");
  settings.log_level = level.empty() ? 0 : std::clamp(std::atoi(level.c_str()), 0, 3);
  settings.log_destination = variable("CUDNN_LOGDEST_DBG");
  settings.device = variable("ASHLAR_CUDNN_DEVICE");
  settings.forbids_tf32 = variable("NVIDIA_TF32_OVERRIDE") == "0";
  return settings;
}

}  // namespace

const Settings& settings() {
  static const Settings once = read();
  return once;
}

}  // namespace ashlar::cudnn

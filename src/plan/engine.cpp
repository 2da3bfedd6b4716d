// Cost and Config.
#include "plan/engine.hpp"

#include <algorithm>

namespace ashlar {

double Cost::seconds(const DeviceProps& device, DType precision) const {
  // f64 runs at half the f32 rate on the supported SIMD units.
  const double peak = precision == f64 ? device.flops_f32 / 2 : device.flops_f32;
  const double arithmetic = flops / (peak * flops_fraction);
  const double memory = bytes / (device.bytes_per_second * bytes_fraction);
  return std::max(arithmetic, memory) + device.launch_seconds;
}

std::int64_t Config::knob(std::string_view name) const {
  for (const auto& [key, value] : knobs)
    if (key == name) return value;
  fail(ErrorCode::internal, "configuration '{}' has no knob '{}'", to_text(), name);
}

std::string Config::to_text() const {
  std::string text;
  for (const auto& [key, value] : knobs)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

ComputeMethod Engine::method() const {
  if (kind() == EngineKind::naive) return ComputeMethod::thread_per_output;
  return kind() == EngineKind::reference ? ComputeMethod::reference : ComputeMethod::simd;
}

std::string_view to_string(ComputeMethod method) {
  switch (method) {
    case ComputeMethod::reference: return "reference";
    case ComputeMethod::thread_per_output: return "one thread per output";
    case ComputeMethod::cuda_cores: return "CUDA cores";
    case ComputeMethod::simd: return "SIMD";
    case ComputeMethod::tensor_cores: return "tensor cores";
  }
  return "unknown";
}

std::string_view to_string(EngineKind kind) {
  switch (kind) {
    case EngineKind::precompiled_single: return "pre-compiled single operation";
    case EngineKind::generic_fusion: return "generic fusion";
    case EngineKind::specialised_fusion: return "specialised fusion";
    case EngineKind::naive: return "naive";
    case EngineKind::reference: return "reference";
  }
  return "unknown";
}

}  // namespace ashlar

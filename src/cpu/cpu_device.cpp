// Detection of the host CPU, and the constants of its cost model.
#include "cpu/cpu_device.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "cpu/target.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

// Cost-model constants; measured machines differ by less than the model's own error.
constexpr double kAssumedHertz = 2.5e9;
constexpr double kBytesPerSecondPerThread = 12e9;
constexpr double kMaxBytesPerSecond = 200e9;
constexpr double kFusedMultiplyAddsPerCycle = 2;

std::int64_t cache_bytes(int name, std::int64_t fallback) {
  const long value = sysconf(name);
  return value > 0 ? value : fallback;
}

std::string model_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace

DeviceProps detect_cpu() {
  DeviceProps props;
  props.kind = DeviceKind::cpu;
  props.name = "cpu";
  props.present = true;
  props.compute_units = thread_count();
  props.vector_bytes = target().vector_bytes;
  props.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, props.l1_bytes);
  props.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, props.l2_bytes);
  props.l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, props.l3_bytes);
  const double lanes = static_cast<double>(target().vector_bytes) / 4;
  props.flops_f32 = props.compute_units * kAssumedHertz * lanes * 2 * kFusedMultiplyAddsPerCycle;
  props.flops_f16 = props.flops_f32;  // narrower floats are computed in f32
  props.bytes_per_second =
      std::min(props.compute_units * kBytesPerSecondPerThread, kMaxBytesPerSecond);
  props.launch_seconds = 5e-6;  // waking a team of threads
  props.description =
      fmt::format("{}, {}, {} thread(s)", model_name(), target().name, props.compute_units);
  return props;
}

}  // namespace ashlar::cpu

#include "cuda/cuda_device.hpp"

#include <array>

#include "base/fail.hpp"
#include "cuda/driver/driver_api.hpp"
#include "cuda/known_gpus.hpp"

namespace ashlar::cuda {

namespace {

// Multiply-adds per cycle and SM: f32, and f16 on tensor cores.
struct Rates {
  int f32, f16;
};
Rates rates_of(int capability) {
  switch (capability) {
    case 70:
    case 75: return {64, 512};
    case 80: return {64, 1024};
    case 86:
    case 87:
    case 89: return {128, 512};
    case 90: return {128, 2048};
    case 100:
    case 103: return {128, 4096};
    default: return {128, 512};
  }
}

}  // namespace

int device_count() { return driver().api != nullptr ? driver().devices : 0; }

std::string absence_reason() {
  if (!driver().api) return driver().reason;
  const int count = device_count();
  return fmt::format("this machine has {} GPU{}", count, count == 1 ? "" : "s");
}

std::optional<int> current_ordinal() {
  if (device_count() == 0) return {};
  ContextHandle context = nullptr;
  DeviceOrdinal device = 0;
  const DriverApi& api = driver_api();
  const bool is_known = api.current_context(&context) == Result::success && context != nullptr &&
                        api.context_device(&device) == Result::success;
  return is_known ? std::optional(static_cast<int>(device)) : std::nullopt;
}

DeviceProps detect_gpu(int ordinal) {
  const DriverApi& api = driver_api();
  if (ordinal < 0 || ordinal >= driver().devices)
    fail(ErrorCode::device, "device: got 'cuda:{}', this machine has {} GPU(s), from cuda:0 on",
         ordinal, driver().devices);
  DeviceOrdinal device = 0;
  check(api.device_get(&device, ordinal), "opening a GPU");
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    check(api.device_attribute(&value, which, device), "querying the properties of a GPU");
    return value;
  };
  std::array<char, 128> name{};
  check(api.device_name(name.data(), static_cast<int>(name.size()), device),
        "querying the name of a GPU");
  std::size_t memory = 0;
  check(api.device_memory(&memory, device), "querying the memory of a GPU");

  DeviceProps props;
  props.kind = DeviceKind::cuda;
  props.name = fmt::format("cuda:{}", ordinal);
  props.present = true;
  props.ordinal = ordinal;
  props.compute_units = attribute(DeviceAttribute::sm_count);
  props.compute_capability = 10 * attribute(DeviceAttribute::capability_major) +
                             attribute(DeviceAttribute::capability_minor);
  props.l2_bytes = attribute(DeviceAttribute::l2_bytes);
  props.shared_bytes = attribute(DeviceAttribute::shared_bytes_per_block);
  props.l1_bytes = attribute(DeviceAttribute::shared_bytes_per_sm);
  props.description = fmt::format("{}, {} SMs, {:.0f} GB", name.data(), props.compute_units,
                                  static_cast<double>(memory) / 1e9);
  const double clock = 1e3 * attribute(DeviceAttribute::clock_kilohertz);
  const Rates rates = rates_of(props.compute_capability);
  props.flops_f32 = 2.0 * rates.f32 * props.compute_units * clock;
  props.flops_f16 = 2.0 * rates.f16 * props.compute_units * clock;
  // Double data rate: two transfers per clock.
  props.bytes_per_second = 2e3 * attribute(DeviceAttribute::memory_clock_kilohertz) *
                           attribute(DeviceAttribute::memory_bus_bits) / 8.0;
  props.launch_seconds = 3e-6;
  if (const DeviceProps* known = find_known_gpu(name.data(), props.compute_units)) {
    // Known GPUs use data-sheet rates rather than rates from clocks, so that plans made on this GPU
    // equal those explained, bundled and tested without one.
    props.flops_f32 = known->flops_f32;
    props.flops_f16 = known->flops_f16;
    props.bytes_per_second = known->bytes_per_second;
  }
  return props;
}

}  // namespace ashlar::cuda

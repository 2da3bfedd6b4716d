#pragma once

#include <ashlar/device.hpp>

namespace ashlar::cpu {

// This machine with a last cache so small that every result goes past it.
inline Device without_caches() {
  DeviceProps props = Device::cpu().props();
  props.l3_bytes = 64;
  return Device(props);
}

}  // namespace ashlar::cpu

// A device without a usable L3, to force non-temporal stores.
#pragma once

#include <ashlar/device.hpp>

namespace ashlar::cpu {

// This machine with an L3 so small that every result uses non-temporal stores.
inline Device without_caches() {
  DeviceProps props = Device::cpu().props();
  props.l3_bytes = 64;
  return Device(props);
}

}  // namespace ashlar::cpu

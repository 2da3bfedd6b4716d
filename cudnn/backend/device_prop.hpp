// DEVICEPROP descriptors: properties of a device, for plans compiled on a machine without it.
#pragma once

#include <ashlar/device.hpp>

#include "backend/record.hpp"

namespace ashlar::cudnn {

struct DeviceProp : Finished {
  explicit DeviceProp(Device of) : device(std::move(of)) {}
  Device device;
  std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override;
};

// Every device property that engine selection reads, as JSON and back. A device from JSON counts as
// present when this machine has one of the same kind.
std::string device_to_json(const Device& device);
Device device_from_json(const std::string& text);

}  // namespace ashlar::cudnn

// A device as a record: for plans that are made where the device is not.
#pragma once

#include <ashlar/device.hpp>

#include "backend/record.hpp"

namespace ashlar::cudnn {

struct DeviceProp : Finished {
  explicit DeviceProp(Device of) : device(std::move(of)) {}
  Device device;
  std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override;
};

// All that engines choose by, as JSON and back. A device from JSON is present when the machine has
// one of the same kind.
std::string device_to_json(const Device& device);
Device device_from_json(const std::string& text);

}  // namespace ashlar::cudnn

#include "backend/device_prop.hpp"

#include <ashlar/device.hpp>
#include <nlohmann/json.hpp>

#include "backend/finalize.hpp"
#include "core/failure.hpp"
#include "core/handle.hpp"
#include "core/objects.hpp"

namespace ashlar::cudnn {

namespace {

using nlohmann::json;
constexpr const char* kFormat = "ashlar-cudnn-device";
constexpr int kVersion = 1;

bool are_alike(const DeviceProps& a, const DeviceProps& b) {
  return a.kind == b.kind && a.compute_capability == b.compute_capability &&
         (a.kind == DeviceKind::cpu || a.compute_units == b.compute_units);
}

template <class Props, class Visitor>
void visit_numbers(Props& props, Visitor&& visit) {
  visit("compute_units", props.compute_units);
  visit("vector_bytes", props.vector_bytes);
  visit("l1_bytes", props.l1_bytes);
  visit("l2_bytes", props.l2_bytes);
  visit("l3_bytes", props.l3_bytes);
  visit("flops_f32", props.flops_f32);
  visit("flops_f16", props.flops_f16);
  visit("bytes_per_second", props.bytes_per_second);
  visit("launch_seconds", props.launch_seconds);
  visit("compute_capability", props.compute_capability);
  visit("shared_bytes", props.shared_bytes);
}

}  // namespace

std::string device_to_json(const Device& device) {
  const DeviceProps& props = device.props();
  json text = {{"format", kFormat},
               {"version", kVersion},
               {"kind", props.kind == DeviceKind::cuda ? "cuda" : "cpu"},
               {"name", props.name},
               {"description", props.description}};
  visit_numbers(props, [&](const char* key, const auto& value) { text[key] = value; });
  return text.dump();
}

Device device_from_json(const std::string& text) try {
  const json read = json::parse(text);
  if (read.at("format") != kFormat || read.at("version") != kVersion)
    fail(CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH,
         "CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION: got an unknown format, expected {} version {}",
         kFormat, kVersion);
  DeviceProps props;
  props.kind = read.at("kind") == "cuda" ? DeviceKind::cuda : DeviceKind::cpu;
  props.name = read.at("name");
  props.description = read.at("description");
  visit_numbers(props, [&](const char* key, auto& value) { read.at(key).get_to(value); });
  const Device here = props.kind == DeviceKind::cpu ? Device::cpu() : Device::current();
  return are_alike(props, here.props()) ? here : Device(props);
} catch (const json::exception& error) {
  fail(CUDNN_STATUS_BAD_PARAM,
       "CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION: got text that does not describe a device: {}",
       error.what());
}

std::optional<AttributeValue> DeviceProp::computed(cudnnBackendAttributeName_t name) const {
  switch (name) {
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION: return device_to_json(device);
    case CUDNN_ATTR_DEVICEPROP_DEVICE_ID: return std::vector<std::int64_t>{device.props().ordinal};
    default: return {};
  }
}

FinishedRef finalize_device(const Record& record) {
  if (record.has(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION))
    return std::make_shared<DeviceProp>(
        device_from_json(record.text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION)));
  if (record.has(CUDNN_ATTR_DEVICEPROP_HANDLE)) {
    const auto handle = static_cast<cudnnHandle_t>(record.pointer(CUDNN_ATTR_DEVICEPROP_HANDLE));
    return std::make_shared<DeviceProp>(object(handle, "CUDNN_ATTR_DEVICEPROP_HANDLE").device);
  }
  const Device here = Device::current();
  if (!record.has(CUDNN_ATTR_DEVICEPROP_DEVICE_ID) || here.props().kind == DeviceKind::cpu)
    return std::make_shared<DeviceProp>(here);
  const std::int64_t id = record.integer(CUDNN_ATTR_DEVICEPROP_DEVICE_ID);
  return std::make_shared<DeviceProp>(Device::named(fmt::format("cuda:{}", id)));
}

}  // namespace ashlar::cudnn

// Memory and Timer on top of the backends.
#include <ashlar/memory.hpp>

#include "api/backends.hpp"

namespace ashlar {

namespace {

const DeviceProps& require_present(const Device& device) {
  if (!device.props().present)
    fail(ErrorCode::device, "memory: device '{}' is not present here", device.props().name);
  return device.props();
}

}  // namespace

struct Memory::Data {
  DeviceProps device;
  OwnedMemory memory;
  const Backend& its_backend() const { return backend_for(device.kind); }
  void require_bytes(std::int64_t bytes) const {
    if (bytes < 0 || bytes > memory.bytes())
      fail(ErrorCode::invalid_argument, "memory: got {} bytes to copy, expected 0 to {}", bytes,
           memory.bytes());
  }
};

Memory::Memory(const Device& device, std::int64_t bytes) {
  if (bytes < 0)
    fail(ErrorCode::invalid_argument, "memory: got {} bytes, expected 0 or more", bytes);
  const DeviceProps& props = require_present(device);
  data_ = std::make_unique<Data>(Data{props, OwnedMemory(backend_for(props.kind), props, bytes)});
}
Memory::~Memory() = default;
Memory::Memory(Memory&& other) noexcept = default;
Memory& Memory::operator=(Memory&& other) noexcept = default;

void* Memory::data() const { return data_->memory.data(); }
std::int64_t Memory::bytes() const { return data_->memory.bytes(); }

void Memory::upload(const void* host, std::int64_t bytes) {
  data_->require_bytes(bytes);
  data_->its_backend().upload(data_->device, data(), host, bytes, nullptr);
}

void Memory::download(void* host, std::int64_t bytes) const {
  data_->require_bytes(bytes);
  data_->its_backend().download(data_->device, host, data(), bytes, nullptr);
}

void Memory::fill(std::byte value) {
  data_->its_backend().fill(data_->device, data(), value, bytes(), nullptr);
}

struct Timer::Data {
  std::unique_ptr<Marker> first, second;
};

Timer::Timer(const Device& device) {
  const DeviceProps& props = require_present(device);
  const Backend& its = backend_for(props.kind);
  data_ = std::make_unique<Data>(Data{its.marker(props), its.marker(props)});
}
Timer::~Timer() = default;
Timer::Timer(Timer&& other) noexcept = default;
Timer& Timer::operator=(Timer&& other) noexcept = default;

void Timer::start(void* stream) { data_->first->record(stream); }
void Timer::stop(void* stream) { data_->second->record(stream); }
double Timer::seconds() const { return data_->second->seconds_since(*data_->first); }

}  // namespace ashlar

#include "cuda/driver/context.hpp"

#include <array>
#include <atomic>

#include "base/fail.hpp"

namespace ashlar::cuda {

namespace {

constexpr DeviceOrdinal kMaxDevices = 64;
// Retained primary contexts by device; null: not retained. The driver releases them at process
// exit.
std::array<std::atomic<ContextHandle>, kMaxDevices> primary_contexts;

std::atomic<ContextHandle>& primary_slot(DeviceOrdinal device) {
  if (device < 0 || device >= kMaxDevices)
    fail(ErrorCode::device, "cuda: got device {}, expected an ordinal below {}", device,
         kMaxDevices);
  return primary_contexts[static_cast<std::size_t>(device)];
}

// Retained once; concurrent first calls may retain it again, which is harmless.
ContextHandle primary_context(DeviceOrdinal device) {
  std::atomic<ContextHandle>& slot = primary_slot(device);
  ContextHandle context = slot.load(std::memory_order_acquire);
  if (context != nullptr) return context;
  check(driver_api().retain_primary_context(&context, device), "opening the GPU");
  slot.store(context, std::memory_order_release);
  return context;
}

// Checks the state first, so that a program with its own context does not get a primary one.
bool is_primary_of(DeviceOrdinal device, ContextHandle context) {
  unsigned flags = 0;
  int active = 0;
  return driver_api().primary_context_state(device, &flags, &active) == Result::success &&
         active != 0 && primary_context(device) == context;
}

}  // namespace

ContextScope::ContextScope(DeviceOrdinal device) {
  ContextHandle current = nullptr;
  check(driver_api().current_context(&current), "querying the current context");
  is_primary_ =
      current != nullptr && current == primary_slot(device).load(std::memory_order_acquire);
  if (!is_primary_) enter(device, current);
}

void ContextScope::enter(DeviceOrdinal device, ContextHandle current) {
  const DriverApi& api = driver_api();
  if (current != nullptr) {
    DeviceOrdinal of_current = -1;
    if (api.context_device(&of_current) == Result::success && of_current == device) {
      is_primary_ = is_primary_of(device, current);
      return;
    }
  }
  check(api.push_context(primary_context(device)), "making the GPU current");
  is_primary_ = true;
  pushed_ = current != nullptr || device != 0;
}

void ContextScope::pop() {
  ContextHandle context = nullptr;
  driver_api().pop_context(&context);
}

}  // namespace ashlar::cuda

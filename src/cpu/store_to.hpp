// Whether results are worth keeping in the caches.
#pragma once

#include <ashlar/device.hpp>

#include "cpu/row_program.hpp"

namespace ashlar::cpu {

// Half of the last cache: by the time a region has written more than that, reading as much beside
// it, its first results have left the caches again. Storing past them saves the read of every line
// that an ordinary store begins with.
inline StoreTo store_to(std::int64_t bytes, const DeviceProps& device) {
  return bytes > device.l3_bytes / 2 ? StoreTo::memory : StoreTo::caches;
}

// For the tensors a program stores.
inline StoreTo store_to(const PointwiseProgram& program, const DeviceProps& device) {
  std::int64_t bytes = 0;
  for (const auto& store : program.stores)
    bytes += element_count(store.view.dims) * bit_width(store.view.dtype) / 8;
  return store_to(bytes, device);
}

}  // namespace ashlar::cpu

// Chooses between cached and non-temporal stores.
#pragma once

#include <ashlar/device.hpp>

#include "cpu/row_program.hpp"

namespace ashlar::cpu {

// Results larger than half of L3 use non-temporal stores: a region reads about as much as it
// writes, so its first results leave the caches before it ends. A non-temporal store also saves the
// read-for-ownership of every line.
inline StoreTo store_to(std::int64_t bytes, const DeviceProps& device) {
  return bytes > device.l3_bytes / 2 ? StoreTo::memory : StoreTo::caches;
}

// For the tensors that a program stores.
inline StoreTo store_to(const PointwiseProgram& program, const DeviceProps& device) {
  std::int64_t bytes = 0;
  for (const auto& store : program.stores)
    bytes += element_count(store.view.dims) * bit_width(store.view.dtype) / 8;
  return store_to(bytes, device);
}

}  // namespace ashlar::cpu

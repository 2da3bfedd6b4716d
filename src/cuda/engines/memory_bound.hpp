// What engines that are limited by memory share: estimates, and how work is cut for all blocks.
#pragma once

#include <ashlar/device.hpp>
#include <cstdint>

namespace ashlar::cuda {

// `share` of the memory's speed, less for what moves nothing for so many seconds.
double bandwidth_fraction(double share, double bytes, double lost_seconds,
                          const DeviceProps& device);

// Into how many slices, `most` at most, work is cut whose slices take `blocks_of_slice` blocks
// each: about `wanted` blocks in all, and the last of the waves of `at_once` as full as the others.
std::int64_t balanced_slices(std::int64_t blocks_of_slice, std::int64_t most, std::int64_t wanted,
                             std::int64_t at_once);

}  // namespace ashlar::cuda

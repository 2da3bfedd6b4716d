// Shared by memory-bound engines: bandwidth estimates and the split of work over CTAs.
#pragma once

#include <ashlar/device.hpp>
#include <cstdint>

namespace ashlar::cuda {

// `share` of the bandwidth, reduced by `lost_seconds` during which no memory traffic happens.
double bandwidth_fraction(double share, double bytes, double lost_seconds,
                          const DeviceProps& device);

// Number of slices, at most `most`, for work whose slices take `blocks_of_slice` CTAs each: about
// `wanted` CTAs in all, with a full last wave of `at_once` CTAs.
std::int64_t balanced_slices(std::int64_t blocks_of_slice, std::int64_t most, std::int64_t wanted,
                             std::int64_t at_once);

}  // namespace ashlar::cuda

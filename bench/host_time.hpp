// What a plan costs the host: running it, and compiling it for a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ashlar::bench {

// Medians, in seconds.
struct HostTimes {
  double run = 0;       // one call of a plan of one kernel that is warm
  double compiled = 0;  // a plan whose kernel nobody has compiled before
  double cached = 0;    // the same in another process: its kernel is in the cache of files
};

// `device`: "cuda:0". New kernels are made from the seed. A process that was split off compiles
// them first, so this must come before anything else uses the GPU.
HostTimes measure_host(const std::string& device, std::uint64_t seed,
                       const std::function<void(const std::string&)>& progress);

std::string host_text(const HostTimes& times);

}  // namespace ashlar::bench

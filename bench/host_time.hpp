// What a plan costs the host: running it, and compiling it for a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ashlar::bench {

// Medians, in seconds.
struct HostTimes {
  double run = 0;       // one call of a plan of one kernel that is warm
  double compiled = 0;  // a plan whose kernel, a chain of three, nobody has compiled before
  double first = 0;     // the same for the first kernel of a process: opens device and compiler
  double cached = 0;    // the same in another process: its kernel is in the cache of files
};

// `device`: "cuda:0". New kernels are made from the seed. `program` is this command, which is
// started once more to compile them first, so that nothing of it is left here but the files of the
// cache.
HostTimes measure_host(const std::string& device, std::uint64_t seed, const std::string& program,
                       const std::function<void(const std::string&)>& progress);

// What the second process does: seconds for new kernels.
struct CompileTimes {
  double first = 0, others = 0;
};
CompileTimes compile_times(const std::string& device, std::uint64_t seed);

std::string host_text(const HostTimes& times);

}  // namespace ashlar::bench

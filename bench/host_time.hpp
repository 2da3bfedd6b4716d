// Host overhead of plans on a GPU: launch latency, compile time, cache lookup.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ashlar::bench {

// Medians, in seconds.
struct HostTimes {
  double run = 0;       // one Plan::run() of a single-kernel plan, warm
  double compiled = 0;  // compile() of a new kernel, a chain of three pointwise operations
  double first = 0;     // the same for the first kernel of a process: opens device and compiler
  double cached = 0;    // the same in another process, from the disk cache
};

// `device`: "cuda:0". The seed selects kernels that are not in the cache yet. `program` is this
// executable; a child process compiles the kernels first, so that this process can share nothing
// with it but the disk cache.
HostTimes measure_host(const std::string& device, std::uint64_t seed, const std::string& program,
                       const std::function<void(const std::string&)>& progress);

// Work of the child process: seconds to compile new kernels.
struct CompileTimes {
  double first = 0, others = 0;
};
CompileTimes compile_times(const std::string& device, std::uint64_t seed);

std::string host_text(const HostTimes& times);

}  // namespace ashlar::bench

// Wall-clock seconds on the host.
#pragma once

#include <chrono>

namespace ashlar::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace ashlar::bench

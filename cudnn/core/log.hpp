// Logging: to the destination that CUDNN_LOGLEVEL_DBG and CUDNN_LOGDEST_DBG name, and to the
// callback of cudnnSetCallback().
#pragma once

#include <cudnn_graph.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace ashlar::cudnn {

namespace detail {
// Bit s: severity s is logged or passed to the callback. When logging is off, this load is all that
// logging costs a call.
extern std::atomic<unsigned> enabled_severities;
extern std::atomic<std::uint64_t> calls;
}  // namespace detail

inline bool is_severity_enabled(cudnnSeverity_t severity) {
  return (detail::enabled_severities.load(std::memory_order_relaxed) & (1U << severity)) != 0;
}

// Never throws. A line that cannot be written is dropped.
void log_line(cudnnSeverity_t severity, cudnnStatus_t status, const std::string& line) noexcept;

void log_entered(const char* function) noexcept;
inline void log_call(const char* function) noexcept {
  detail::calls.fetch_add(1, std::memory_order_relaxed);
  if (is_severity_enabled(CUDNN_SEV_INFO)) log_entered(function);
}

}  // namespace ashlar::cudnn

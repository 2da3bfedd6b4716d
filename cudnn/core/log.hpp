// What the library tells: to the places that CUDNN_LOGLEVEL_DBG and CUDNN_LOGDEST_DBG name, and to
// the program's callback.
#pragma once

#include <cudnn_graph.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace ashlar::cudnn {

namespace detail {
// Bit s: somebody listens to severity s. A call asks this and nothing more when nobody does.
extern std::atomic<unsigned> listened;
extern std::atomic<std::uint64_t> calls;
}  // namespace detail

inline bool is_listened(cudnnSeverity_t severity) {
  return (detail::listened.load(std::memory_order_relaxed) & (1U << severity)) != 0;
}

// Never throws; a line that cannot be written is lost.
void log_line(cudnnSeverity_t severity, cudnnStatus_t status, const std::string& line) noexcept;

void log_entered(const char* function) noexcept;
inline void log_call(const char* function) noexcept {
  detail::calls.fetch_add(1, std::memory_order_relaxed);
  if (is_listened(CUDNN_SEV_INFO)) log_entered(function);
}

}  // namespace ashlar::cudnn

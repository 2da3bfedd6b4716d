#include "core/log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>

#include "core/guarded.hpp"
#include "core/settings.hpp"

namespace ashlar::cudnn {

namespace detail {
std::atomic<unsigned> enabled_severities{0};
std::atomic<std::uint64_t> calls{0};
}  // namespace detail

namespace {

struct Listener {
  unsigned mask = 0;
  void* user_data = nullptr;
  cudnnCallback_t function = nullptr;
};

// Bits 1 to `level`: errors, warnings, calls.
unsigned mask_up_to(int level) { return (2U << level) - 2U; }

struct Log {
  std::mutex mutex;
  std::FILE* file = nullptr;  // of CUDNN_LOGDEST_DBG
  bool is_own_file = false;
  unsigned file_mask = 0;
  Listener listener;
  const std::chrono::system_clock::time_point start = std::chrono::system_clock::now();

  Log() {
    const Settings& requested = settings();
    if (requested.log_level == 0 || requested.log_destination.empty()) return;
    if (requested.log_destination == "stdout")
      file = stdout;
    else if (requested.log_destination == "stderr")
      file = stderr;
    else
      file = std::fopen(requested.log_destination.c_str(), "a");
    is_own_file = file != nullptr && file != stdout && file != stderr;
    file_mask = file != nullptr ? mask_up_to(requested.log_level) : 0;
    refresh();
  }
  ~Log() {
    if (file != nullptr && (file_mask & CUDNN_SEV_INFO_EN) != 0)
      fmt::print(file, "ashlar libcudnn: {} calls answered\n", detail::calls.load());
    detail::enabled_severities = 0;
    if (is_own_file) std::fclose(file);
  }
  void refresh() {
    detail::enabled_severities = file_mask | (listener.function != nullptr ? listener.mask : 0);
  }
};

Log& shared_log() {
  static Log log;
  return log;
}
// Read when the library is loaded, so that the first call is logged too.
[[maybe_unused]] Log& opened = shared_log();

constexpr std::array kNames = {"fatal", "error", "warning", "info"};

cudnnDebug_t debug_info(std::chrono::system_clock::time_point start, cudnnStatus_t status) {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const auto micros = duration_cast<microseconds>(now.time_since_epoch()).count();
  cudnnDebug_t debug_info{};
  debug_info.cudnn_version = static_cast<unsigned>(cudnnGetVersion());
  debug_info.cudnnStatus = status;
  debug_info.time_sec = static_cast<unsigned>(micros / 1'000'000);
  debug_info.time_usec = static_cast<unsigned>(micros % 1'000'000);
  debug_info.time_delta = static_cast<unsigned>(duration_cast<seconds>(now - start).count());
  debug_info.pid = static_cast<unsigned long long>(::getpid());
  debug_info.tid = std::hash<std::thread::id>()(std::this_thread::get_id());
  return debug_info;
}

}  // namespace

void log_line(cudnnSeverity_t severity, cudnnStatus_t status, const std::string& line) noexcept
    try {
  if (!is_severity_enabled(severity)) return;
  Log& log = shared_log();
  Listener listener;
  {
    const std::scoped_lock lock(log.mutex);
    listener = log.listener;
    if (log.file != nullptr && (log.file_mask & (1U << severity)) != 0) {
      fmt::print(log.file, "ashlar libcudnn {}: {}\n", kNames[severity], line);
      std::fflush(log.file);
    }
  }
  if (listener.function == nullptr || (listener.mask & (1U << severity)) == 0) return;
  const cudnnDebug_t debug = debug_info(log.start, status);
  // The callback's format: lines that each end with a zero, and an empty line at the end.
  const std::string message = line + '\0';
  listener.function(severity, listener.user_data, &debug, message.c_str());
} catch (...) {
}

void log_entered(const char* function) noexcept try {
  log_line(CUDNN_SEV_INFO, CUDNN_STATUS_SUCCESS, fmt::format("{}()", function));
} catch (...) {
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnSetCallback(unsigned mask, void* user_data, cudnnCallback_t callback) {
  return guarded(__func__, [&] {
    Log& log = shared_log();
    const std::scoped_lock lock(log.mutex);
    log.listener = {mask, user_data, callback};
    log.refresh();
  });
}

cudnnStatus_t cudnnGetCallback(unsigned* mask, void** user_data, cudnnCallback_t* callback) {
  return guarded(__func__, [&] {
    required(mask, "mask");
    required(user_data, "user_data");
    required(callback, "callback");
    Log& log = shared_log();
    const std::scoped_lock lock(log.mutex);
    *mask = log.listener.mask;
    *user_data = log.listener.user_data;
    *callback = log.listener.function;
  });
}

// cudnnGetLastErrorString(): the message of the last failed call of each thread.
#include <algorithm>
#include <cstring>

#include "core/guarded.hpp"

namespace ashlar::cudnn {

namespace {
thread_local std::string last_error;
}

cudnnStatus_t report(const char* function, cudnnStatus_t status, const char* sentence) noexcept {
  try {
    last_error = fmt::format("{}: {}: {}", status_name(status), function, sentence);
    if (is_severity_enabled(CUDNN_SEV_ERROR)) log_line(CUDNN_SEV_ERROR, status, last_error);
  } catch (...) {
    last_error.clear();
  }
  return status;
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

void cudnnGetLastErrorString(char* message, size_t capacity) {
  if (message == nullptr || capacity == 0) return;
  const size_t length = std::min(last_error.size(), capacity - 1);
  std::memcpy(message, last_error.data(), length);
  message[length] = '\0';
}

const char* cudnnGetErrorString(cudnnStatus_t status) { return status_name(status); }

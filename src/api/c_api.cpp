// C API: version, status codes, errors; conversions that all parts share.
#include "api/c_api.hpp"

#include <algorithm>

static_assert(static_cast<int>(ashlar::ErrorCode::invalid_graph) + 1 == ASHLAR_INVALID_GRAPH);
static_assert(static_cast<int>(ashlar::ErrorCode::internal) + 1 == ASHLAR_INTERNAL);
static_assert(static_cast<int>(ashlar::DType::complex_f64) == ASHLAR_COMPLEX_F64);
static_assert(static_cast<int>(ashlar::TensorKind::constant) == ASHLAR_CONSTANT);
static_assert(ashlar::kMaxRank == ASHLAR_MAX_RANK && ashlar::kNoTensor == ASHLAR_NO_TENSOR);

namespace ashlar::capi {

namespace {

thread_local char last_error[4096] = "";

}  // namespace

void remember_error(const char* sentence) noexcept {
  const std::size_t length = std::min(std::strlen(sentence), sizeof(last_error) - 1);
  std::memcpy(last_error, sentence, length);
  last_error[length] = '\0';
}

std::string_view require_text(const char* text, const char* argument) {
  return &require(text, argument);
}

void copy_text(std::string_view text, char* buffer, std::size_t capacity, std::size_t* needed) {
  if (needed) *needed = text.size() + 1;
  if (!buffer && capacity == 0) return;
  require(buffer, "buffer");
  if (capacity < text.size() + 1)
    fail(ErrorCode::invalid_argument, "buffer: got {} bytes, the text takes {}", capacity,
         text.size() + 1);
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
}

DType dtype_from_c(ashlar_dtype dtype) {
  if (dtype < 0 || dtype > ASHLAR_COMPLEX_F64)
    fail(ErrorCode::invalid_argument, "dtype: got {}, expected 0 to {}", dtype,
         int{ASHLAR_COMPLEX_F64});
  return static_cast<DType>(dtype);
}

Device device_from_c(const char* name) { return name ? Device::named(name) : Device::cpu(); }

}  // namespace ashlar::capi

using namespace ashlar;
using namespace ashlar::capi;

extern "C" {

const char* ashlar_version(void) { return ASHLAR_VERSION; }

int32_t ashlar_version_number(void) { return ASHLAR_VERSION_NUMBER; }

const char* ashlar_status_name(ashlar_status status) {
  if (status == ASHLAR_OK) return "ok";
  if (status < 0 || status > ASHLAR_INTERNAL) return "unknown status";
  return to_string(static_cast<ErrorCode>(status - 1));
}

const char* ashlar_last_error(void) { return last_error; }

}  // extern "C"

// Failure: the exception that carries the status of a failed call and its message for
// cudnnGetLastErrorString().
#pragma once

#include <cudnn_graph.h>
#include <fmt/format.h>

#include <ashlar/error.hpp>
#include <stdexcept>
#include <string>

namespace ashlar::cudnn {

// guarded() turns it into a status. The message reads "subject: got value, expected value", where
// the subject is the parameter or the attribute with its node.
class Failure : public std::runtime_error {
 public:
  Failure(cudnnStatus_t status, const std::string& sentence)
      : std::runtime_error(sentence), status_(status) {}
  cudnnStatus_t status() const noexcept { return status_; }

 private:
  cudnnStatus_t status_;
};

template <class... Args>
[[noreturn]] void fail(cudnnStatus_t status, fmt::format_string<Args...> sentence, Args&&... args) {
  throw Failure(status, fmt::format(sentence, std::forward<Args>(args)...));
}

// The cuDNN status that corresponds to an error of the Ashlar library.
cudnnStatus_t status_of(const Error& error);

// "CUDNN_STATUS_BAD_PARAM"; never null.
const char* status_name(cudnnStatus_t status);

// Returns `pointer`; throws Failure(NULL_POINTER) when it is null.
template <class T>
T* required(T* pointer, const char* parameter) {
  if (pointer == nullptr)
    fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "{}: got null, expected a pointer", parameter);
  return pointer;
}

}  // namespace ashlar::cudnn

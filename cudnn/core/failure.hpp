// A call that cannot be answered with success: the status it returns and the sentence that
// cudnnGetLastErrorString() gives.
#pragma once

#include <cudnn_graph.h>
#include <fmt/format.h>

#include <ashlar/error.hpp>
#include <stdexcept>
#include <string>

namespace ashlar::cudnn {

// Thrown inside, turned into a status by answer(). The sentence names the node or parameter, the
// attribute, what was given and what was expected.
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

// What a program that asked for this should see.
cudnnStatus_t status_of(const Error& error);

// "CUDNN_STATUS_BAD_PARAM"; never null.
const char* status_name(cudnnStatus_t status);

// A pointer the caller has to give.
template <class T>
T* required(T* pointer, const char* parameter) {
  if (pointer == nullptr)
    fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "{}: got null, expected a pointer", parameter);
  return pointer;
}

}  // namespace ashlar::cudnn

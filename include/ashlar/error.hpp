// The exception type of the C++ API.
#pragma once

#include <stdexcept>
#include <string>

namespace ashlar {

#pragma GCC visibility push(default)

enum class ErrorCode {
  invalid_graph,     // the graph contradicts itself or an operation's rules
  invalid_argument,  // an argument of the call is invalid
  size_overflow,     // a size or offset does not fit into 63 bits
  parse,             // input data (JSON, .npy) is malformed
  io,                // a file could not be read or written
  out_of_memory,     // host or device memory is exhausted
  device,            // the device or its driver reported an error
  internal,          // a defect in Ashlar
};

const char* to_string(ErrorCode code);

// what() names the node or call, the attribute, the value found and the value expected.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

#pragma GCC visibility pop

}  // namespace ashlar

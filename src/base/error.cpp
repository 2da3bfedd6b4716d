// Names of the error codes.
#include <ashlar/error.hpp>

namespace ashlar {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_graph: return "invalid graph";
    case ErrorCode::invalid_argument: return "invalid argument";
    case ErrorCode::size_overflow: return "size overflow";
    case ErrorCode::parse: return "parse error";
    case ErrorCode::io: return "input/output error";
    case ErrorCode::out_of_memory: return "out of memory";
    case ErrorCode::device: return "device error";
    case ErrorCode::internal: return "internal error";
  }
  return "unknown error";
}

}  // namespace ashlar

#include "options.hpp"

#include <cstdio>
#include <cstdlib>

namespace emulated {

namespace {

Options read() {
  Options result;
  const char* text = std::getenv("EMULATED_CUDA");
  std::string rest = text != nullptr ? text : "";
  while (!rest.empty()) {
    const std::size_t end = rest.find(',');
    const std::string word = rest.substr(0, end);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "1" : word.substr(equals + 1);
    const long long number = std::atoll(value.c_str());
    if (name == "devices")
      result.devices = static_cast<int>(number);
    else if (name == "version")
      result.version = static_cast<int>(number);
    else if (name == "start_error")
      result.start_error = static_cast<int>(number);
    else if (name == "capability")
      result.capability = static_cast<int>(number);
    else if (name == "sms")
      result.sm_count = static_cast<int>(number);
    else if (name == "memory")
      result.memory = number;
    else if (name == "reverse")
      result.reverse = number != 0;
    else if (name == "aligned")
      result.aligned = number != 0;
    else if (name == "compiles")
      result.compiles = value;
    else if (name == "keep")
      result.keep = value;
    else {
      std::fprintf(stderr, "emulated CUDA: EMULATED_CUDA has no '%s'\n", name.c_str());
      std::abort();
    }
  }
  return result;
}

}  // namespace

const Options& options() {
  static const Options result = read();
  return result;
}

}  // namespace emulated

// Where NVIDIA's run-time compiler may be.
#pragma once

#include <string>
#include <vector>

#include "base/shared_library.hpp"

namespace ashlar::cuda {

struct FoundNvrtc {
  SharedLibrary library;           // not open: nowhere
  std::vector<std::string> tried;  // in order, with what the loader said
};
FoundNvrtc find_nvrtc();

}  // namespace ashlar::cuda

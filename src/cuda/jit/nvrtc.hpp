// NVRTC, NVIDIA's run-time compiler, loaded with dlopen.
#pragma once

#include <string>

namespace ashlar::cuda {

struct Nvrtc {
  bool is_open = false;
  std::string reason;  // why it is not open, with every path that was tried
  std::string path;
  int major = 0, minor = 0;
};
// Searched on first use, in this order: ASHLAR_NVRTC, libraries already loaded in the process, the
// loader's path, the directory of a loaded libcudart, Python's package directories, the usual
// toolkit folders.
const Nvrtc& nvrtc();

struct Cubin {
  std::string bytes;
  std::string log;  // compiler log: registers, spills, warnings
};
// Compiles CUDA C++ text for an architecture ("sm_90a"). Throws Error(device) when there is no
// compiler, Error(internal) with its log when the text does not compile.
Cubin compile_cuda(const std::string& name, const std::string& text,
                   const std::string& architecture);

}  // namespace ashlar::cuda

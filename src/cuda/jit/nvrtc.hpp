// NVIDIA's run-time compiler, opened while the program runs.
#pragma once

#include <string>

namespace ashlar::cuda {

struct Nvrtc {
  bool is_open = false;
  std::string reason;  // why not, with every place that was looked at
  std::string path;
  int major = 0, minor = 0;
};
// Looked for on first use, in this order: ASHLAR_NVRTC, loaded in this process already, the
// loader's path, beside a loaded libcudart, Python's package directories, the usual toolkit
// folders.
const Nvrtc& nvrtc();

struct Cubin {
  std::string bytes;
  std::string log;  // what the compiler said: registers, spills, warnings
};
// Compiles CUDA C++ text for an architecture ("sm_90a"). Throws Error(device) when there is no
// compiler, Error(internal) with its log when the text does not compile.
Cubin compile_cuda(const std::string& name, const std::string& text,
                   const std::string& architecture);

}  // namespace ashlar::cuda

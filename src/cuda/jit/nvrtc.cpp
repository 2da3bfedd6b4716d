#include "cuda/jit/nvrtc.hpp"

#include <vector>

#include "base/fail.hpp"
#include "cuda/driver/library_files.hpp"

namespace ashlar::cuda {

namespace {

using ProgramHandle = struct ProgramObject*;

// Declared from NVIDIA's documentation; every function returns 0 for success.
struct NvrtcApi {
  const char* (*error_text)(int error);
  int (*version)(int* major, int* minor);
  int (*create)(ProgramHandle* program, const char* text, const char* name, int headers,
                const char* const* header_texts, const char* const* header_names);
  int (*destroy)(ProgramHandle* program);
  int (*compile)(ProgramHandle program, int options, const char* const* option_texts);
  int (*cubin_size)(ProgramHandle program, std::size_t* bytes);
  int (*cubin)(ProgramHandle program, char* bytes);
  int (*log_size)(ProgramHandle program, std::size_t* bytes);
  int (*log)(ProgramHandle program, char* text);
};

struct Compiler {
  Nvrtc facts;
  NvrtcApi api{};
};

Compiler open_compiler() {
  Compiler compiler;
  const FoundLibrary found = find_library(nvrtc_query());
  if (!found.library.is_open()) {
    compiler.facts.reason = fmt::format(
        "no NVRTC, the compiler for GPU kernels: set ASHLAR_NVRTC to a libnvrtc.so, install "
        "nvidia-cuda-nvrtc, or use a bundle of compiled kernels (ashlar bundle). Tried:{}",
        found.tried_text());
    return compiler;
  }
  compiler.facts.path = found.library.path();
  NvrtcApi& api = compiler.api;
  const char* missing = nullptr;
  const auto load = [&](auto*& function, const char* name) {
    if (!found.library.load(function, name) && missing == nullptr) missing = name;
  };
  load(api.error_text, "nvrtcGetErrorString");
  load(api.version, "nvrtcVersion");
  load(api.create, "nvrtcCreateProgram");
  load(api.destroy, "nvrtcDestroyProgram");
  load(api.compile, "nvrtcCompileProgram");
  load(api.cubin_size, "nvrtcGetCUBINSize");
  load(api.cubin, "nvrtcGetCUBIN");
  load(api.log_size, "nvrtcGetProgramLogSize");
  load(api.log, "nvrtcGetProgramLog");
  if (missing != nullptr) {
    compiler.facts.reason =
        fmt::format("{} is not a supported NVRTC: it has no {}", compiler.facts.path, missing);
    return compiler;
  }
  api.version(&compiler.facts.major, &compiler.facts.minor);
  compiler.facts.is_open = true;
  return compiler;
}

const Compiler& compiler() {
  static const Compiler opened = open_compiler();
  return opened;
}

class Program {
 public:
  Program(const NvrtcApi& api, const std::string& name, const std::string& text) : api_(api) {
    check(api.create(&handle_, text.c_str(), name.c_str(), 0, nullptr, nullptr));
  }
  ~Program() { api_.destroy(&handle_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  bool compile(const std::vector<const char*>& options) const {
    return api_.compile(handle_, static_cast<int>(options.size()), options.data()) == 0;
  }
  std::string cubin() const { return text(api_.cubin_size, api_.cubin); }
  std::string log() const {
    std::string result = text(api_.log_size, api_.log);
    while (!result.empty() && (result.back() == '\0' || result.back() == '\n')) result.pop_back();
    return result;
  }

 private:
  void check(int error) const {
    if (error != 0) fail(ErrorCode::device, "cuda: NVRTC: {}", api_.error_text(error));
  }
  template <class Size, class Get>
  std::string text(Size size, Get get) const {
    std::size_t bytes = 0;
    check(size(handle_, &bytes));
    std::string result(bytes, '\0');
    check(get(handle_, result.data()));
    return result;
  }
  const NvrtcApi& api_;
  ProgramHandle handle_ = nullptr;
};

}  // namespace

const Nvrtc& nvrtc() { return compiler().facts; }

Cubin compile_cuda(const std::string& name, const std::string& text,
                   const std::string& architecture) {
  const Compiler& c = compiler();
  if (!c.facts.is_open) fail(ErrorCode::device, "cuda: {}", c.facts.reason);
  const std::string target = "--gpu-architecture=" + architecture;
  const std::vector<const char*> all = {target.c_str(), "--std=c++17",
                                        "--device-as-default-execution-space", "--ptxas-options=-v",
                                        "--restrict"};
  const Program program(c.api, name, text);
  if (!program.compile(all))
    fail(ErrorCode::internal, "cuda: kernel '{}' does not compile for {}:\n{}", name, architecture,
         program.log());
  return {program.cubin(), program.log()};
}

}  // namespace ashlar::cuda

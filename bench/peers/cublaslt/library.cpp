#include "library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <ashlar/error.hpp>

namespace ashlar::bench::cublaslt {

namespace {

Functions functions_of(void* library, const std::string& path) {
  Functions f;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function)
      throw Error(ErrorCode::io, fmt::format("{} is not cuBLASLt: it lacks {}", path, name));
  };
  find("cublasLtCreate", f.create);
  find("cublasLtDestroy", f.destroy);
  find("cublasLtGetStatusString", f.error_text);
  find("cublasLtGetVersion", f.version);
  find("cublasLtMatrixLayoutCreate", f.create_layout);
  find("cublasLtMatrixLayoutDestroy", f.destroy_layout);
  find("cublasLtMatrixLayoutSetAttribute", f.set_layout);
  find("cublasLtMatmulDescCreate", f.create_matmul);
  find("cublasLtMatmulDescDestroy", f.destroy_matmul);
  find("cublasLtMatmulDescSetAttribute", f.set_matmul);
  find("cublasLtMatmulPreferenceCreate", f.create_preference);
  find("cublasLtMatmulPreferenceDestroy", f.destroy_preference);
  find("cublasLtMatmulPreferenceSetAttribute", f.set_preference);
  find("cublasLtMatmulAlgoGetHeuristic", f.propose);
  find("cublasLtMatmul", f.matmul);
  return f;
}

}  // namespace

void Library::Close::operator()(void* opened) const { dlclose(opened); }

Library::Library(const std::string& path, const Device& device) : device_(device) {
  opened_.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!opened_) throw Error(ErrorCode::io, fmt::format("the peer cannot be opened: {}", dlerror()));
  functions_ = functions_of(opened_.get(), path);
  start();
}

Library::Library(const Functions& functions, const Device& device)
    : functions_(functions), device_(device) {
  start();
}

void Library::start() {
  if (const int error = functions_.create(&handle_); error != 0)
    throw Error(ErrorCode::device,
                fmt::format("{}: cublasLtCreate: {}", version(), functions_.error_text(error)));
}

Library::~Library() { functions_.destroy(handle_); }

std::string Library::version() const {
  // 130101 is 13.1.1: two digits each for minor and patch since version 11.
  const std::size_t number = functions_.version();
  return fmt::format("cuBLASLt {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

void Library::check(int error, const char* what) const {
  if (error != 0) throw Refused(fmt::format("{}: {}", what, functions_.error_text(error)));
}

}  // namespace ashlar::bench::cublaslt

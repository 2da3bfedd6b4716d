#include "doctor/library_version.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

#include "doctor/apart.hpp"

namespace ashlar::cli {

namespace {

constexpr unsigned kProbeSeconds = 20;
// Ashlar's libcudnn exports this name in addition to those of the interface.
constexpr const char* kOwnMarker = "ashlar_cudnn_marker";

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// cuDNN counts 8907 for 8.9.7, and 91900 for 9.19.0 as cuBLASLt does.
std::string three_parts(std::size_t version) {
  const std::size_t major = version < 10000 ? version / 1000 : version / 10000;
  return fmt::format("{}.{}.{}", major, version / 100 % (version < 10000 ? 10 : 100),
                     version % 100);
}

std::string ask_version(const std::string& library, void* opened) {
  if (library == "libcuda") {
    int version = 0;
    if (auto* get = symbol<int(int*)>(opened, "cuDriverGetVersion"); get && get(&version) == 0)
      return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  } else if (library == "libnvrtc") {
    int major = 0, minor = 0;
    if (auto* get = symbol<int(int*, int*)>(opened, "nvrtcVersion");
        get && get(&major, &minor) == 0)
      return fmt::format("{}.{}", major, minor);
  } else {
    const char* name = library == "libcudnn" ? "cudnnGetVersion" : "cublasLtGetVersion";
    if (auto* get = symbol<std::size_t()>(opened, name)) return three_parts(get());
  }
  throw std::runtime_error(fmt::format("it does not tell its version: it is no {}", library));
}

std::string probe(const std::string& library, const std::string& file) {
  void* opened = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (opened == nullptr) throw std::runtime_error(dlerror());
  const char* maker = library != "libcudnn"                  ? ""
                      : dlsym(opened, kOwnMarker) != nullptr ? "Ashlar"
                                                             : "NVIDIA";
  return ask_version(library, opened) + "\n" + maker;
}

}  // namespace

std::string version_in_name(const std::string& file) {
  const std::size_t at = file.rfind(".so.");
  if (at == std::string::npos || file.find('/', at) != std::string::npos) return {};
  const std::string version = file.substr(at + 4);
  return version.find('.') == std::string::npos ||
                 version.find_first_not_of("0123456789.") != std::string::npos
             ? std::string()
             : version;
}

LibraryVersion version_of(const std::string& library, const std::string& file) {
  LibraryVersion result;
  if (library != "libcudnn") result.version = version_in_name(file);
  if (!result.version.empty()) return result;
  const Apart asked = run_apart([&] { return probe(library, file); }, kProbeSeconds);
  if (!asked.ok) {
    result.trouble = asked.text;
    return result;
  }
  const std::size_t line = asked.text.find('\n');
  result.version = asked.text.substr(0, line);
  result.maker = line == std::string::npos ? "" : asked.text.substr(line + 1);
  return result;
}

}  // namespace ashlar::cli

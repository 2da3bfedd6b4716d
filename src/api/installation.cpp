// Diagnosis of the installation: libraries, kernel cache, kernel bundles.
#include <ashlar/installation.hpp>

#include "base/file_cache.hpp"
#include "base/settings.hpp"
#include "cuda/cublaslt/cublaslt_api.hpp"
#include "cuda/driver/driver_api.hpp"
#include "cuda/driver/library_files.hpp"
#include "cuda/jit/kernel_image.hpp"
#include "cuda/jit/nvrtc.hpp"

namespace ashlar {

std::vector<LibraryCopy> library_copies() {
  std::vector<LibraryCopy> copies;
  const auto add = [&](const char* library, const cuda::LibraryQuery& query) {
    for (cuda::LibraryFile& found : cuda::files_of(query))
      copies.push_back({library, std::move(found.path), std::move(found.file),
                        std::move(found.place), found.is_loaded, found.on_loader_path});
  };
  add("libcuda", cuda::driver_query());
  add("libnvrtc", cuda::nvrtc_query());
  add("libcublasLt", cuda::cublaslt_query());
  add("libcudnn", cuda::cudnn_query());
  return copies;
}

std::vector<OpenedLibrary> open_cuda_libraries() {
  const cuda::Driver& driver = cuda::driver();
  const cuda::Nvrtc& nvrtc = cuda::nvrtc();
  const cuda::CublasLt& lt = cuda::cublaslt();
  return {
      {"libcuda", driver.api != nullptr, driver.reason, driver.path, driver.version},
      {"libnvrtc", nvrtc.is_open, nvrtc.reason, nvrtc.path, 1000 * nvrtc.major + 10 * nvrtc.minor},
      {"libcublasLt", lt.api != nullptr, lt.reason, lt.path, 0}};
}

CacheHealth cache_health() {
  const FileCache cache(cuda::cubin_directory());
  FileCache::Health found = cache.inspect();
  return {cache.directory(), std::move(found.trouble), found.entries, found.bytes,
          std::move(found.damaged)};
}

std::vector<std::string> bundle_paths() { return cuda::bundle_files(); }

std::string kernel_folder() { return settings().kernels; }

}  // namespace ashlar

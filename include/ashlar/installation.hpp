// Diagnosis of the installation, as `ashlar doctor` reports it: which CUDA libraries are found and
// loaded, and the state of the kernel cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ashlar {

#pragma GCC visibility push(default)

struct LibraryCopy {
  std::string library;          // "libcuda", "libnvrtc", "libcublasLt", "libcudnn"
  std::string path;             // as found
  std::string file;             // with symbolic links resolved
  std::string place;            // "LD_LIBRARY_PATH", "loader's cache", "Python package", ...
  bool is_loaded = false;       // was in this process before Ashlar loaded it, e.g. by LD_PRELOAD
  bool on_loader_path = false;  // dlopen() by name alone may find it
};
// All copies found; those of one library in order of preference. No file is opened.
std::vector<LibraryCopy> library_copies();

struct OpenedLibrary {
  std::string library;
  bool usable = false;
  std::string reason;  // why it is not usable
  std::string path;    // empty: not found
  int version = 0;     // 13000 for 13.0; 0: unknown
};
// Opens in this process the libraries that GPU plans use: driver, NVRTC and cuBLASLt.
std::vector<OpenedLibrary> open_cuda_libraries();

struct CacheHealth {
  std::string directory;  // empty: none is configured
  std::string trouble;    // why the cache cannot store entries; empty if it can
  std::int64_t entries = 0, bytes = 0;
  std::vector<std::string> damaged;  // paths
};
// Checks the kernel cache on disk: reads every entry, and writes and removes a test entry.
CacheHealth cache_health();

// Paths of the kernel bundles that would be searched, readable or not.
std::vector<std::string> bundle_paths();

// The directory whose kernel sources override the embedded ones (ASHLAR_KERNELS); empty: none.
std::string kernel_folder();

#pragma GCC visibility pop

}  // namespace ashlar

// What this machine has of CUDA and of Ashlar, and which copies a program gets: what `ashlar
// doctor` looks at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ashlar {

struct LibraryCopy {
  std::string library;          // "libcuda", "libnvrtc", "libcublasLt", "libcudnn"
  std::string path;             // under which it was found
  std::string file;             // with links followed
  std::string place;            // "LD_LIBRARY_PATH", "loader's cache", "Python package", ...
  bool is_loaded = false;       // in this process, before it asked for it: LD_PRELOAD
  bool on_loader_path = false;  // a program that asks for the name alone may get it
};
// Every copy, those of a library in the order in which they are preferred. Files are looked for,
// none is opened.
std::vector<LibraryCopy> library_copies();

struct OpenedLibrary {
  std::string library;
  bool usable = false;
  std::string reason;  // why not
  std::string path;    // empty: none was found
  int version = 0;     // 13000 for 13.0; 0: not known
};
// What a plan for a GPU uses: driver, NVRTC and cuBLASLt, opened in this process.
std::vector<OpenedLibrary> open_cuda_libraries();

struct CacheHealth {
  std::string directory;  // empty: none is known
  std::string trouble;    // why nothing can be kept; empty when it can
  std::int64_t entries = 0, bytes = 0;
  std::vector<std::string> damaged;  // paths
};
// Of the kernels kept on disk. Every entry is read, and one is written and removed.
CacheHealth cache_health();

// The packs that would be searched, whether they can be read or not.
std::vector<std::string> bundle_paths();

// The folder whose kernel files come before the library's own (ASHLAR_KERNELS); empty: none.
std::string kernel_folder();

}  // namespace ashlar

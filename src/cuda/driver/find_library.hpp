// Finds shared libraries of a CUDA toolkit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/shared_library.hpp"

namespace ashlar::cuda {

struct LibraryQuery {
  std::string own;                         // explicit path: nothing else is tried
  std::string variable;                    // environment variable that sets it: "ASHLAR_NVRTC"
  std::string file;                        // file name prefix: "libnvrtc.so"
  std::vector<std::string> names;          // names for dlopen, newest first: "libnvrtc.so.13"
  std::vector<std::string> wheel_folders;  // relative to Python's package directories
};

struct FoundLibrary {
  SharedLibrary library;           // not open: not found
  std::vector<std::string> tried;  // paths in order, with the loader's errors
  std::string tried_text() const;  // one line each
};
// In this order: the explicit path, libraries already loaded in the process, the loader's path, the
// directory of a loaded libcudart, Python's package directories, the usual toolkit folders.
FoundLibrary find_library(const LibraryQuery& query);

struct SearchFolder {
  std::string path;
  std::string place;  // label for output: "CUDA toolkit"
};
// The folders of the last three steps, in order.
std::vector<SearchFolder> fallback_folders(const LibraryQuery& query);
// Paths of shared libraries loaded in this process whose file name has this prefix.
std::vector<std::string> loaded_files(std::string_view prefix);
// Paths that match a glob pattern, newest version first.
std::vector<std::string> matching_files(const std::string& pattern);

}  // namespace ashlar::cuda

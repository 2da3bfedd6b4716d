// Where libraries of a CUDA toolkit may be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/shared_library.hpp"

namespace ashlar::cuda {

struct LibraryQuery {
  std::string own;                         // what the user names: nothing else is tried
  std::string variable;                    // of the environment, with which: "ASHLAR_NVRTC"
  std::string file;                        // how its file begins: "libnvrtc.so"
  std::vector<std::string> names;          // for the loader, newest first: "libnvrtc.so.13"
  std::vector<std::string> wheel_folders;  // inside Python's package directories
};

struct FoundLibrary {
  SharedLibrary library;           // not open: nowhere
  std::vector<std::string> tried;  // in order, with what the loader said
  std::string tried_text() const;  // one line each
};
// In this order: the user's word, loaded in this process already, the loader's path, beside a
// loaded libcudart, Python's package directories, the usual toolkit folders.
FoundLibrary find_library(const LibraryQuery& query);

struct SearchFolder {
  std::string path;
  std::string place;  // for people: "CUDA toolkit"
};
// The last three of these places, in order.
std::vector<SearchFolder> fallback_folders(const LibraryQuery& query);
// Files of this process whose name starts like this.
std::vector<std::string> loaded_files(std::string_view prefix);
// Paths that match a pattern of the shell, newer versions first.
std::vector<std::string> matching_files(const std::string& pattern);

}  // namespace ashlar::cuda

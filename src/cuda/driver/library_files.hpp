// The libraries that Ashlar looks for, and every copy of them on this machine.
#pragma once

#include "cuda/driver/find_library.hpp"

namespace ashlar::cuda {

LibraryQuery driver_query();
LibraryQuery nvrtc_query();
LibraryQuery cublaslt_query();
LibraryQuery cudnn_query();

struct LibraryFile {
  std::string path;   // path as found
  std::string file;   // canonical path
  std::string place;  // "LD_LIBRARY_PATH", "Python package", ...
  bool is_loaded = false, on_loader_path = false;
};
// In the search order of find_library, which uses the first that opens; each file once. Opens none
// of them.
std::vector<LibraryFile> files_of(const LibraryQuery& query);

}  // namespace ashlar::cuda

// The libraries that are looked for, and every copy of them on this machine.
#pragma once

#include "cuda/driver/find_library.hpp"

namespace ashlar::cuda {

LibraryQuery driver_query();
LibraryQuery nvrtc_query();
LibraryQuery cublaslt_query();
LibraryQuery cudnn_query();

struct LibraryFile {
  std::string path;   // under which it was found
  std::string file;   // with links followed
  std::string place;  // "LD_LIBRARY_PATH", "Python package", ...
  bool is_loaded = false, on_loader_path = false;
};
// In the order of find_library, which takes the first that opens; each file once. None is opened.
std::vector<LibraryFile> files_of(const LibraryQuery& query);

}  // namespace ashlar::cuda

// What a running process has loaded.
#pragma once

#include <string>
#include <vector>

#include "doctor/facts.hpp"

namespace ashlar::cli {

struct MappedLibrary {
  std::string name;     // up to ".so": "libcudnn", "libcudnn_graph", "libcuda"
  std::string path;     // as the kernel writes it
  std::string version;  // from the file's name; empty: it does not tell
};
// Libraries of CUDA and cuDNN among the mappings of a process (the text of /proc/N/maps).
std::vector<MappedLibrary> mapped_libraries(const std::string& maps);
// Of a process; throws Error(io) with a sentence when it is not there or may not be read.
std::vector<MappedLibrary> libraries_of_process(long process);
// More than one file of one library; parts of cuDNN of different versions.
std::vector<Finding> judge_mapped(const std::vector<MappedLibrary>& libraries);

std::string mapped_text(long process, const std::vector<MappedLibrary>& libraries,
                        const std::vector<Finding>& findings);
std::string mapped_json(long process, const std::vector<MappedLibrary>& libraries,
                        const std::vector<Finding>& findings);

}  // namespace ashlar::cli

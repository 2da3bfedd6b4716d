// Search path of kernel bundles.
#include <dlfcn.h>
#include <glob.h>

#include "base/file_cache.hpp"
#include "base/settings.hpp"
#include "cuda/jit/bundle.hpp"

namespace ashlar::cuda {

namespace {

void add_bundles_in(const std::string& folder, std::vector<std::string>& files) {
  glob_t found{};
  if (glob((folder + "/*.bundle").c_str(), 0, nullptr, &found) == 0)
    files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
}

// The folder of the shared library, or of the program that links it statically.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&bundle_files), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

}  // namespace

std::vector<std::string> bundle_files() {
  std::vector<std::string> files = settings().bundles;
  if (const std::string& cache = settings().cache_directory; !cache.empty())
    if (FileCache(cache).refusal().empty()) add_bundles_in(cache + "/bundles", files);
  // lib/ and bin/ are one level below the prefix, lib/x86_64-linux-gnu/ two.
  if (const std::string folder = own_folder(); !folder.empty())
    for (const char* up : {"/..", "/../.."})
      add_bundles_in(folder + up + "/share/ashlar/bundles", files);
  return files;
}

}  // namespace ashlar::cuda

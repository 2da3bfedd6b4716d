#include "cuda/driver/find_library.hpp"

#include <fmt/format.h>
#include <glob.h>
#include <link.h>

#include <algorithm>
#include <string_view>

#include "base/settings.hpp"

namespace ashlar::cuda {

namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Python package directories: of this process, of its environment, of the system.
std::vector<std::string> package_folders() {
  std::vector<std::string> folders;
  for (const std::string& path : loaded_files("lib"))
    if (const std::size_t at = path.find("/site-packages/"); at != std::string::npos)
      folders.push_back(path.substr(0, at) + "/site-packages");
  for (const std::string& root : settings().python_roots)
    for (auto& found : matching_files(root + "/lib/python3*/site-packages"))
      folders.push_back(found);
  for (const char* pattern :
       {"/usr/local/lib/python3*/site-packages", "/usr/local/lib/python3*/dist-packages",
        "/usr/lib/python3*/dist-packages", "/usr/lib/python3*/site-packages"})
    for (auto& found : matching_files(pattern)) folders.push_back(found);
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

}  // namespace

std::vector<std::string> loaded_files(std::string_view prefix) {
  struct Search {
    std::string_view prefix;
    std::vector<std::string> found;
  } search{prefix, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        const std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
        if (path.substr(path.rfind('/') + 1).starts_with(s.prefix)) s.found.emplace_back(path);
        return 0;
      },
      &search);
  return search.found;
}

std::vector<std::string> matching_files(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::reverse(paths.begin(), paths.end());  // newest version first
  return paths;
}

std::string FoundLibrary::tried_text() const {
  std::string text;
  for (const std::string& place : tried) text += "\n  " + place;
  return text.empty() ? " nothing" : text;
}

FoundLibrary find_library(const LibraryQuery& query) {
  FoundLibrary result;
  const auto attempt = [&](const SharedLibrary& library, const std::string& what) {
    result.tried.push_back(library.is_open() ? what : fmt::format("{}: {}", what, library.error()));
    if (library.is_open()) result.library = library;
    return library.is_open();
  };
  const auto open = [&](const std::string& path) {
    return attempt(SharedLibrary::open(path), path);
  };
  const auto open_in = [&](const std::string& folder) {
    for (const std::string& path : matching_files(folder + "/" + query.file + "*"))
      if (open(path)) return true;
    return false;
  };
  if (!query.own.empty()) {
    open(query.own);  // an explicit path is final
    return result;
  }
  for (const std::string& path : loaded_files(query.file))
    if (attempt(SharedLibrary::already_loaded(path), path + " (loaded)")) return result;
  for (const std::string& name : query.names)
    if (open(name)) return result;
  for (const SearchFolder& folder : fallback_folders(query))
    if (open_in(folder.path)) return result;
  return result;
}

std::vector<SearchFolder> fallback_folders(const LibraryQuery& query) {
  std::vector<SearchFolder> folders;
  for (const std::string& path : loaded_files("libcudart.so"))
    folders.push_back({folder_of(path), "next to libcudart"});
  for (const std::string& folder : package_folders())
    for (const std::string& place : query.wheel_folders)
      folders.push_back({folder + "/" + place, "Python package"});
  std::vector<std::string> toolkits = settings().cuda_roots;
  for (const char* pattern : {"/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda", "/usr/lib/cuda"})
    for (auto& found : matching_files(pattern)) toolkits.push_back(found);
  for (const std::string& toolkit : toolkits)
    for (const char* place : {"/lib64", "/lib", "/targets/x86_64-linux/lib"})
      folders.push_back({toolkit + place, "CUDA toolkit"});
  return folders;
}

}  // namespace ashlar::cuda

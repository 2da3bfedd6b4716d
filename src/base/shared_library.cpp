// Loading of shared libraries with dlopen, and the search path of the loader.
#include "base/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace ashlar {

namespace {

void* open_with(const std::string& path, int flags, std::string& error) {
  void* handle = dlopen(path.c_str(), flags);
  if (handle != nullptr) {
    error.clear();
  } else {
    const char* reason = dlerror();
    error = reason != nullptr ? reason : "not loaded";
  }
  return handle;
}

}  // namespace

SharedLibrary SharedLibrary::open(const std::string& path) {
  SharedLibrary library;
  library.handle_ = open_with(path, RTLD_NOW | RTLD_LOCAL, library.error_);
  return library;
}

SharedLibrary SharedLibrary::already_loaded(const std::string& name) {
  SharedLibrary library;
  library.handle_ = open_with(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, library.error_);
  return library;
}

std::string SharedLibrary::path() const {
  link_map* map = nullptr;
  if (handle_ == nullptr || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr)
    return {};
  return map->l_name;
}

void* SharedLibrary::symbol(const char* name) const {
  return handle_ != nullptr ? dlsym(handle_, name) : nullptr;
}

std::vector<std::string> loader_folders_of_environment() {
  const char* value = std::getenv("LD_LIBRARY_PATH");
  std::vector<std::string> folders;
  if (value == nullptr || *value == '\0') return folders;
  const std::string list = value;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find_first_of(":;", begin), list.size());
    folders.push_back(end > begin ? list.substr(begin, end - begin) : ".");
    begin = end + 1;
  }
  return folders;
}

std::vector<std::string> loader_folders() {
  std::vector<std::string> folders;
  void* self = dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size{};
  if (self == nullptr || dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0) return folders;
  std::vector<std::max_align_t> memory(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* info = reinterpret_cast<Dl_serinfo*>(memory.data());
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, info) != 0 || dlinfo(self, RTLD_DI_SERINFO, info) != 0)
    return folders;
  for (unsigned i = 0; i < info->dls_cnt; ++i) folders.emplace_back(info->dls_serpath[i].dls_name);
  return folders;
}

}  // namespace ashlar

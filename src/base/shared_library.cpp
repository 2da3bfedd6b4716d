#include "base/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>

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

}  // namespace ashlar

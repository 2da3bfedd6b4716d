// A library opened while the program runs.
#pragma once

#include <string>
#include <vector>

namespace ashlar {

class SharedLibrary {
 public:
  SharedLibrary() = default;  // none
  // Stays open until the process ends: what it gave out may outlive every owner. `error()` tells
  // why, when is_open() is false.
  static SharedLibrary open(const std::string& path);
  // Only if something in this process has opened it already.
  static SharedLibrary already_loaded(const std::string& name);

  bool is_open() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  std::string path() const;  // of the file, as the loader found it
  // Null when the library has no such symbol.
  void* symbol(const char* name) const;
  template <class Function>
  bool load(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string error_ = "not opened";
};

// Where the loader looks for a name, as LD_LIBRARY_PATH has it: before its cache.
std::vector<std::string> loader_folders_of_environment();
// All folders that the loader knows without its cache, in order; the system's are the last.
std::vector<std::string> loader_folders();

}  // namespace ashlar

// A shared library loaded at run time.
#pragma once

#include <string>
#include <vector>

namespace ashlar {

class SharedLibrary {
 public:
  SharedLibrary() = default;  // none
  // Never closed: pointers obtained from the library may outlive every owner. If is_open() is
  // false, error() is the reason.
  static SharedLibrary open(const std::string& path);
  // Opens the library only if it is already loaded in this process.
  static SharedLibrary already_loaded(const std::string& name);

  bool is_open() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  std::string path() const;  // of the file, as the loader found it
  // Null if the library has no such symbol.
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

// The directories of LD_LIBRARY_PATH, which the loader searches before its cache.
std::vector<std::string> loader_folders_of_environment();
// All directories the loader searches besides its cache, in search order; system directories last.
std::vector<std::string> loader_folders();

}  // namespace ashlar

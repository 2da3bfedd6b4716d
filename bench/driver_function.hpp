// Functions of the driver that no header of ours offers. The driver is in the process already.
#pragma once

#include <dlfcn.h>

namespace ashlar::bench {

// Null where there is no driver, or it has no such function.
template <class Function>
void find_driver_function(const char* name, Function& function) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  function = library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

}  // namespace ashlar::bench

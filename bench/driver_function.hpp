// Looks up CUDA driver functions that Ashlar's headers do not declare. The driver must already be
// loaded into the process.
#pragma once

#include <dlfcn.h>

namespace ashlar::bench {

// Null if the driver is not loaded or lacks the function.
template <class Function>
void find_driver_function(const char* name, Function& function) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  function = library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

}  // namespace ashlar::bench

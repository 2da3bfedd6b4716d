// Machine code on the GPU, ready to be launched.
#pragma once

#include <memory>
#include <string>

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

// One function of a cubin. Loading it takes place here and now, so that launches may be captured
// from the first one on. Immutable, used by many threads.
class LoadedKernel {
 public:
  // `name`: of the function in the cubin, and in messages.
  LoadedKernel(DeviceOrdinal device, const std::string& cubin, const std::string& name,
               unsigned shared_bytes = 0);

  // `arguments`: the struct that is the function's only parameter.
  void launch(StreamHandle stream, const Grid& grid, unsigned threads, void* arguments) const;
  int registers() const;
  int local_bytes() const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
  std::string name_;
  DeviceOrdinal device_;
  KernelHandle kernel_ = nullptr;
  FunctionHandle function_ = nullptr;
  unsigned shared_bytes_;
};

}  // namespace ashlar::cuda

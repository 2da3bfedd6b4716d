// Machine code on the GPU, ready to be launched.
#pragma once

#include <memory>
#include <string>

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

// A cubin in the driver's hands.
class LoadedCode {
 public:
  LoadedCode(const std::string& cubin, const std::string& name);  // `name`: for messages
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
  LibraryHandle library() const { return library_; }

 private:
  LibraryHandle library_ = nullptr;
};

// One function of a cubin. Loading it takes place here and now, so that launches may be captured
// from the first one on. Immutable, used by many threads.
class LoadedKernel {
 public:
  // `name`: of the function in the cubin. Messages call it by this name and by `purpose`.
  LoadedKernel(DeviceOrdinal device, std::shared_ptr<const LoadedCode> code,
               const std::string& name, unsigned shared_bytes = 0, const std::string& purpose = {});
  LoadedKernel(DeviceOrdinal device, const std::string& cubin, const std::string& name,
               unsigned shared_bytes = 0)
      : LoadedKernel(device, std::make_shared<LoadedCode>(cubin, name), name, shared_bytes) {}

  // `arguments`: the struct that is the function's only parameter. `cluster`: blocks along x that
  // run together. `is_early`: may start before the launch before it is done.
  void launch(StreamHandle stream, const Grid& grid, unsigned threads, void* arguments,
              unsigned cluster = 1, bool is_early = false) const;
  // Until all of the stream is done; an error is taken to be this kernel's.
  void wait(StreamHandle stream) const;
  int registers() const;
  int local_bytes() const;

 private:
  std::shared_ptr<const LoadedCode> code_;
  std::string title_;  // "kernel 'NAME' of 'PURPOSE'"
  DeviceOrdinal device_;
  KernelHandle kernel_ = nullptr;
  FunctionHandle function_ = nullptr;
  unsigned shared_bytes_;
};

}  // namespace ashlar::cuda

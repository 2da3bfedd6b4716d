// Machine code on the GPU, ready to be launched.
#pragma once

#include <memory>
#include <string>

#include "cuda/driver/context.hpp"

namespace ashlar::cuda {

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

struct LaunchForm {
  Grid grid = {};
  unsigned threads = 1;  // of a block
  unsigned cluster = 1;  // blocks along x that run together and reach each other's shared memory
  bool cooperative = false;  // all blocks are on the GPU at once and may wait for each other; an
                             // error where they do not fit
  bool is_dependent_launch = false;  // may start before the launch before it is done
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

  // `arguments`: the struct that is the function's only parameter.
  void launch(const ContextScope& scope, StreamHandle stream, const LaunchForm& form,
              void* arguments) const;
  // Until all of the stream is done; an error is taken to be this kernel's.
  void wait(StreamHandle stream) const;
  int registers() const;
  int local_bytes() const;

 private:
  std::shared_ptr<const LoadedCode> code_;
  std::string title_;  // "kernel 'NAME' of 'PURPOSE'"
  DeviceOrdinal device_;
  KernelHandle kernel_ = nullptr;
  // The kernel itself, by a handle that is good in every context; and what it is in the device's
  // primary context, which the driver need not look up at each launch.
  FunctionHandle anywhere_ = nullptr, in_primary_ = nullptr;
  unsigned shared_bytes_;
};

}  // namespace ashlar::cuda

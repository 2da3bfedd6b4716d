// A loaded cubin and its kernels, ready to launch.
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
  unsigned threads = 1;      // per CTA
  unsigned cluster = 1;      // cluster size along x (DSMEM)
  bool cooperative = false;  // cooperative launch: all CTAs are co-resident and may synchronise; an
                             // error where they do not fit
  bool is_dependent_launch = false;  // programmatic dependent launch (PDL)
};

// A cubin loaded into the driver (CUlibrary).
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

// One function of a cubin. It is loaded eagerly, so that launches can be captured from the first
// one on. Immutable and thread-safe.
class LoadedKernel {
 public:
  // `name`: the function in the cubin. Error messages use it and `purpose`.
  LoadedKernel(DeviceOrdinal device, std::shared_ptr<const LoadedCode> code,
               const std::string& name, unsigned shared_bytes = 0, const std::string& purpose = {});
  LoadedKernel(DeviceOrdinal device, const std::string& cubin, const std::string& name,
               unsigned shared_bytes = 0)
      : LoadedKernel(device, std::make_shared<LoadedCode>(cubin, name), name, shared_bytes) {}

  // `arguments`: the struct that is the function's only parameter.
  void launch(const ContextScope& scope, StreamHandle stream, const LaunchForm& form,
              void* arguments) const;
  // Waits for the stream; errors are attributed to this kernel.
  void wait(StreamHandle stream) const;
  int registers() const;
  int local_bytes() const;

 private:
  std::shared_ptr<const LoadedCode> code_;
  std::string title_;  // "kernel 'NAME' of 'PURPOSE'"
  DeviceOrdinal device_;
  KernelHandle kernel_ = nullptr;
  // A handle that is valid in every context, and the function in the device's primary context,
  // which saves the driver a lookup per launch.
  FunctionHandle anywhere_ = nullptr, in_primary_ = nullptr;
  unsigned shared_bytes_;
};

}  // namespace ashlar::cuda

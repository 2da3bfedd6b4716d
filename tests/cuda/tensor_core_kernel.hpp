// Small test kernels made of the kernel library's PTX wrappers, and memory for them.
#pragma once

#include <ashlar/memory.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/cuda_device.hpp"
#include "cuda/driver/context.hpp"
#include "cuda/driver/loaded_kernel.hpp"
#include "cuda/gpu_check.hpp"
#include "cuda/jit/kernel_image.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/launch/tensor_map.hpp"

namespace ashlar::cuda {

// Skips where the GPU has no TMA and no wgmma.
class HopperTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && detect_gpu(0).compute_capability != 90) GTEST_SKIP() << "not of sm_90a";
  }
};

template <class T>
Memory on_gpu(const std::vector<T>& values) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  Memory memory(Device::named("cuda:0"), bytes);
  memory.upload(values.data(), bytes);
  return memory;
}
template <class T>
std::vector<T> from_gpu(const Memory& memory) {
  std::vector<T> values(static_cast<std::size_t>(memory.bytes()) / sizeof(T));
  memory.download(values.data(), memory.bytes());
  return values;
}

inline TensorMapWords map_at(const TensorMapForm& form, const Memory& memory) {
  TensorMapWords map = encode(form);
  replace_address(map.words.data(), reinterpret_cast<std::uint64_t>(memory.data()));
  return map;
}

// `text` defines struct Args, the type of `args`, and the function `kernel`.
template <class Args>
void run_kernel(std::initializer_list<std::string_view> files, const std::string& text,
                const LaunchForm& form, unsigned shared_bytes, Args args) {
  const ContextScope scope(0);
  const std::vector<std::string_view> list(files);
  const KernelSource source{"test", assemble(list, "") + text};
  const std::string architecture = architecture_of(detect_gpu(0).compute_capability);
  const LoadedKernel kernel(0, kernel_images().get(source, architecture)->cubin, "kernel",
                            shared_bytes);
  kernel.launch(scope, nullptr, form, &args);
  Device::named("cuda:0").synchronize();
}

}  // namespace ashlar::cuda

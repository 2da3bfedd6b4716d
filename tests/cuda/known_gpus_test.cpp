#include "cuda/known_gpus.hpp"

#include <gtest/gtest.h>

#include "cuda/cuda_device.hpp"
#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {
namespace {

TEST(KnownGpus, AreFoundByTheDriversNames) {
  const auto name = [](const char* driver_name, int sm_count) {
    const DeviceProps* found = find_known_gpu(driver_name, sm_count);
    return found != nullptr ? found->name : "none";
  };
  EXPECT_EQ(name("NVIDIA H200", 132), "h200");
  EXPECT_EQ(name("NVIDIA H100 80GB HBM3", 132), "h100");
  EXPECT_EQ(name("NVIDIA H100 PCIe", 114), "none");
  EXPECT_EQ(name("NVIDIA A100-SXM4-80GB", 108), "a100");
  EXPECT_EQ(name("NVIDIA L4", 58), "l4");
  EXPECT_EQ(name("NVIDIA L40", 142), "none");
  EXPECT_EQ(name("NVIDIA A10", 72), "a10");
  EXPECT_EQ(name("NVIDIA A10G", 80), "none");
  EXPECT_EQ(name("NVIDIA GeForce RTX 4090 Laptop GPU", 76), "none");
  EXPECT_EQ(name("Emulated GPU", 132), "none");
}

// Engines see the same properties with a GPU as without.
TEST(KnownGpus, AreAsTheDriverSays) {
  if (device_count() == 0) GTEST_SKIP() << driver().reason;
  const DeviceProps real = detect_gpu(0);
  const std::string name = real.description.substr(0, real.description.find(','));
  const DeviceProps* known = find_known_gpu(name, real.compute_units);
  if (known == nullptr) GTEST_SKIP() << name << " is not in the table";
  EXPECT_EQ(known->compute_capability, real.compute_capability);
  EXPECT_EQ(known->shared_bytes, real.shared_bytes);
  EXPECT_EQ(known->l1_bytes, real.l1_bytes);
  EXPECT_EQ(known->l2_bytes, real.l2_bytes);
  EXPECT_EQ(known->flops_f32, real.flops_f32);
  EXPECT_EQ(known->bytes_per_second, real.bytes_per_second);
}

}  // namespace
}  // namespace ashlar::cuda

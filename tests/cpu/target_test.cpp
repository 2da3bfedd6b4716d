// The SIMD target of this test process.
#include "cpu/target.hpp"

#include <gtest/gtest.h>

#include <ashlar/device.hpp>
#include <cstdlib>
#include <string>

namespace ashlar::cpu {
namespace {

// Decided before the first kernel dispatch.
[[maybe_unused]] const Target& chosen_first = target();

TEST(Target, FollowsTheEnvironment) {
  const char* setting = std::getenv("ASHLAR_TARGET");
  const std::string wanted = setting ? setting : "";
  if (wanted == "avx2") {
    EXPECT_LE(target().vector_bytes, 32);
  }
  if (wanted == "sse4" || wanted == "portable") {
    EXPECT_LE(target().vector_bytes, 16);
  }
  EXPECT_EQ(Device::cpu().props().vector_bytes, target().vector_bytes);
  EXPECT_NE(Device::cpu().props().description.find(target().name), std::string::npos);
}

}  // namespace
}  // namespace ashlar::cpu

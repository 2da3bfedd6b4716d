// Runs a graph on the GPU, real or emulated, with a given engine, and compares with the reference.
#pragma once

#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>
#include <string_view>

#include "cuda/cuda_device.hpp"
#include "cuda/driver/driver_api.hpp"
#include "cuda/jit/nvrtc.hpp"
#include "support/fill.hpp"

namespace ashlar::cuda {

// Suites whose name starts with Gpu are skipped without a GPU; ctest runs them on the emulated one.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

inline constexpr std::string_view kGenericEngine = "cuda.generic";

struct GpuRunOptions {
  support::Fill fill = support::Fill::plain;
  // Offset of tensors in bytes from a multiple of 256, rounded up to a multiple of their element
  // size.
  std::int64_t offset = 0;
  CompileOptions options = {};
};
// Assigns every region that `engine` supports to it, at least one. Runs twice with guard zones
// around all memory; expects identical bits, and results within the reference's error bounds.
void expect_agrees(const Graph& graph, std::string_view engine, const GpuRunOptions& run = {});

}  // namespace ashlar::cuda

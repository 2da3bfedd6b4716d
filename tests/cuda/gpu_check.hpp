// A graph run on the GPU, real or emulated, by a certain engine, and compared with the oracle.
#pragma once

#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>
#include <string_view>

#include "cuda/cuda_device.hpp"
#include "cuda/driver/driver_api.hpp"
#include "cuda/jit/nvrtc.hpp"
#include "support/fill.hpp"

namespace ashlar::cuda {

// Suites whose name begins with Gpu are skipped where there is none; ctest runs them on the
// emulated one.
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
  // Where tensors begin, in bytes past a multiple of 256: a multiple of every element's size.
  std::int64_t offset = 0;
  CompileOptions options = {};
};
// Every region is given to `engine` if it takes it, and at least one must be. Runs twice with
// guards around all memory, expects equal bits, and results within the oracle's bounds.
void expect_agrees(const Graph& graph, std::string_view engine, const GpuRunOptions& run = {});

}  // namespace ashlar::cuda

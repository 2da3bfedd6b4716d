#include "cuda/engines/tile_cost.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "cuda/known_gpus.hpp"

namespace ashlar::cuda {
namespace {

const DeviceProps& h200() { return known_gpus().front(); }

// A GEMM of m x n x k in bf16.
TileWork product(double m, double n, double k, int tile_m, int tile_n) {
  TileWork work;
  work.engine = "cuda.gemm_sm90";
  work.tile_m = tile_m;
  work.tile_n = tile_n;
  work.tiles = std::ceil(m / tile_m) * std::ceil(n / tile_n);
  work.flops = 2.0 * tile_m * tile_n * k;
  work.load_bytes = 2.0 * (tile_m + tile_n) * k;
  work.store_bytes = 2.0 * tile_m * tile_n;
  work.memory_bytes = 2 * (m * k + n * k + m * n);
  work.persistent = true;
  return work;
}
double seconds(const TileWork& work) { return tile_cost(work, h200()).seconds(h200(), f32); }

TEST(TileCost, LargeGemmsApproachTheTensorCorePeak) {
  const double cube = 8192.0 * 8192 * 8192;
  const double rate = 2 * cube / seconds(product(8192, 8192, 8192, 128, 256));
  EXPECT_GT(rate, 0.6 * tensor_rate(h200(), bf16));
  EXPECT_LT(rate, tensor_rate(h200(), bf16));
}

TEST(TileCost, PartialWavesCost) {
  // 132 tiles are one wave, 133 are two.
  TileWork work = product(128 * 132, 256, 4096, 128, 256);
  const double one = seconds(work);
  work.tiles = 133;
  EXPECT_GT(seconds(work), 1.7 * one - 2 * h200().launch_seconds);
  // Smaller tiles win where large ones leave most of the chip idle.
  EXPECT_LT(seconds(product(512, 4096, 8192, 128, 128)),
            seconds(product(512, 4096, 8192, 128, 256)));
}

TEST(TileCost, StreamKFillsTheTailWave) {
  // 198 tiles on 132 SMs: one and a half waves instead of two.
  TileWork whole = product(128 * 198, 256, 8192, 128, 256), streamed = whole;
  streamed.split_tiles = streamed.tiles;
  streamed.tiles = 0;
  streamed.streams = true;
  streamed.launches = 2;
  EXPECT_LT(seconds(streamed), 0.95 * seconds(whole));
  EXPECT_GT(seconds(streamed), 0.75 * seconds(whole));
  // Where little is left to do, or waves are full, exchanging partials costs more than it gains.
  for (TileWork* work : {&whole, &streamed}) work->flops /= 32, work->load_bytes /= 32;
  EXPECT_GT(seconds(streamed), seconds(whole));
}

TEST(TileCost, MemoryLimitsWhatHasLittleArithmetic) {
  const TileWork work = product(65536, 64, 64, 128, 64);
  EXPECT_GE(seconds(work), work.memory_bytes / h200().bytes_per_second);
}

TEST(TileCost, SplitKMustPayForItsReduction) {
  TileWork whole = product(128, 256, 65536, 128, 256), split = whole;
  split.tiles *= 16;
  split.flops /= 16;
  split.load_bytes /= 16;
  split.launches = 2;
  EXPECT_LT(seconds(split), seconds(whole));
  TileWork little = product(128, 256, 256, 128, 256);
  TileWork little_split = little;
  little_split.tiles *= 2;
  little_split.flops /= 2;
  little_split.load_bytes /= 2;
  little_split.launches = 2;
  EXPECT_GT(seconds(little_split), seconds(little));
}

TEST(TileCost, RatesFollowTheOperands) {
  const double half = tensor_rate(h200(), bf16);
  EXPECT_EQ(half, h200().flops_f16);
  EXPECT_EQ(tensor_rate(h200(), f32), half / 2);
  EXPECT_EQ(tensor_rate(h200(), e4m3), 2 * half);
  EXPECT_EQ(tensor_rate(h200(), i8), 2 * half);
  EXPECT_EQ(tensor_rate(h200(), i64), 0);
  EXPECT_NEAR(l2_bytes_per_second(h200()) / 1e12, 10.7, 0.3);
  for (const DeviceProps& gpu : known_gpus())
    EXPECT_EQ(tensor_rate(gpu, bf16) > 0, gpu.compute_capability >= 80) << gpu.name;
}

TEST(TileCost, EveryEngineHasACalibration) {
  EXPECT_EQ(tile_calibration("cuda.unknown_sm90", e4m3, 64, 64, 1).engine, "_sm90");
  EXPECT_EQ(tile_calibration("cuda.unknown", bf16, 64, 64, 0).engine, "_sm80");
}

}  // namespace
}  // namespace ashlar::cuda

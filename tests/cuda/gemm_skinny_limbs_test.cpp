// Skinny GEMM: integer products of 4-bit weights and int8 limbs of x agree with the reference.
#include <cmath>
#include <limits>
#include <optional>

#include "base/element.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "skinny_graphs.hpp"

namespace ashlar::cuda {
namespace {

class GpuGemmSkinnyLimbs : public GpuGemmSkinny {
 protected:
  void SetUp() override {
    GpuGemmSkinny::SetUp();
    if (!IsSkipped() && Device::named("cuda:0").props().compute_capability != 90)
      GTEST_SKIP() << "wgmma is sm_90a's";
  }
  // The value that overrides element (row, k) of x, or nothing.
  using Value = std::function<std::optional<double>(std::int64_t row, std::int64_t k)>;
  static void agrees(const SkinnyProblem& problem, bool all, const Value& value = {},
                     support::Fill fill = support::Fill::plain) {
    SCOPED_TRACE(testing::Message() << problem.m << " " << to_string(problem.weights) << " "
                                    << problem.n << " " << problem.k);
    DeviceProps small = Device::named("cuda:0").props();
    small.compute_units = 4;
    const auto change = [&](support::BoundMemory& memory) {
      for (const TensorId id : memory.bound())
        if (const Tensor& x = memory.graph().tensor(id); value && x.name == "x")
          for (std::int64_t i = 0; i < element_count(x.dims); ++i)
            if (const auto other = value(i / problem.k, i % problem.k))
              write_element(x, memory.data(id), i, *other);
    };
    // A pre-pass launch decomposes x, or repack warps of each CTA where x has at most 8 rows.
    for (const bool in_blocks : {false, true}) {
      if (in_blocks && problem.m > 8) continue;
      expect_agrees(
          gemm_skinny_engine(), skinny_product(problem), all, 3, fill, small,
          [&](const Config& config) {
            return config.knob("digits") == 1 && (config.knob("helpers") > 1) == in_blocks;
          },
          change);
    }
  }
};

// Rows of x that do not fill the columns of wgmma, partial row tiles and partial chunks.
TEST_F(GpuGemmSkinnyLimbs, EveryLayout) {
  agrees({.m = 5, .n = 200, .k = 1280, .weights = i4, .block = 256}, true);
  agrees({.m = 16, .n = 136, .k = 1536, .weights = u4, .after = true, .block = 128}, true);
  agrees({.m = 32, .n = 200, .k = 1280, .weights = i4, .block = 256}, true);
  // Repack warps with fewer than 8 rows per item, in stages that are filled several times.
  for (const std::int64_t m : {1, 2, 3})
    agrees({.m = m, .n = 600, .k = 4352, .weights = i4, .y = f32, .block = 128}, true);
  for (const std::int64_t m : {1, 3, 8, 9, 16, 17, 25})
    for (const DType weights : {i4, u4})
      agrees({.m = m, .n = 80, .k = 1280, .weights = weights, .y = f32, .block = 128}, false);
  agrees({.m = 2,
          .n = 72,
          .k = 512,
          .x = f16,
          .weights = i4,
          .y = f16,
          .block = 128,
          .block_scale = f16},
         true);
}

// Steps with values of very different magnitude, close to the largest and smallest of the type.
TEST_F(GpuGemmSkinnyLimbs, LargeAndSmallNumbers) {
  const SkinnyProblem in_bf16{.m = 7, .n = 80, .k = 512, .weights = i4, .y = f32, .block = 128};
  SkinnyProblem in_f16 = in_bf16;
  in_f16.x = in_f16.block_scale = f16;
  for (const SkinnyProblem& problem : {in_bf16, in_f16}) {
    // One value 2^12 (2^9 in f16) times the others.
    agrees(problem, false, [&](std::int64_t row, std::int64_t k) -> std::optional<double> {
      if (k % 128 != 5 * row) return {};
      return problem.x == f16 ? 0x1.ffp9 : -0x1.fep12;
    });
    agrees(problem, false, [](std::int64_t row, std::int64_t k) -> std::optional<double> {
      if (row % 2 == 0) return 0.;
      return k < 256 ? std::optional(-0.) : std::nullopt;
    });
  }
  // A step of subnormals, one of full significands, and one with a value near the largest.
  agrees(in_bf16, false, [](std::int64_t row, std::int64_t k) -> std::optional<double> {
    const double sign = (row + k) % 3 == 0 ? -1 : 1;
    if (k < 128) return sign * std::ldexp(1. + static_cast<double>(k % 100), -133);
    if (k < 256) return sign * std::ldexp(0x1.fep0, static_cast<int>(k % 14 - row));
    if (k < 384) return k == 300 ? sign * 0x1.fep124 : 0.;
    return {};
  });
}

// Limbs cannot represent infinities and NaN: such accumulators are recomputed.
TEST_F(GpuGemmSkinnyLimbs, InfinitiesAndNaN) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const std::int64_t m : {3, 8, 9})
    agrees({.m = m, .n = 200, .k = 1280, .weights = m == 9 ? u4 : i4, .y = f32, .block = 128},
           m <= 8, [](std::int64_t row, std::int64_t k) -> std::optional<double> {
             if (row == 1 && k == 700) return kInf;
             if (row == 2 && k == 3) return -kInf;
             if (row == 3 && (k == 17 || k == 1279)) return k == 17 ? kInf : -kInf;
             if (row % 4 == 0 && row > 0 && k == 640)
               return std::numeric_limits<double>::quiet_NaN();
             return {};
           });
  agrees({.m = 16, .n = 64, .k = 512, .weights = i4, .block = 128, .block_scale = e8m0}, true, {},
         support::Fill::special);
  agrees({.m = 20, .n = 64, .k = 512, .weights = u4, .block = 128}, true, {},
         support::Fill::special);
}

}  // namespace
}  // namespace ashlar::cuda

// Convolutions as implicit GEMM: every pixel is combined with exactly the taps of the definition.
#include "cuda/engines/implicit_gemm.hpp"

#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>
#include <map>
#include <tuple>

#include "plan/partition.hpp"

namespace ashlar::cuda {
namespace {

Region region_of(const Graph& graph) {
  const LoweredGraph lowered = lower(graph, true);
  return partition(lowered, std::vector<FusionLimits>(lowered.graph.nodes().size())).at(0);
}

// (output pixel, index in the filter) -> pixel of `from`, for those inside of it.
using Meetings = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int64_t>;

Meetings meetings_of(const ImplicitGemm& product) {
  Meetings result;
  for (const auto& phase : product.phases) {
    for (std::size_t axis = 0; axis < 3; ++axis)
      EXPECT_EQ(phase.upper[axis] + product.from_extent[axis] - 1,
                phase.lower[axis] + (phase.extent[axis] - 1) * product.step[axis]);
    for (std::int64_t h = 0; h < phase.extent[1]; ++h)
      for (std::int64_t w = 0; w < phase.extent[2]; ++w)
        for (const auto& tap : phase.taps) {
          const std::int64_t y = phase.lower[1] + h * product.step[1] + tap.offset[1],
                             x = phase.lower[2] + w * product.step[2] + tap.offset[2];
          EXPECT_GE(tap.offset[1], 0);
          EXPECT_GE(tap.offset[2], 0);
          if (y < 0 || y >= product.from_extent[1] || x < 0 || x >= product.from_extent[2])
            continue;
          const auto key = std::tuple(phase.first[1] + phase.step[1] * h,
                                      phase.first[2] + phase.step[2] * w, tap.filter);
          EXPECT_TRUE(result.emplace(key, y * product.from_extent[2] + x).second);
        }
  }
  return result;
}

// The same with padded lines: a tap is a row offset across lines and images.
Meetings long_meetings_of(const ImplicitGemm& product) {
  Meetings result;
  const ImplicitGemm lines = product.with_padded_lines();
  constexpr std::int64_t kImages = 2;
  for (const auto& phase : lines.phases) {
    const std::int64_t of_image = phase.pixels_of_image();
    for (std::int64_t pixel = 0; pixel < kImages * of_image; ++pixel) {
      const std::int64_t image = pixel / of_image, h = pixel % of_image / phase.extent[2],
                         w = pixel % phase.extent[2];
      if (h >= phase.result[1] || w >= phase.result[2]) continue;
      for (const auto& tap : phase.taps) {
        const std::int64_t there = pixel + tap.offset[2];
        const std::int64_t y = phase.lower[1] + there % of_image / phase.extent[2],
                           x = phase.lower[2] + there % phase.extent[2];
        if (there >= kImages * of_image || y < 0 || y >= product.from_extent[1] || x < 0 ||
            x >= product.from_extent[2])
          continue;
        EXPECT_EQ(there / of_image, image);
        const auto key = std::tuple(phase.first[1] + phase.step[1] * h,
                                    phase.first[2] + phase.step[2] * w, tap.filter);
        const auto [place, is_new] = result.emplace(key, y * product.from_extent[2] + x);
        EXPECT_EQ(is_new, image == 0);
        EXPECT_EQ(place->second, y * product.from_extent[2] + x);
      }
    }
  }
  return result;
}

void expect_definition(const Dims& extent, const Dims& window, const ConvAttributes& op) {
  Dims out;
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t after = op.post_padding ? (*op.post_padding)[axis] : op.padding[axis];
    out.push_back(
        (extent[axis] + op.padding[axis] + after - op.dilation[axis] * (window[axis] - 1) - 1) /
            op.stride[axis] +
        1);
  }
  const Dims x = {1, 8, extent[0], extent[1]}, y = {1, 8, out[0], out[1]},
             w = {8, 8, window[0], window[1]};
  Meetings forward, backward;
  for (std::int64_t p = 0; p < out[0]; ++p)
    for (std::int64_t q = 0; q < out[1]; ++q)
      for (std::int64_t r = 0; r < window[0]; ++r)
        for (std::int64_t s = 0; s < window[1]; ++s) {
          const std::int64_t h = p * op.stride[0] - op.padding[0] + r * op.dilation[0],
                             v = q * op.stride[1] - op.padding[1] + s * op.dilation[1];
          if (h < 0 || h >= extent[0] || v < 0 || v >= extent[1]) continue;
          const std::int64_t tap = op.mode == ConvMode::convolution
                                       ? (window[0] - 1 - r) * window[1] + window[1] - 1 - s
                                       : r * window[1] + s;
          forward[{p, q, tap}] = h * extent[1] + v;
          backward[{h, v, tap}] = p * out[1] + q;
        }
  Graph one, two;
  one.output("y", one.conv(one.input("x", x, f32), one.input("w", w, f32), op));
  two.output("dx", two.conv_backward_data(two.input("dy", y, f32), two.input("w", w, f32), op,
                                          {.dims = x}));
  EXPECT_EQ(meetings_of(ImplicitGemm(region_of(one))), forward);
  const auto all = static_cast<double>(out[0] * out[1] * window[0] * window[1]);
  EXPECT_NEAR(ImplicitGemm(region_of(one)).outside(), 1 - static_cast<double>(forward.size()) / all,
              1e-12);
  EXPECT_EQ(meetings_of(ImplicitGemm(region_of(two))), backward);
  if (op.stride == Dims{1, 1}) {
    EXPECT_EQ(long_meetings_of(ImplicitGemm(region_of(one))), forward);
  }
  EXPECT_EQ(long_meetings_of(ImplicitGemm(region_of(two))), backward);
}

TEST(ImplicitGemm, IsTheConvolution) {
  expect_definition({7, 9}, {3, 3}, {.padding = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}});
  expect_definition({7, 9}, {3, 4}, {.padding = {2, 0}, .stride = {1, 1}, .dilation = {2, 1}});
  expect_definition({8, 9}, {3, 2}, {.padding = {1, 0}, .stride = {2, 3}, .dilation = {1, 1}});
  expect_definition({9, 11}, {3, 3}, {.padding = {2, 3}, .stride = {2, 1}, .dilation = {2, 3}});
  expect_definition({5, 6}, {3, 3}, {.padding = {6, 6}, .stride = {1, 1}, .dilation = {6, 6}});
  expect_definition({9, 8}, {1, 1}, {.padding = {0, 0}, .stride = {2, 2}, .dilation = {1, 1}});
  expect_definition({10, 7}, {5, 4},
                    {.padding = {4, 0},
                     .post_padding = Dims{0, 3},
                     .stride = {3, 2},
                     .dilation = {1, 1},
                     .mode = ConvMode::convolution});
}

TEST(ImplicitGemm, PhasesWithMostTapsComeFirst) {
  Graph graph;
  graph.output("dx", graph.conv_backward_data(
                         graph.input("dy", {1, 8, 4, 4}, f32), graph.input("w", {8, 8, 3, 3}, f32),
                         {.padding = {1, 1}, .stride = {2, 2}}, {.dims = {1, 8, 8, 8}}));
  const ImplicitGemm product(region_of(graph));
  std::vector<std::size_t> taps;
  for (const auto& phase : product.phases) taps.push_back(phase.taps.size());
  EXPECT_EQ(taps, (std::vector<std::size_t>{4, 2, 2, 1}));
}

}  // namespace
}  // namespace ashlar::cuda

// Indirect-GEMM convolution and its micro-kernel.
#include <numeric>
#include <random>

#include "cpu/kernels/igemm_micro_kernel.hpp"
#include "cpu/kernels/transpose_tile.hpp"
#include "cpu/plan_check.hpp"
#include "cpu/without_caches.hpp"

namespace ashlar::cpu {
namespace {

constexpr std::string_view kTilesEngine = "cpu.conv_tiles";

struct ConvTilesCase {
  const char* name;
  Dims x, w;
  ConvAttributes attributes = {};
};

const std::vector<ConvTilesCase>& tiles_cases() {
  static const std::vector<ConvTilesCase> list = {
      {"padded", {2, 20, 7, 9}, {70, 20, 3, 3}, {.padding = {1, 1}}},
      {"in place, odd channels", {2, 37, 6, 9}, {33, 37, 1, 1}},
      {"strided", {1, 24, 13, 11}, {48, 24, 3, 3}, {.padding = {1, 1}, .stride = {2, 2}}},
      {"strided and one tap", {2, 48, 9, 10}, {64, 48, 1, 1}, {.stride = {2, 3}}},
      {"one tap, many pixels", {3, 32, 30, 31}, {65, 32, 1, 1}},
      {"one tap, every second of many pixels", {3, 20, 41, 43}, {70, 20, 1, 1}, {.stride = {2, 2}}},
      {"dilated",
       {1, 24, 8, 10},
       {32, 24, 3, 3},
       {.padding = {2, 2}, .dilation = {2, 2}, .mode = ConvMode::convolution}},
      {"lopsided padding",
       {1, 24, 8, 9},
       {40, 24, 4, 2},
       {.padding = {0, 1}, .post_padding = Dims{3, 0}, .stride = {1, 2}}},
      {"few channels", {1, 3, 17, 19}, {64, 3, 7, 7}, {.padding = {3, 3}, .stride = {2, 2}}},
      {"groups", {2, 40, 7, 8}, {48, 20, 3, 3}, {.padding = {1, 1}}},
      {"small images", {5, 64, 4, 4}, {20, 64, 3, 3}, {.padding = {1, 1}}},
      {"depth beyond L2", {1, 600, 2, 3}, {66, 600, 3, 3}, {.padding = {1, 1}}},
      {"one row of many pixels", {1, 4, 6000}, {17, 4, 5}, {.padding = {4}, .dilation = {2}}},
      {"three axes",
       {1, 12, 4, 4, 5},
       {18, 12, 3, 2, 3},
       {.padding = {1, 0, 1}, .stride = {2, 1, 1}}},
      {"panels of channels", {2, 128, 3, 20}, {14, 128, 3, 3}, {.padding = {1, 1}}},
      {"window wider than the image", {1, 16, 3, 4}, {20, 16, 5, 7}, {.padding = {3, 4}}},
  };
  return list;
}

Dims result_dims(const ConvTilesCase& c) {
  Graph graph;
  return graph.conv(graph.input("x", c.x, f32), graph.input("w", c.w, f32), c.attributes).dims();
}

Graph forward(const ConvTilesCase& c, DType dtype, bool last) {
  Graph graph;
  Value x = graph.input("x", c.x, dtype, layout_of(last));
  Value w = graph.input("w", c.w, dtype, layout_of(last));
  graph.output("y", graph.conv(x, w, c.attributes));
  return graph;
}

Graph backward_data(const ConvTilesCase& c, DType dtype, bool last) {
  Graph graph;
  Value dy = graph.input("dy", result_dims(c), dtype, layout_of(last));
  Value w = graph.input("w", c.w, dtype, layout_of(last));
  graph.output("dx", graph.conv_backward_data(dy, w, c.attributes, {.dims = c.x}));
  return graph;
}

Graph backward_filter(const ConvTilesCase& c, DType dtype, bool last) {
  Graph graph;
  Value x = graph.input("x", c.x, dtype, layout_of(last));
  Value dy = graph.input("dy", result_dims(c), dtype, layout_of(last));
  graph.output("dw", graph.conv_backward_filter(x, dy, c.attributes, {.dims = c.w}));
  return graph;
}

// Whether the engine supports the graph, even if another one is cheaper.
bool is_taken(const Graph& graph) {
  for (const RegionInspection& region : inspect(graph, Device::cpu()).regions)
    for (const EngineAttempt& attempt : region.attempts)
      if (attempt.is_supported && attempt.engine == kTilesEngine) return true;
  return false;
}

void check(Graph graph) {
  EXPECT_TRUE(is_taken(graph));
  PlanCheck(std::move(graph)).expect_agrees("cpu.conv_");
}

TEST(ConvTiles, EveryCaseInAllDirectionsAndLayouts) {
  for (const ConvTilesCase& c : tiles_cases())
    for (const bool last : {false, true}) {
      SCOPED_TRACE(testing::Message() << c.name << (last ? ", channels last" : ""));
      check(forward(c, f32, last));
      check(backward_data(c, f32, last));
      check(backward_filter(c, f32, last));
    }
}

// Pixels of dx that no tap reaches are zeroed along with their neighbours, or have a phase of their
// own.
TEST(ConvTiles, PixelsWithoutTaps) {
  const std::vector<ConvTilesCase> list = {
      {"every second pixel", {2, 70, 28, 10}, {33, 70, 1, 1}, {.stride = {2, 2}}},
      {"one of six", {1, 16, 9, 8}, {24, 16, 1, 1}, {.stride = {3, 2}}},
      {"cut cells", {1, 16, 9, 7}, {24, 16, 1, 1}, {.stride = {2, 2}}},
      {"not the first pixel", {1, 16, 8, 6}, {24, 16, 1, 1}, {.padding = {1, 1}, .stride = {2, 2}}},
      {"a window that keeps to them",
       {2, 40, 8, 12},
       {24, 20, 3, 3},
       {.padding = {2, 2}, .stride = {2, 2}, .dilation = {2, 2}}},
      {"three axes", {1, 16, 4, 6, 4}, {24, 16, 1, 1, 1}, {.stride = {2, 3, 2}}},
  };
  for (const ConvTilesCase& c : list)
    for (const bool last : {false, true})
      for (const Device& device : {Device::cpu(), without_caches()}) {
        SCOPED_TRACE(testing::Message() << c.name << (last ? ", channels last" : ""));
        Graph graph = backward_data(c, f32, last);
        EXPECT_TRUE(is_taken(graph));
        PlanCheck(std::move(graph)).expect_agrees("cpu.conv_", {}, device);
      }
}

TEST(ConvTiles, NarrowFloats) {
  for (const DType dtype : {f16, bf16})
    for (const std::size_t i : {std::size_t{0}, std::size_t{2}, std::size_t{10}})
      for (const bool last : {false, true}) {
        SCOPED_TRACE(testing::Message() << tiles_cases()[i].name << " in " << to_string(dtype));
        check(forward(tiles_cases()[i], dtype, last));
        check(backward_data(tiles_cases()[i], dtype, last));
        check(backward_filter(tiles_cases()[i], dtype, last));
      }
}

TEST(ConvTiles, IsChosenForOrdinaryConvolutions) {
  const ConvTilesCase c{"", {1, 32, 10, 10}, {48, 32, 5, 5}, {.padding = {2, 2}}};
  for (const bool last : {false, true}) {
    PlanCheck(forward(c, f32, last)).expect_agrees(kTilesEngine);
    PlanCheck(backward_data(c, f32, last)).expect_agrees(kTilesEngine);
  }
  PlanCheck(backward_filter(c, f32, true)).expect_agrees(kTilesEngine);
}

// Epilogues that become post-ops, and one that does not.
TEST(ConvTiles, Epilogues) {
  for (const bool last : {false, true})
    for (const bool smooth : {false, true}) {
      Graph graph;
      Value x = graph.input("x", {1, 32, 6, 7}, f32, layout_of(last));
      Value w = graph.input("w", {72, 32, 5, 5}, f32, layout_of(last));
      Value bias = graph.input("bias", {1, 72, 1, 1}, f32);
      Value residual = graph.input("residual", {1, 72, 6, 7}, f32, layout_of(last));
      Value y = graph.conv(x, w, {.padding = {2, 2}}) + bias + residual;
      graph.output("y", smooth ? gelu(y) : relu(y));
      check(std::move(graph));
    }
}

TEST(ConvTiles, PrologueAlphaAndBeta) {
  for (const bool last : {false, true}) {
    Graph graph;
    Value x = graph.input("x", {1, 32, 6, 7}, f32, layout_of(last));
    Value w = graph.input("w", {72, 32, 5, 5}, f32, layout_of(last));
    Value z = graph.input("z", {1, 72, 6, 7}, f32, layout_of(last));
    const ConvAttributes attributes = {.padding = {2, 2}, .alpha = 0.5, .beta = -2.0};
    graph.output("y", graph.conv(relu(x), w, attributes, {}, z));
    check(std::move(graph));
  }
}

TEST(ConvTiles, KeepsConstantFilters) {
  for (const bool last : {false, true}) {
    const Graph graph = forward(tiles_cases()[0], f32, last);
    std::vector<float> x(2 * 20 * 7 * 9), w(70 * 20 * 3 * 3);
    fill_random(graph.tensor(graph.find_tensor("x")), x.data(), 1);
    fill_random(graph.tensor(graph.find_tensor("w")), w.data(), 2);
    std::vector<std::vector<float>> results;
    std::vector<std::int64_t> scratch;
    for (const bool constant : {false, true}) {
      CompileOptions options;
      options.guard = true;
      if (constant) options.constants = {{"w", w.data()}};
      const Plan plan = compile(graph, Device::cpu(), options);
      std::vector<float> y(2 * 70 * 7 * 9);
      std::vector<std::byte> block(static_cast<std::size_t>(plan.workspace_size()) + 64);
      void* workspace = block.data();
      std::size_t space = block.size();
      std::align(64, block.size() - 64, workspace, space);
      plan.run({{"x", x.data()}, {"w", w.data()}, {"y", y.data()}}, workspace);
      results.push_back(std::move(y));
      scratch.push_back(plan.workspace_size());
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_LT(scratch[1], scratch[0]);
  }
}

// The igemm micro-kernel against its definition, for every tile height and width, for several
// tiles, and for the strides with specialised loops.
TEST(ConvTiles, IgemmMicroKernel) {
  const IgemmMicroKernel<float>& micro_kernel = igemm_micro_kernel<float>();
  std::mt19937 random(1);
  const auto fill = [&](std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 17) - 8);
    return values;
  };
  const auto at = [](std::int64_t index) { return static_cast<std::size_t>(index); };
  constexpr std::int64_t kRows = 23, kRow = 80;
  std::vector<std::int64_t> a_rows, c_rows, addend_rows;
  for (std::int64_t i = 0; i < kRows; ++i) {
    a_rows.push_back(i * 61 % 509);
    c_rows.push_back((i * 7 % kRows) * kRow);
    addend_rows.push_back((i * 5 % kRows) * kRow);
  }
  const std::vector<std::int64_t> a_segments = {0, 3, 900};
  const std::vector<float> a = fill(1500), b = fill(3 * 8 * 70), bias = fill(64),
                           addend = fill(kRows * kRow), before = fill(kRows * kRow);
  struct Variant {
    std::int64_t step, k, b_row;
    bool has_segments;  // segments of B
  };
  const Variant variants[] = {{2, 5, 70, false},
                              {1, 8, kMaxTileColumns, false},
                              {1, 6, kMaxTileColumns, false},
                              {1, 5, kMaxTileColumns, false},
                              {kMaxTileRows, 7, 70, true},
                              {kMaxTileRows, 4, 66, false}};
  const auto check = [&](const Variant& variant, std::int64_t rows, std::int64_t columns,
                         int mode) {
    const std::vector<std::int64_t> b_segments = {variant.k * variant.b_row, 0,
                                                  2 * variant.k * variant.b_row};
    GemmPostOps<float> post_ops;
    post_ops.bias = bias.data();
    post_ops.addend = addend.data();
    post_ops.low = -50;
    post_ops.high = 300;
    std::vector<float> c = before;
    IgemmMicroArgs<float> o;
    o.rows = rows;
    o.columns = columns;
    o.a = a.data();
    o.a_rows = a_rows.data();
    o.a_step = variant.step;
    o.segments = 3;
    o.k = variant.k;
    o.a_segments = a_segments.data();
    o.b = b.data();
    o.b_segments = variant.has_segments ? b_segments.data() : nullptr;
    o.b_row = variant.b_row;
    o.next = b.data();
    o.next_lines = 5;
    o.next_tiles = 2;
    o.c = c.data();
    o.c_rows = c_rows.data();
    o.accumulate = mode > 0;
    o.post_ops = mode > 1 ? &post_ops : nullptr;
    o.addend_rows = addend_rows.data();
    micro_kernel.multiply(o);
    std::vector<float> expected = before;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (std::int64_t s = 0; s < 3; ++s)
          for (std::int64_t l = 0; l < variant.k; ++l) {
            const std::int64_t start =
                variant.has_segments ? b_segments[at(s)] : s * variant.k * variant.b_row;
            sum += a[at(a_rows[at(i)] + a_segments[at(s)] + l * variant.step)] *
                   b[at(start + l * variant.b_row + j)];
          }
        float& target = expected[at(c_rows[at(i)] + j)];
        if (mode > 0) sum += target;
        if (mode > 1)
          sum = std::clamp(sum + bias[at(j)] + addend[at(addend_rows[at(i)] + j)], -50.0f, 300.0f);
        target = sum;
      }
    ASSERT_EQ(c, expected) << rows << " rows, " << columns << " columns, mode " << mode << ", step "
                           << variant.step << ", depth " << variant.k;
  };
  for (const Variant& variant : variants)
    for (const int mode : {0, 1, 2}) {
      for (std::int64_t rows = 1; rows <= kMaxTileRows; ++rows)
        for (std::int64_t columns = 1; columns <= micro_kernel.columns; ++columns)
          check(variant, rows, columns, mode);
      for (const std::int64_t rows : {7, 11, 12, 13, 23})
        for (const std::int64_t columns : {micro_kernel.columns, micro_kernel.columns - 1})
          check(variant, rows, columns, mode);
    }
}

TEST(ConvTiles, Transpose) {
  for (const std::int64_t rows : {1, 5, 16, 17, 40})
    for (const std::int64_t columns : {1, 3, 15, 16, 33}) {
      std::vector<float> source(static_cast<std::size_t>(rows * (columns + 2)));
      std::iota(source.begin(), source.end(), 1.0f);
      std::vector<float> target(static_cast<std::size_t>(columns * (rows + 3)), -1.0f);
      std::vector<float> expected = target;
      transpose_tile()(source.data(), columns + 2, rows, columns, target.data(), rows + 3);
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
          expected[static_cast<std::size_t>(j * (rows + 3) + i)] =
              source[static_cast<std::size_t>(i * (columns + 2) + j)];
      ASSERT_EQ(target, expected) << rows << " by " << columns;
    }
}

}  // namespace
}  // namespace ashlar::cpu

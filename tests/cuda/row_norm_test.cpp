// Norms and softmax over rows: the main shapes compile without spills, and on a GPU, real or
// emulated, rows of every length agree with the reference in every configuration.
#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/row_norm/row_layout.hpp"
#include "engine_compiles.hpp"
#include "support/problem.hpp"
#include "support/test_device.hpp"

namespace ashlar::cuda {
namespace {

struct RowsShape {
  std::int64_t rows, length;
  NormMode mode = NormMode::rms;
  DType dtype = bf16;
};
// Hidden sizes of language models; the first kAlways are always compiled.
constexpr RowsShape kShapes[] = {
    {16384, 4096}, {4096, 16384}, {131072, 128}, {1024, 12288, NormMode::layer},
    {8192, 8192},  {8192, 5120},  {4096, 6144},  {4096, 8192},
    {8192, 4096},  {2048, 4096},  {8192, 128},   {16384, 128},
    {4096, 2048}};
constexpr std::size_t kAlways = 4;

bool is_centred(const RowsShape& shape) { return shape.mode != NormMode::rms; }

// `fused`: with a residual addition in the prologue and an activation in the epilogue.
Graph forward(const RowsShape& shape, bool fused = false) {
  Graph graph;
  const Dims dims = {shape.rows, shape.length}, parameters = {1, shape.length};
  Value x = graph.input("x", dims, shape.dtype);
  if (fused) x = x + graph.input("residual", dims, shape.dtype);
  const Value scale = graph.input("scale", parameters, shape.dtype);
  const Value bias = is_centred(shape) ? graph.input("bias", parameters, shape.dtype) : Value();
  const NormResults r = graph.norm(x, {.mode = shape.mode}, {.scale = scale, .bias = bias});
  graph.output("y", fused ? gelu(r.y) : r.y, {.dtype = shape.dtype});
  if (is_centred(shape)) graph.output("mean", r.mean);
  graph.output("inv_variance", r.inv_variance);
  return graph;
}

// The normalised sum is an output too, and a large epilogue makes the kernel compute-bound (rolled
// loop).
Graph residual_gelu_dropout(const RowsShape& shape) {
  Graph graph;
  const Dims dims = {shape.rows, shape.length}, parameters = {1, shape.length};
  const Value sum =
      graph.input("x", dims, shape.dtype) + graph.input("residual", dims, shape.dtype);
  const Value scale = graph.input("scale", parameters, shape.dtype);
  const Value bias = is_centred(shape) ? graph.input("bias", parameters, shape.dtype) : Value();
  const Value y =
      gelu_tanh(graph.norm(sum, {.mode = shape.mode}, {.scale = scale, .bias = bias}).y);
  const auto dropped = graph.apply(DropoutForward{{.probability = 0.25, .seed = 7 - (1ll << 40)}},
                                   {{DropoutForward::x, y}}, {DropoutForward::y});
  graph.output("y", dropped[DropoutForward::y], {.dtype = shape.dtype});
  graph.output("sum", sum);
  return graph;
}

// With given or recomputed statistics.
Graph backward(const RowsShape& shape, bool given = true) {
  Graph graph;
  const Dims dims = {shape.rows, shape.length};
  const Value x = graph.input("x", dims, shape.dtype), dy = graph.input("dy", dims, shape.dtype);
  const Value scale = graph.input("scale", {1, shape.length}, shape.dtype);
  Value mean, inv_variance;
  if (given) {
    if (is_centred(shape)) mean = graph.input("mean", {shape.rows, 1}, f32);
    inv_variance = graph.input("inv_variance", {shape.rows, 1}, f32);
  }
  const NormGradients r = graph.norm_backward(
      x, dy, {.mode = shape.mode}, {.scale = scale, .mean = mean, .inv_variance = inv_variance});
  graph.output("dx", r.dx, {.dtype = shape.dtype});
  graph.output("dscale", r.dscale);
  if (is_centred(shape)) graph.output("dbias", r.dbias);
  return graph;
}

Graph softmax(const RowsShape& shape, bool log = false) {
  Graph graph;
  const Value x = graph.input("x", {shape.rows, shape.length}, shape.dtype);
  graph.output("y", graph.softmax(x, {.log = log}), {.dtype = shape.dtype});
  return graph;
}

Graph softmax_backward(const RowsShape& shape, bool log = false) {
  Graph graph;
  const Dims dims = {shape.rows, shape.length};
  const Value y = graph.input("y", dims, shape.dtype), dy = graph.input("dy", dims, shape.dtype);
  graph.output("dx", graph.softmax_backward(y, dy, {.log = log}), {.dtype = shape.dtype});
  return graph;
}

// --- compilation

class RowNorm : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
  static std::span<const RowsShape> shapes() {
    return std::span(kShapes).first(is_long() ? std::size(kShapes) : kAlways);
  }
  static void expect_compiles(const Graph& graph, const char* architecture = kHopper) {
    // Layouts are tuned for an H200: other architectures compile the first one only.
    const bool all_configs = is_long() && architecture == std::string_view(kHopper);
    cuda::expect_compiles(row_norm_engine(), graph, {architecture}, all_configs);
  }
};

TEST_F(RowNorm, Forward) {
  for (const RowsShape& shape : shapes()) expect_compiles(forward(shape));
}

TEST_F(RowNorm, Backward) {
  for (const RowsShape& shape : shapes()) expect_compiles(backward(shape));
}

TEST_F(RowNorm, Softmax) {
  for (const std::int64_t length : {1024, 4096, 32768}) expect_compiles(softmax({8192, length}));
  expect_compiles(softmax_backward({8192, 8192}));
}

TEST_F(RowNorm, OtherArchitectures) {
  expect_compiles(forward({4096, 1024, NormMode::layer, f16}, true), "sm_75");
  expect_compiles(backward({4096, 1024, NormMode::layer, f32}, false), "sm_80");
  expect_compiles(softmax({4096, 1000, NormMode::rms, f32}, true), "sm_120");
}

// --- runs

class GpuRowNorm : public testing::Test {
 protected:
  void SetUp() override {
    if (support::test_device().props().kind != DeviceKind::cuda)
      GTEST_SKIP() << "ASHLAR_TEST_DEVICE names no GPU";
  }

  // Every configuration of the engine for the graph's region; other regions as planned.
  static void expect_agrees(const Graph& graph) {
    const DeviceProps& device = support::test_device().props();
    const auto outline = build_plan(graph, device, {}, nullptr, false);
    std::vector<SavedChoice> choices;
    for (const auto& step : outline->steps)
      choices.push_back({std::string(step.choice.engine->id()), step.choice.config.knobs});
    support::Problem problem(graph, 3);
    for (std::size_t i = 0; i < outline->steps.size(); ++i) {
      const Region& region = outline->steps[i].region;
      if (!row_norm_engine().supports(region, device)) continue;
      for (const Config& config : row_norm_engine().configs(region, device)) {
        choices[i] = {"cuda.row_norm", config.knobs};
        for (const bool guard : {false, true}) {
          const auto plan = build_plan(graph, device, {.guard = guard}, &choices, true);
          EXPECT_EQ(problem.run(*plan), "") << config.to_text();
        }
      }
    }
    EXPECT_TRUE(std::any_of(choices.begin(), choices.end(), [](const SavedChoice& choice) {
      return choice.engine == "cuda.row_norm";
    }));
  }

  // Every `stride`-th possible layout that splits rows over at least `slices` CTAs, for a graph of
  // one region.
  static void expect_layouts_agree(const Graph& graph, std::size_t stride, int slices = 1) {
    const DeviceProps& device = support::test_device().props();
    support::Problem problem(graph, 3);
    const auto outline = build_plan(graph, device, {.engine = "cuda.row_norm"}, nullptr, false);
    ASSERT_EQ(outline->steps.size(), 1u);
    auto layouts = all_row_layouts(RowProblem(outline->steps[0].region), device);
    std::erase_if(layouts, [&](const RowLayout& layout) { return layout.slices < slices; });
    EXPECT_FALSE(layouts.empty());
    for (std::size_t k = 0; k < layouts.size(); k += stride) {
      const auto plan = std::const_pointer_cast<PlanData>(
          build_plan(graph, device, {.engine = "cuda.row_norm"}, nullptr, true));
      PlanData::Step& step = plan->steps[0];
      Config config;
      config.knobs = layouts[k].knobs();
      step.kernel = row_norm_engine().build(plan->lowered.graph, step.region, config, device);
      step.scratch_offset = plan->workspace_bytes;
      plan->workspace_bytes += step.kernel->scratch_layout().total_bytes();
      EXPECT_EQ(problem.run(*plan), "") << config.to_text();
    }
  }
};

TEST_F(GpuRowNorm, ForwardOfEveryLength) {
  expect_agrees(forward({5, 1, NormMode::layer, f32}));
  expect_agrees(forward({300, 24, NormMode::layer, bf16}, true));
  expect_agrees(forward({3, 4097, NormMode::rms, f32}));
  if (!is_long()) return;
  expect_agrees(forward({7, 1000, NormMode::rms, f16}));
  expect_agrees(forward({2, 16384, NormMode::layer, bf16}));
  expect_agrees(forward({1, 70001, NormMode::rms, bf16}));  // too long for registers
}

TEST_F(GpuRowNorm, BackwardOfEveryLength) {
  expect_agrees(backward({5, 1, NormMode::layer, f32}));
  expect_agrees(backward({300, 24, NormMode::layer, bf16}));
  if (!is_long()) return;
  expect_agrees(backward({400, 1000, NormMode::rms, f16}, false));
  expect_agrees(backward({150, 4096, NormMode::layer, bf16}));
  expect_agrees(backward({3, 4097, NormMode::layer, f32}, false));
  expect_agrees(backward({1, 40001, NormMode::layer, bf16}));
}

TEST_F(GpuRowNorm, SoftmaxOfEveryLength) {
  expect_agrees(softmax({300, 40, NormMode::rms, bf16}));
  expect_agrees(softmax_backward({9, 1000, NormMode::rms, f32}, true));
  if (!is_long()) return;
  for (const bool log : {false, true}) {
    expect_agrees(softmax({5, 1, NormMode::rms, f32}, log));
    expect_agrees(softmax({2, 33000, NormMode::rms, f16}, log));
    expect_agrees(softmax_backward({2, 1024, NormMode::rms, f32}, log));
  }
}

// More rows than pipeline stages, not a multiple of the tiles, and row ends at which some threads
// are idle.
TEST_F(GpuRowNorm, EveryLayout) {
  const std::size_t step = is_long() ? 3 : 15;
  expect_layouts_agree(forward({1500, 264, NormMode::layer, bf16}), step);
  expect_layouts_agree(backward({1500, 264, NormMode::layer, bf16}), step);
  expect_layouts_agree(residual_gelu_dropout({800, 264, NormMode::layer, bf16}), 3 * step);
  expect_layouts_agree(residual_gelu_dropout({100, 512, NormMode::rms, bf16}), 2 * step);
  if (!is_long()) return;
  expect_layouts_agree(backward({1000, 1000, NormMode::rms, f32}, false), step);
  expect_layouts_agree(forward({400, 2056, NormMode::layer, f16}, true), step);
  expect_layouts_agree(softmax({1000, 520, NormMode::rms, f32}), step);
  expect_layouts_agree(softmax_backward({1000, 520, NormMode::rms, bf16}), step);
}

// The CTAs of a cluster split every row.
TEST_F(GpuRowNorm, RowsOfClusters) {
  if (support::test_device().props().compute_capability / 10 != 9) GTEST_SKIP();
  const std::size_t step = is_long() ? 3 : 15;
  expect_layouts_agree(backward({140, 16384, NormMode::layer, bf16}), step, 2);
  expect_layouts_agree(forward({9, 16384, NormMode::layer, f32}), step, 2);
  if (!is_long()) return;
  expect_layouts_agree(backward({40, 32768, NormMode::layer, bf16}, false), step, 2);
  expect_layouts_agree(backward({5, 65536, NormMode::rms, bf16}), step, 2);
  expect_layouts_agree(softmax({5, 65536, NormMode::rms, bf16}), step, 2);
  expect_layouts_agree(softmax_backward({5, 16400, NormMode::rms, bf16}), step, 2);
}

// Several parameter sets, padded rows, strided elements.
TEST_F(GpuRowNorm, SetsOfParametersAndStrides) {
  Graph graph;
  const Dims dims = {3, 40, 64}, parameters = {3, 1, 64};
  const Layout padded(Dims{40 * 72, 72, 1}), spread(Dims{40 * 160, 160, 2});
  const Value x = graph.input("x", dims, bf16, padded), dy = graph.input("dy", dims, f32, spread);
  const Value scale = graph.input("scale", parameters, f32);
  const NormResults y = graph.norm(x, {.mode = NormMode::ada_layer, .axes = {2}},
                                   {.scale = scale, .bias = graph.input("bias", parameters, f32)});
  graph.output("y", y.y, {.dtype = f16, .layout = padded});
  const NormGradients r =
      graph.norm_backward(x, dy, {.mode = NormMode::ada_layer, .axes = {2}}, {.scale = scale});
  graph.output("dx", r.dx, {.dtype = f32, .layout = spread});
  graph.output("dscale", r.dscale);
  graph.output("dbias", r.dbias);
  expect_agrees(graph);
}

// The one-pass moments: a mean of 1000 standard deviations must not cancel the variance.
TEST_F(GpuRowNorm, LargeMeanKeepsItsVariance) {
  Graph graph;
  const Value x = graph.input("x", {40, 1024}, f32) + graph.constant(1000.0, f32, 2);
  const NormResults r = graph.norm(x, {.mode = NormMode::layer});
  graph.output("y", r.y);
  graph.output("mean", r.mean);
  graph.output("inv_variance", r.inv_variance);
  expect_agrees(graph);
}

TEST_F(GpuRowNorm, DoublePrecision) {
  expect_agrees(forward({20, 300, NormMode::layer, f64}, true));
  if (is_long()) expect_agrees(softmax({20, 300, NormMode::rms, f64}));
}

// Values whose sums are exact in any order: all pointer alignments give identical bits.
TEST_F(GpuRowNorm, PointersThatAreNotAligned) {
  const RowsShape shape{20, 64, NormMode::rms, f32};
  Graph graph;
  const Dims dims = {shape.rows, shape.length};
  const Value x = graph.input("x", dims, f32), dy = graph.input("dy", dims, f32);
  const Value inv_variance = graph.input("inv_variance", {shape.rows, 1}, f32);
  const NormGradients r = graph.norm_backward(
      x, dy, {.mode = NormMode::rms},
      {.scale = graph.input("scale", {1, shape.length}, f32), .inv_variance = inv_variance});
  graph.output("dx", r.dx);
  graph.output("dscale", r.dscale);
  const Device& device = support::test_device();
  const Plan plan = compile(graph, device);
  const std::size_t elements = static_cast<std::size_t>(shape.rows * shape.length);
  std::vector<float> ones(elements);
  for (std::size_t i = 0; i < elements; ++i) ones[i] = (i * 7 / 3) % 2 == 0 ? 1.0f : -1.0f;
  std::vector<std::vector<float>> results;
  for (const std::size_t offset : {std::size_t{0}, sizeof(float)}) {
    Binding binding = plan.binding();
    std::vector<Memory> memory;
    for (const char* name : {"x", "dy", "scale", "inv_variance", "dx", "dscale"}) {
      memory.emplace_back(device, static_cast<std::int64_t>(elements * sizeof(float) + 16));
      std::vector<float> values(elements + 4, 0.0f);
      const bool is_one = std::string(name) == "inv_variance";
      for (std::size_t i = 0; i < elements; ++i)
        values[i + offset / sizeof(float)] = is_one ? 1.0f : ones[(i * 5 + name[0]) % elements];
      memory.back().upload(values.data(), memory.back().bytes());
      binding.set(name, static_cast<std::byte*>(memory.back().data()) + offset);
    }
    Memory workspace(device, plan.workspace_size());
    plan.run(binding, workspace.data());
    device.synchronize();
    for (const std::size_t output : {4u, 5u}) {
      std::vector<float> values(elements + 4);
      memory[output].download(values.data(), memory[output].bytes());
      const std::size_t count = output == 4 ? elements : static_cast<std::size_t>(shape.length);
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(offset / sizeof(float));
      results.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
    }
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
}

}  // namespace
}  // namespace ashlar::cuda

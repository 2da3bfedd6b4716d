// Standalone reductions: kernels of the main shapes compile without spills, and on a GPU, real or
// emulated, every tiling agrees with the reference.
#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gpu_check.hpp"

namespace ashlar::cuda {
namespace {

constexpr ReductionMode kReductionModes[] = {
    ReductionMode::add,   ReductionMode::mul,   ReductionMode::min,
    ReductionMode::max,   ReductionMode::amax,  ReductionMode::avg,
    ReductionMode::norm1, ReductionMode::norm2, ReductionMode::mul_no_zeros};

struct ReducedShape {
  Dims dims, axes;
  DType dtype = bf16;
  Layout layout = row_major;
  ReductionMode mode = ReductionMode::add;
};

Graph reduction(const ReducedShape& shape) {
  Graph graph;
  const Value x = graph.input("x", shape.dims, shape.dtype, shape.layout);
  graph.output("y", graph.reduce(x, shape.mode, shape.axes), {.dtype = f32});
  return graph;
}

// The bias gradient behind a relu, accumulated onto an existing one.
Graph fused(const ReducedShape& shape) {
  Graph graph;
  const Value dy = graph.input("dy", shape.dims, shape.dtype, shape.layout);
  const Value y = graph.input("y", shape.dims, shape.dtype, shape.layout);
  Dims kept = shape.dims;
  for (const std::int64_t axis : shape.axes) kept[static_cast<int>(axis)] = 1;
  const Value before = graph.input("before", kept, f32);
  graph.output("db", graph.reduce(relu(y) * dy, shape.mode, shape.axes, {.dtype = f32}) + before);
  return graph;
}

Graph statistics(const Dims& dims, const Layout& layout) {
  Graph graph;
  const Value x = graph.input("x", dims, bf16, layout);
  const auto out = graph.apply(GenStats{}, {{GenStats::x, x}}, {GenStats::sum, GenStats::sq_sum},
                               {.dtype = f32});
  graph.output("sum", out[GenStats::sum]);
  graph.output("sq_sum", out[GenStats::sq_sum]);
  return graph;
}

// --- compilation

class Reductions : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

const Dims kReducedMatrix = {8192, 4096}, kReducedImages = {64, 256, 56, 56};

TEST_F(Reductions, Compile) {
  const CudaEngine& engine = reduction_engine();
  for (const Dims& axes : {Dims{0}, Dims{1}, Dims{0, 1}})
    expect_compiles(engine, reduction({kReducedMatrix, axes}), {kHopper}, is_long());
  for (const Layout& layout : {channels_last, row_major}) {
    const ReducedShape images = {kReducedImages, {0, 2, 3}, bf16, layout};
    expect_compiles(engine, reduction(images), {kHopper}, is_long());
    expect_compiles(engine, fused(images), {kHopper}, is_long());
    expect_compiles(engine, statistics(kReducedImages, layout), {kHopper});
  }
  for (const DType dtype : {f32, f64, e4m3})
    expect_compiles(engine, reduction({kReducedMatrix, {1}, dtype}), {kHopper}, is_long());
}

TEST_F(Reductions, OtherArchitectures) {
  for (const Dims& axes : {Dims{0}, Dims{1}})
    expect_compiles(reduction_engine(),
                    reduction({kReducedMatrix, axes, f16, row_major, ReductionMode::amax}),
                    {"sm_75", "sm_80", "sm_120"});
}

Support support_of(const Graph& graph) {
  const LoweredGraph lowered = lower(graph, true);
  const std::vector<FusionLimits> limits(lowered.graph.nodes().size());
  return reduction_engine().supports(partition(lowered, limits).at(0),
                                     Device::named("h200").props());
}

TEST(ReductionSupport, Refusals) {
  Graph position;
  const Value x = position.input("x", {8, 16}, f32);
  const auto out = position.apply(Reduction{ReductionMode::max, {1}}, {{Reduction::x, x}},
                                  {Reduction::y, Reduction::index});
  position.output("y", out[Reduction::y]);
  position.output("index", out[Reduction::index]);
  EXPECT_EQ(support_of(position).reason(), "the index output (arg min / arg max) is not supported");

  Graph coordinates;
  const Value matrix = coordinates.input("x", {8, 16}, f32);
  const Value columns = coordinates.pointwise(PointwiseMode::gen_index, std::array{matrix},
                                              {.axis = 1}, {.dtype = f32});
  coordinates.output("y", coordinates.reduce(matrix * columns, ReductionMode::add, {1}));
  EXPECT_EQ(support_of(coordinates).reason(), "a fused operation reads coordinates");

  Graph other;
  other.output("y", relu(other.input("x", {8, 16}, f32)));
  EXPECT_TRUE(support_of(other).is_other_operation());
  EXPECT_TRUE(bool(support_of(reduction({{8, 16}, {1}}))));
}

TEST(ReductionSupport, FirstChoice) {
  for (const Dims& axes : {Dims{0}, Dims{1}, Dims{0, 1}}) {
    const auto outline = build_plan(reduction({kReducedMatrix, axes}),
                                    Device::named("h200").props(), {}, nullptr, false);
    ASSERT_EQ(outline->steps.size(), 1u);
    EXPECT_EQ(outline->steps[0].choice.engine->id(), "cuda.reduction");
  }
}

// --- runs

class GpuReduction : public GpuTest {
 protected:
  static void expect_agrees(const Graph& graph, bool all_configs = is_long(),
                            support::Fill fill = support::Fill::plain) {
    cuda::expect_agrees(reduction_engine(), graph, all_configs, 3, fill);
  }
};

TEST_F(GpuReduction, Modes) {
  for (const ReductionMode mode : kReductionModes) {
    expect_agrees(reduction({{40, 24}, {1}, f32, row_major, mode}));
    expect_agrees(reduction({{40, 24}, {0}, f32, row_major, mode}));
  }
}

// Rows and columns with partial packets, of one packet, and split over CTAs.
TEST_F(GpuReduction, Matrices) {
  for (const Dims& axes : {Dims{0}, Dims{1}, Dims{0, 1}}) {
    for (const Dims& dims : {Dims{3, 1}, Dims{300, 8}, Dims{33, 1001}})
      expect_agrees(reduction({dims, axes, f32}));
    for (const DType dtype : {f16, bf16}) expect_agrees(reduction({{9, 1000}, axes, dtype}));
  }
  expect_agrees(reduction({{2, 40000}, {1}}), true);
  expect_agrees(reduction({{5000, 16}, {0}}), true);
}

TEST_F(GpuReduction, WholeTensors) {
  for (const ReductionMode mode : {ReductionMode::add, ReductionMode::amax, ReductionMode::norm2})
    expect_agrees(reduction({{37, 31, 41}, {}, bf16, row_major, mode}));
}

TEST_F(GpuReduction, Channels) {
  for (const Layout& layout : {channels_last, row_major}) {
    expect_agrees(reduction({{6, 16, 24, 20}, {0, 2, 3}, bf16, layout}), true);
    expect_agrees(reduction({{3, 5, 7, 9}, {0, 2, 3}, f32, layout}));
    expect_agrees(fused({{6, 24, 10, 12}, {0, 2, 3}, bf16, layout}));
    expect_agrees(statistics({4, 24, 11, 16}, layout));
    expect_agrees(statistics({10, 2, 64, 64}, layout), true);
  }
}

// Alternating kept and reduced axes; broadcast operands.
TEST_F(GpuReduction, ManyAxes) {
  for (const Dims& axes : {Dims{0, 2}, Dims{1, 3}, Dims{1}, Dims{2}, Dims{0, 1, 3}})
    expect_agrees(reduction({{5, 6, 7, 8}, axes}));
  Graph graph;
  const Value x = graph.input("x", {6, 1, 40}, f32), y = graph.input("y", {1, 9, 40}, f32);
  graph.output("z", graph.reduce(x * y, ReductionMode::add, {0}));
  expect_agrees(graph);
}

TEST_F(GpuReduction, SpecialValues) {
  for (const ReductionMode mode : kReductionModes)
    for (const Dims& axes : {Dims{0}, Dims{1}})
      expect_agrees(reduction({{40, 24}, axes, f32, row_major, mode}), is_long(),
                    support::Fill::special);
}

TEST_F(GpuReduction, NoTerms) {
  for (const ReductionMode mode :
       {ReductionMode::avg, ReductionMode::min, ReductionMode::amax, ReductionMode::mul}) {
    expect_agrees(reduction({{0, 12}, {0}, f32, row_major, mode}));
    expect_agrees(reduction({{12, 0}, {1}, f32, row_major, mode}));
  }
  expect_agrees(reduction({{0, 12}, {1}}));
}

// Stored as bits, also where several threads write to one byte.
TEST_F(GpuReduction, Booleans) {
  for (const ReductionMode mode :
       {ReductionMode::add, ReductionMode::avg, ReductionMode::min, ReductionMode::max}) {
    for (const Dims& axes : {Dims{0}, Dims{1}, Dims{0, 1}})
      expect_agrees(reduction({{35, 100}, axes, boolean, row_major, mode}));
    expect_agrees(reduction({{0, 12}, {0}, boolean, row_major, mode}));
  }
  Graph graph;
  const Value x = graph.input("x", {20, 33}, f32);
  const Value above = pointwise(PointwiseMode::cmp_gt, x, graph.constant(0.9, f32, 2));
  graph.output("y", graph.reduce(above, ReductionMode::max, {1}));
  expect_agrees(graph);
}

TEST_F(GpuReduction, IntegersAndDoubles) {
  for (const DType dtype : {i32, i8, f64})
    for (const ReductionMode mode : {ReductionMode::add, ReductionMode::avg, ReductionMode::max})
      for (const Dims& axes : {Dims{0}, Dims{1}}) {
        Graph graph;
        const Value x = graph.input("x", {30, 48}, dtype);
        graph.output("y", graph.reduce(x, mode, axes, {.dtype = dtype == i8 ? i32 : dtype}));
        expect_agrees(graph);
      }
}

TEST_F(GpuReduction, UnalignedFallback) {
  for (const Dims& axes : {Dims{0}, Dims{1}, Dims{0, 1}}) {
    Graph graph;
    const Value x = graph.input("x", {70, 200}, bf16);
    graph.output("y", graph.reduce(graph.slice(x, {3, 8}, {70, 168}), ReductionMode::add, axes));
    for (const std::int64_t offset : {0, 2, 16})
      cuda::expect_agrees(graph, "cuda.reduction", {.offset = offset});
    cuda::expect_agrees(reduction({{3, 9000}, axes}), "cuda.reduction", {.offset = 2});
  }
}

// Two launches, with different workspace contents in every run.
TEST_F(GpuReduction, SameBits) {
  for (const Dims& axes : {Dims{0}, Dims{1}, Dims{0, 1}})
    cuda::expect_agrees(reduction({{4100, 16}, axes, f32}), "cuda.reduction");
}

}  // namespace
}  // namespace ashlar::cuda

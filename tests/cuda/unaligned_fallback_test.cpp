// Addresses that are not multiples of 16 bytes: which fallback engines choose, and that it is
// correct.
#include "cuda/engines/unaligned_fallback.hpp"
#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_compiles.hpp"
#include "gemm_graphs.hpp"
#include "gpu_check.hpp"

namespace ashlar::cuda {
namespace {

// A graph of one region on an H200.
struct OnHopper {
  explicit OnHopper(const Graph& graph)
      : plan(build_plan(graph, known_gpu(kHopper), {}, nullptr, false)) {
    EXPECT_EQ(plan->steps.size(), 1u);
  }
  const Region& region() const { return plan->steps.at(0).region; }
  const Config& config() const { return plan->steps.at(0).choice.config; }
  std::string engine() const { return std::string(plan->steps.at(0).choice.engine->id()); }
  std::shared_ptr<const PlanData> plan;
};

// The kernel function of the unaligned fallback of a region.
std::string function_instead(const Graph& graph, const CudaEngine& engine) {
  const OnHopper planned(graph);
  EXPECT_EQ(planned.engine(), engine.id());
  const KernelDesign design = engine.design(planned.plan->lowered.graph, planned.region(),
                                            planned.config(), known_gpu(kHopper));
  return design.unaligned ? design.unaligned().launches.at(0).function : "none";
}

TEST(UnalignedFallback, GemmsAndConvolutionsStayOnTensorCores) {
  for (const DType dtype : {bf16, f32})
    EXPECT_EQ(
        function_instead(MatrixGraph{.dtype = dtype, .fused = true}.graph(), gemm_sm90_engine()),
        "gemm_sm80");
  for (const ConvDirection direction : kConvDirections) {
    const bool is_filter = direction == ConvDirection::filter;
    EXPECT_EQ(function_instead(ConvGraph{.direction = direction}.graph(),
                               is_filter ? conv_wgrad_sm90_engine() : conv_sm90_engine()),
              "gemm_sm80");
  }
}

// The fallback keeps all promises of the plan's numerics notes.
TEST(UnalignedFallback, KeepsWhatWasPromised) {
  const Graph graph = MatrixGraph{.dtype = f32, .result = f32}.graph();
  const OnHopper planned(graph);
  Config config = planned.config();
  ASSERT_TRUE(config.notes.tf32);
  const auto products = [&] {
    const KernelDesign design = unaligned_fallback(planned.plan->lowered.graph, planned.region(),
                                                   config, known_gpu(kHopper))();
    const std::string& text = design.launches.at(0).source.text;
    const std::size_t at = text.find("kProducts = ");
    return at == std::string::npos ? std::string("none") : text.substr(at + 12, 1);
  };
  EXPECT_EQ(products(), "1");
  config.notes.tf32 = false;
  EXPECT_NE(products(), "1");
}

Graph gemm_of_slice(std::int64_t first) {
  Graph graph;
  const Value x = graph.input("x", {512, 1024 + 8}, bf16), w = graph.input("w", {1024, 512}, bf16);
  graph.output("y", graph.matmul(graph.slice(x, {0, first}, {512, first + 1024}), w));
  return graph;
}

// Misalignment that is known at compile time is resolved, and explained, then.
TEST(UnalignedFallback, UnalignedSlices) {
  EXPECT_EQ(OnHopper(gemm_of_slice(8)).engine(), "cuda.gemm_sm90");
  const OnHopper planned(gemm_of_slice(1));
  EXPECT_EQ(planned.engine(), "cuda.gemm_sm80");
  EXPECT_EQ(gemm_sm90_engine().supports(planned.region(), known_gpu(kHopper)).reason(),
            "a slice is not aligned to 16 bytes");
}

// Alignment that a launch requires of its argument words: plain numbers require none.
TEST(UnalignedFallback, WhatKernelsWant) {
  const std::vector<Location> locations = {{Location::Kind::bound, 0}};
  const auto takes = [&](std::uintptr_t address, const Arguments& arguments) {
    void* const bound[] = {reinterpret_cast<void*>(address)};
    const KernelContext context(locations, bound, nullptr, nullptr);
    Arguments::Words words;
    return ArgumentFiller(arguments).fill(context, {}, words);
  };
  const View view{.tensor = 0, .dtype = bf16, .dims = {64}, .strides = {1}};
  Arguments vectors, pairs, elements, behind;
  vectors.pointer("x", view);
  pairs.pointer("x", view, 4);
  elements.pointer("x", view, kAnyAddress);
  View later = view;
  later.offset = 2;
  behind.pointer("x", later);
  EXPECT_TRUE(takes(0x1000, vectors));
  EXPECT_FALSE(takes(0x1008, vectors));
  EXPECT_TRUE(takes(0x1004, pairs));
  EXPECT_FALSE(takes(0x1002, pairs));
  EXPECT_TRUE(takes(0x1002, elements));
  EXPECT_FALSE(takes(0x1000, behind));
  EXPECT_TRUE(takes(0x100c, behind));
}

using GpuUnalignedFallback = GpuTest;

TEST_F(GpuUnalignedFallback, Slices) {
  for (const std::int64_t first : {1, 2}) {
    Graph graph;
    const Value x = graph.input("x", {70, 97}, bf16), w = graph.input("w", {90, 40}, bf16);
    graph.output("y", graph.matmul(graph.slice(x, {0, first}, {70, first + 90}), w));
    expect_agrees(graph, "cuda.gemm_sm80");
    expect_agrees(graph, "cuda.gemm_sm80", {.offset = 2});
  }
}

Graph small_convolution(ConvDirection direction, const Layout& layout) {
  return ConvGraph{.direction = direction,
                   .images = 2,
                   .channels = 64,
                   .filters = 64,
                   .extent = {6, 5},
                   .layout = layout}
      .graph();
}

TEST_F(GpuUnalignedFallback, FilterGradients) {
  for (const Layout& layout : {channels_last, row_major})
    expect_agrees(small_convolution(ConvDirection::filter, layout), "cuda.conv_wgrad_sm90",
                  {.offset = 4});
}

// The repacking launch accepts any address.
TEST_F(GpuUnalignedFallback, RepackedPixels) {
  for (const ConvDirection direction : {ConvDirection::forward, ConvDirection::data})
    expect_agrees(small_convolution(direction, row_major), "cuda.conv_sm90", {.offset = 4});
}

}  // namespace
}  // namespace ashlar::cuda

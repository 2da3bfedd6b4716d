// Cross-entropy: kernels compile without spills, and on a GPU, real or emulated, agree with the
// reference.
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gpu_check.hpp"

namespace ashlar::cuda::cross_entropy {
namespace {

struct Loss {
  Dims x;
  DType dtype = bf16;
  bool mean = true;
  double smoothing = 0.0;
};

Graph forward_of(const Loss& loss) {
  using Op = CrossEntropyForward;
  Op op;
  op.mean = loss.mean;
  op.label_smoothing = loss.smoothing;
  Dims rows = loss.x;
  rows[rows.rank() - 1] = 1;
  Graph graph;
  const auto out = graph.apply(op,
                               {{Op::x, graph.input("x", loss.x, loss.dtype)},
                                {Op::target, graph.input("target", rows, i64)}},
                               {Op::loss, Op::stats});
  graph.output("loss", out[Op::loss]);
  graph.output("stats", out[Op::stats]);
  return graph;
}

Graph backward_of(const Loss& loss) {
  using Op = CrossEntropyBackward;
  Op op;
  op.mean = loss.mean;
  op.label_smoothing = loss.smoothing;
  Dims rows = loss.x;
  rows[rows.rank() - 1] = 1;
  const Dims of_loss = loss.mean ? Dims::filled(rows.rank(), 1) : rows;
  const DType wide = loss.dtype == f64 ? f64 : f32;
  Graph graph;
  graph.output("dx", graph.apply(op,
                                 {{Op::x, graph.input("x", loss.x, loss.dtype)},
                                  {Op::target, graph.input("target", rows, i64)},
                                  {Op::stats, graph.input("stats", rows, wide)},
                                  {Op::dloss, graph.input("dloss", of_loss, wide)}},
                                 {Op::dx}));
  return graph;
}

TEST(CrossEntropyEngine, Compiles) {
  if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  for (const DType dtype : {bf16, f32, f64})
    for (const std::int64_t classes : {32768, 50257}) {
      const Loss loss{.x = {4096, classes}, .dtype = dtype, .smoothing = 0.1};
      expect_compiles(cross_entropy_engine(), forward_of(loss), {kHopper}, is_long());
      expect_compiles(cross_entropy_engine(), backward_of(loss), {kHopper}, is_long());
    }
}

TEST(CrossEntropyEngine, IsTheFirstChoice) {
  for (const Graph& graph : {forward_of({{4096, 32768}}), backward_of({{4096, 50257}})}) {
    const auto outline = build_plan(graph, Device::named("h200").props(), {}, nullptr, false);
    ASSERT_EQ(outline->steps.size(), 1u);
    EXPECT_EQ(outline->steps[0].choice.engine->id(), "cuda.cross_entropy");
  }
}

class GpuCrossEntropy : public GpuTest {
 protected:
  static void expect_agrees(const Loss& loss, support::Fill fill = support::Fill::plain) {
    cuda::expect_agrees(cross_entropy_engine(), forward_of(loss), true, 3, fill);
    cuda::expect_agrees(cross_entropy_engine(), backward_of(loss), true, 3, fill);
  }
};

// Rows of several passes of the CTA, of one vector, of an odd length, and shorter than a warp.
TEST_F(GpuCrossEntropy, Rows) {
  for (const DType dtype : {bf16, f32, f64})
    for (const Dims& x : {Dims{3, 20000}, Dims{5, 8}, Dims{4, 9001}, Dims{2, 3, 7}})
      expect_agrees({.x = x, .dtype = dtype, .smoothing = 0.1});
}

TEST_F(GpuCrossEntropy, WithoutMean) { expect_agrees({.x = {6, 4096}, .mean = false}); }

TEST_F(GpuCrossEntropy, SpecialValues) {
  expect_agrees({.x = {60, 40}, .dtype = f32, .mean = false}, support::Fill::special);
}

TEST_F(GpuCrossEntropy, UnalignedFallback) {
  for (const Graph& graph : {forward_of({{3, 4096}}), backward_of({{3, 4096}})})
    for (const std::int64_t offset : {0, 8})
      cuda::expect_agrees(graph, "cuda.cross_entropy", {.offset = offset});
}

}  // namespace
}  // namespace ashlar::cuda::cross_entropy

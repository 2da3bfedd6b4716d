// im2col and tensor_transform on shapes that the generic engine tests do not cover.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

TEST(Im2Col, FeedsAMatmul) {
  // The columns times the filter are the convolution.
  const Dims x_dims = {2, 6, 17, 19};
  for (const Layout& layout : {row_major, channels_last}) {
    Graph graph;
    const Value x = graph.input("x", x_dims, f32, layout);
    const Value columns = graph.apply(Im2Col{.window = {3, 3}, .padding = {1, 1}, .stride = {2, 1}},
                                      {{Im2Col::x, x}}, {Im2Col::y});
    const Value w = graph.input("w", {1, 8, 54}, f32);
    graph.output("columns", columns);
    graph.output("product", graph.matmul(w, columns));
    PlanCheck plan(std::move(graph));
    plan.expect_agrees("cpu.im2col");

    Graph direct;
    const Value filter = direct.input("w", {8, 6, 3, 3}, f32);
    direct.output("y", direct.conv(direct.input("x", x_dims, f32, layout), filter,
                                   {.padding = {1, 1}, .stride = {2, 1}}));
    PlanCheck convolution(std::move(direct));
    convolution.set("x", plan.get("x"));
    convolution.set("w", plan.get("w"));
    convolution.expect_agrees("cpu.");
    const std::vector<double> product = plan.get("product"), y = convolution.get("y");
    ASSERT_EQ(product.size(), y.size());
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(product[i], y[i], 1e-5) << i;
  }
}

TEST(Im2Col, KeepsEveryBitOfLongIntegers) {
  Graph graph;
  const Value x = graph.input("x", {1, 1, 4}, i64);
  graph.output("y",
               graph.apply(Im2Col{.window = {2}, .padding = {1}}, {{Im2Col::x, x}}, {Im2Col::y}));
  const Plan plan = compile(graph, Device::cpu());
  const std::int64_t big = (std::int64_t{1} << 62) + 1;
  std::int64_t from[4] = {big, -big, 3, big + 6}, to[10] = {};
  Binding binding = plan.binding();
  binding.set("x", from);
  binding.set("y", to);
  plan.run(binding, nullptr);
  const std::int64_t expected[10] = {0, big, -big, 3, big + 6, big, -big, 3, big + 6, 0};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(to[i], expected[i]) << i;
}

TEST(TensorTransform, LayoutsBothWays) {
  for (const Layout& from : {row_major, channels_last})
    for (const Layout& to : {row_major, channels_last})
      for (DType dtype : {f32, f16, i8}) {
        Graph graph;
        const TensorTransform fold{
            .pad_before = {0, 1, 1, 0}, .pad_after = {0, 0, 0, 1}, .fold = {2, 2}};
        TensorTransform back = fold;
        back.unfold = true;
        const Value x = graph.input("x", {3, 35, 21, 23}, dtype, from);
        const Value y =
            graph.apply(fold, {{TensorTransform::x, x}}, {TensorTransform::y}, {.layout = to});
        graph.output("y", y);
        graph.output("back", graph.apply(back, {{TensorTransform::x, y}}, {TensorTransform::y},
                                         {.layout = from}));
        PlanCheck plan(std::move(graph));
        plan.expect_agrees("cpu.tensor_transform");
        EXPECT_EQ(plan.get("back"), plan.get("x"));
      }
}

}  // namespace
}  // namespace ashlar::cpu

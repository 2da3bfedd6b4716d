// Paged cache loads and band matrices.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

TEST(CacheCopy, LongPagesBothWays) {
  for (const bool transposed : {false, true})
    for (const Layout& layout : {row_major, Layout(Dims{2 * 2500 * 3, 2500 * 3, 1, 2500})})
      for (const DType dtype : {f32, bf16, boolean}) {
        using Op = PagedCacheLoad;
        Graph g;
        OutputSpec spec;
        spec.dims = transposed ? Dims{2, 2, 3, 6000} : Dims{2, 2, 6000, 3};
        g.output("y",
                 g.apply(Op{.transposed = transposed},
                         {{Op::container, g.input("container", {4, 2, 2500, 3}, dtype, layout)},
                          {Op::page_table, g.input("table", {2, 1, 3, 1}, i64)},
                          {Op::sequence, g.input("lengths", {2, 1, 1, 1}, i32)}},
                         {Op::y}, spec));
        PlanCheck plan(std::move(g));
        plan.set("table", {3, 0, 9e18, 1, -1, 2});
        plan.set("lengths", {5900, 2501});
        plan.expect_agrees("cpu.cache_copy");
      }
}

TEST(CacheCopy, WideBands) {
  const auto check = [](auto op, const Dims& from, const Dims& to) {
    using Op = decltype(op);
    Graph g;
    op.lower_bandwidth = 2100;
    op.upper_bandwidth = 900;
    op.pad_value = -1.0;
    OutputSpec spec;
    spec.dims = to;
    g.output("y", g.apply(op,
                          {{Op::x, g.input("x", from, f16)},
                           {Op::kv_token_offset, g.input("shift", {3, 1, 1}, i64)}},
                          {Op::y}, spec));
    PlanCheck plan(std::move(g));
    plan.set("shift", {0, -7, 9e18});
    plan.expect_agrees("cpu.cache_copy");
    plan.set("shift", {2500, 40, -9e18});
    plan.expect_agrees("cpu.cache_copy");
  };
  check(ExpandBandMatrix{}, {3, 20, 3001}, {3, 20, 4500});
  check(ContractBandMatrix{}, {3, 20, 4500}, {3, 20, 3001});
}

}  // namespace
}  // namespace ashlar::cpu

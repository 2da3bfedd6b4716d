// Scans and top_k: wide ranges, ascending lines, ties, and results on several thread counts.
#ifdef _OPENMP
#include <omp.h>
#endif

#include <cmath>

#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

PlanCheck scan_check(const Scan& op, const Dims& dims, DType dtype, double low, double high) {
  Graph graph;
  const Value x = graph.input("x", dims, dtype);
  graph.output("y", graph.apply(op, {{Scan::x, x}}, {Scan::y}));
  PlanCheck plan(std::move(graph));
  plan.fill("x", low, high);
  return plan;
}

// Neighbours differ by more than one: blocks are halved down to single elements.
TEST(CpuScan, LogSumExpOfWideRanges) {
  for (const DType dtype : kFloats)
    for (const bool reverse : {false, true}) {
      const Scan op{.mode = ScanMode::logsumexp, .reverse = reverse};
      scan_check(op, {3, 5000}, dtype, -300.0, 300.0).expect_agrees("cpu.scan");
      Scan down = op;
      down.axis = 0;
      scan_check(down, {500, 33}, dtype, -300.0, 300.0).expect_agrees("cpu.scan");
    }
}

TEST(CpuScan, ResultsDoNotDependOnTheThreadCount) {
#ifdef _OPENMP
  const int usual = omp_get_max_threads();
  for (const ScanMode mode : {ScanMode::add, ScanMode::mul, ScanMode::logsumexp})
    for (const auto& [dims, axis] : {std::pair{Dims{2, 200000}, 1}, std::pair{Dims{3000, 40}, 0}}) {
      std::vector<double> expected;
      for (const int threads : {1, 2, 3}) {
        omp_set_num_threads(threads);
        PlanCheck plan = scan_check({.mode = mode, .axis = axis}, dims, f32, 0.5, 1.5);
        plan.expect_agrees("cpu.scan");
        if (threads == 1) expected = plan.get("y");
        EXPECT_EQ(plan.get("y"), expected) << threads << " threads, axis " << axis;
      }
    }
  omp_set_num_threads(usual);
#else
  GTEST_SKIP() << "built without OpenMP";
#endif
}

void check_top_k(const std::vector<double>& x, std::int64_t k, bool largest, DType dtype) {
  SCOPED_TRACE(testing::Message() << k << " of " << x.size() << (largest ? ", largest " : " ")
                                  << to_string(dtype));
  Graph graph;
  const TopK op{.k = k, .largest = largest};
  const auto r =
      graph.apply(op, {{TopK::x, graph.input("x", {static_cast<std::int64_t>(x.size())}, dtype)}},
                  {TopK::values, TopK::index});
  graph.output("values", r[TopK::values]);
  graph.output("index", r[TopK::index]);
  PlanCheck plan(std::move(graph));
  plan.set("x", x);
  plan.expect_agrees("cpu.top_k");
}

// Every element is a candidate, or none behind the first k.
TEST(CpuTopK, OrderedLinesAndTies) {
  std::vector<double> ascending, steps, with_nan;
  for (int i = 0; i < 40000; ++i) {
    ascending.push_back(i);
    steps.push_back(i / 100 % 7);
    with_nan.push_back(i % 977 == 5 ? std::nan("") : (i % 3 == 0 ? -0.0 : 0.0));
  }
  for (const bool largest : {false, true})
    for (const DType dtype : {f32, f64})
      for (const std::int64_t k : {1, 50, 700, 21000}) {
        check_top_k(ascending, k, largest, dtype);
        check_top_k(steps, k, largest, dtype);
        check_top_k(with_nan, k, largest, dtype);
      }
}

}  // namespace
}  // namespace ashlar::cpu

// The cost model against recorded timings, on a machine without a GPU: what a plan takes first is
// nearly the fastest.
#include <gtest/gtest.h>

#include <cmath>

#include "bench/memory.hpp"
#include "bench/recorded_configs.hpp"

namespace ashlar::bench_test {
namespace {

constexpr double kMostLoss = 1.08;  // geometric mean

TEST(Ranking, FirstChoicesAreNearlyTheFastest) {
  const Device gpu = Device::named("h200");
  double logarithms = 0, worst = 1;
  int count = 0, unrecorded = 0;
  std::string worst_name;
  for (const bench::RecordedCase& one :
       bench::recorded_cases(ASHLAR_SOURCE_DIR "/bench/results/h200")) {
    SCOPED_TRACE(one.suite + " " + one.problem.name);
    const bench::Problem& problem = one.problem.problem;
    for (const RegionTrials& region :
         candidates(problem.build(), gpu, bench::plan_options(problem, {}))) {
      if (region.region != one.region) continue;
      const Trial* first = nullptr;
      for (const Trial& trial : region.trials) {
        first = one.find(trial);
        if (first) break;
        ++unrecorded;
      }
      if (!first) continue;
      const double loss = *first->measured / one.fastest();
      ++count;
      logarithms += std::log(loss);
      if (loss > worst) {
        worst = loss;
        worst_name = one.suite + " " + one.problem.name;
      }
    }
  }
  if (count == 0) GTEST_SKIP() << "no timings of this version's configurations are recorded";
  const double mean = std::exp(logarithms / count);
  std::printf(
      "summary: cost model: first choices take %.3f times as long as the fastest (%d cases, worst "
      "%.2f: %s); %d before them not recorded\n",
      mean, count, worst, worst_name.c_str(), unrecorded);
  EXPECT_LE(mean, kMostLoss);
}

}  // namespace
}  // namespace ashlar::bench_test

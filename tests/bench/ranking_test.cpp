// Judges the cost model by recorded timings, without a GPU: a plan's first choice is nearly the
// fastest configuration. ASHLAR_WRITE_RANKING=1 writes the ranking to bench/results/h200.
#include <gtest/gtest.h>

#include <ashlar/inspect.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/memory.hpp"
#include "bench/recorded_configs.hpp"

namespace ashlar::bench_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMaxLoss = 1.08;  // geometric mean
const std::string kFolder = ASHLAR_SOURCE_DIR "/bench/results/h200";

// First choice / fastest, over several cases.
struct Losses {
  double logarithms = 0, worst = 0;
  int count = 0;
  std::string worst_name;

  void add(double loss, const std::string& name) {
    ++count;
    logarithms += std::log(loss);
    if (loss <= worst) return;
    worst = loss;
    worst_name = name;
  }
  double mean() const { return std::exp(logarithms / count); }
};

double rounded(double value) { return std::round(value * 1000) / 1000; }

TEST(Ranking, FirstChoicesAreNearlyTheFastest) {
  const Device gpu = Device::named("h200");
  Losses all;
  int untimed = 0;
  std::map<std::string, Losses> by_suite;
  for (const bench::RecordedCase& one : bench::recorded_cases(kFolder)) {
    const bench::Problem& problem = one.problem.problem;
    const Inspection plan =
        inspect(problem.build(), gpu, bench::plan_options(problem, {}), {.candidates = true});
    for (const RegionInspection& region : plan.regions) {
      if (region.name != one.region) continue;
      // Configurations newer than the records are skipped and counted.
      if (!region.candidates.empty() && !one.find(region.candidates.front())) ++untimed;
      for (const Trial& trial : region.candidates)
        if (const Trial* timed = one.find(trial)) {
          const double loss = *timed->measured / one.fastest();
          all.add(loss, one.suite + " " + one.problem.name);
          by_suite[one.suite].add(loss, one.problem.name);
          break;
        }
    }
  }
  if (all.count == 0) GTEST_SKIP() << "no timings of this version's configurations are recorded";
  std::printf(
      "summary: cost model: first choices take %.3f times as long as the fastest (%d cases, worst "
      "%.2f: %s); %d first choices were not timed\n",
      all.mean(), all.count, all.worst, all.worst_name.c_str(), untimed);
  EXPECT_LE(all.mean(), kMaxLoss);

  if (!std::getenv("ASHLAR_WRITE_RANKING")) return;
  Json json = {{"first_over_fastest", rounded(all.mean())},
               {"first_not_timed", untimed},
               {"ranking", Json::array()}};
  for (const auto& [suite, losses] : by_suite)
    json["ranking"].push_back({{"suite", suite},
                               {"cases", losses.count},
                               {"first_over_fastest", rounded(losses.mean())},
                               {"worst", rounded(losses.worst)},
                               {"case", losses.worst_name}});
  std::ofstream(kFolder + "/ranking.json") << json.dump(2) << "\n";
}

}  // namespace
}  // namespace ashlar::bench_test

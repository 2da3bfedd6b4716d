// fit_skinny FOLDER [--write FILE]: fits the constants of the skinny GEMM cost model
// (src/cuda/engines/gemm_skinny_calibration.hpp) to the timings of cuda.gemm_skinny in
// FOLDER/configs_*.json, single and back to back, and prints or writes the table.
//
// It fits the library's own model: this program defines skinny_calibration() itself.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

#include "bench/memory.hpp"
#include "bench/recorded_configs.hpp"
#include "cuda/engines/gemm_skinny_calibration.hpp"
#include "cuda/engines/gemm_skinny_shape.hpp"
#include "plan/plan_data.hpp"

namespace ashlar {

namespace {
cuda::SkinnyCalibration tried;
}

namespace cuda {
const SkinnyCalibration& skinny_calibration() { return tried; }
}  // namespace cuda

namespace {

struct Known {
  std::string_view name;
  double value;
};
constexpr Known kKnown[] = {
#include "cuda/engines/gemm_skinny_calibration.inc"
};

struct Timed {
  cuda::SkinnyLayout layout;
  double alone = 0, back_to_back = 0;  // seconds
};
struct Product {
  cuda::SkinnyShape shape;
  std::vector<Timed> configs;
  double alone = 1e30, back_to_back = 1e30;  // minima
};

// The timed TMA configurations of the engine.
std::vector<Timed> configs_of(const bench::RecordedCase& record) {
  const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, value] : cuda::SkinnyLayout().knobs()) all.push_back(name);
    return all;
  }();
  std::vector<Timed> configs;
  for (std::size_t i = 0; i < record.trials.size(); ++i) {
    const Trial& trial = record.trials[i];
    if (trial.engine != "cuda.gemm_skinny" || !record.back_to_back[i]) continue;
    Config config{trial.knobs, {}, 0, {}};
    for (const std::string& name : names)  // a missing knob is 0
      if (std::none_of(trial.knobs.begin(), trial.knobs.end(),
                       [&](const auto& knob) { return knob.first == name; }))
        config.knobs.emplace_back(name, 0);
    const cuda::SkinnyLayout layout(config);
    if (layout.chunk > 0) configs.push_back({layout, *trial.measured, *record.back_to_back[i]});
  }
  return configs;
}

std::vector<Product> known_products(const std::string& folder, const DeviceProps& device) {
  std::vector<Product> all;
  for (const bench::RecordedCase& record : bench::recorded_cases(folder)) {
    Product product;
    product.configs = configs_of(record);
    if (product.configs.size() < 2) continue;
    const bench::Problem& problem = record.problem.problem;
    const auto plan =
        build_plan(problem.build(), device, bench::plan_options(problem, {}), nullptr, false);
    for (const PlanData::Step& step : plan->steps)
      if (step.region.to_text(plan->lowered.graph) == record.region)
        if (!cuda::SkinnyShape::describe(step.region, product.shape)) product.configs.clear();
    for (const Timed& way : product.configs) {
      product.alone = std::min(product.alone, way.alone);
      product.back_to_back = std::min(product.back_to_back, way.back_to_back);
    }
    if (!product.configs.empty()) all.push_back(std::move(product));
  }
  return all;
}

// Means of logarithms over all problems.
struct Score {
  double back_to_back = 0, alone = 0;  // time of the first choice over the fastest
  double spread = 0;                   // root mean square of estimate over time, near the fastest

  // Back to back counts most: that is how skinny GEMMs run in practice.
  double total() const { return 2 * back_to_back + 0.7 * alone + 0.5 * spread; }
};

// `sharpness`: configurations whose estimates differ by less than a share of 1 / sharpness count as
// partial first choices. 0: exactly one is the first choice.
Score score(const std::vector<Product>& products, const DeviceProps& device, double sharpness) {
  constexpr double kNear = 1.3;
  Score sum;
  double near = 0;
  std::vector<double> estimates;
  for (const Product& product : products) {
    estimates.clear();
    for (const Timed& way : product.configs)
      estimates.push_back(way.layout.seconds(product.shape, device));
    const double least = *std::min_element(estimates.begin(), estimates.end());
    double back_to_back = 0, alone = 0, weights = 0;
    for (std::size_t i = 0; i < estimates.size(); ++i) {
      const Timed& way = product.configs[i];
      const double weight = sharpness > 0 ? std::pow(estimates[i] / least, -sharpness)
                                          : (estimates[i] == least && weights == 0 ? 1.0 : 0.0);
      weights += weight;
      back_to_back += weight * std::log(way.back_to_back / product.back_to_back);
      alone += weight * std::log(way.alone / product.alone);
      if (way.alone > kNear * product.alone) continue;
      const double off = std::log(estimates[i] / way.alone);
      sum.spread += off * off;
      near += 1;
    }
    sum.back_to_back += back_to_back / weights;
    sum.alone += alone / weights;
  }
  const auto count = static_cast<double>(products.size());
  return {sum.back_to_back / count, sum.alone / count, std::sqrt(sum.spread / std::max(near, 1.0))};
}

// Random search: changes one or two constants at a time and keeps improvements. Constants stay
// within a factor of their previous values, and shares of bandwidth below what was measured.
class Search {
 public:
  Search(const std::vector<Product>& products, const DeviceProps& device)
      : products_(products), device_(device) {
    cuda::visit_constants(tried, [&](const std::string& name, double& constant) {
      for (const Known& known : kKnown)
        if (known.name == name) constant = known.value;
      if (constant != 0) constants_.push_back({name, &constant, constant});
    });
  }
  void run(int steps, double sharpness) {
    double best = score(products_, device_, sharpness).total();
    for (int step = 0; step < steps; ++step) {
      const cuda::SkinnyCalibration before = tried;
      bool inside = change(0.12);
      if (random_() % 3 == 0) inside &= change(0.1);
      const double now = inside ? score(products_, device_, sharpness).total() : best;
      if (now < best)
        best = now;
      else
        tried = before;
    }
  }

 private:
  struct Constant {
    std::string name;
    double* value;
    double known;
  };
  bool change(double width) {
    constexpr double kMost = 2.5, kMaxOfMemory = 1.04;
    const Constant& one = constants_[random_() % constants_.size()];
    *one.value *= std::exp(std::normal_distribution(0.0, width)(random_));
    const double share = *one.value / one.known;
    return share < kMost && share > 1 / kMost &&
           !(one.name.ends_with("bandwidth_fraction") && *one.value > kMaxOfMemory);
  }

  const std::vector<Product>& products_;
  const DeviceProps& device_;
  std::vector<Constant> constants_;
  std::mt19937 random_{1};
};

int run(int argc, char** argv) {
  if (argc != 2 && !(argc == 4 && std::strcmp(argv[2], "--write") == 0)) {
    fmt::print(stderr, "usage: fit_skinny FOLDER [--write FILE]\n");
    return 2;
  }
  // The constructor sets the constants, which building plans needs.
  const DeviceProps device = Device::named("h200").props();
  std::vector<Product> products;
  Search search(products, device);
  products = known_products(argv[1], device);
  if (products.empty()) {
    fmt::print(stderr, "no back-to-back timings of cuda.gemm_skinny in {}\n", argv[1]);
    return 2;
  }
  const auto report = [&](const char* when) {
    const Score now = score(products, device, 0);
    fmt::print(stderr,
               "{}: first choices take {:.4f} times as long as the fastest back to back, {:.4f} "
               "single; estimates are {:.1f} % off ({} cases)\n",
               when, std::exp(now.back_to_back), std::exp(now.alone), 100 * now.spread,
               products.size());
  };
  report("before");
  for (const double sharpness : {80.0, 160.0, 0.0}) {
    search.run(15000, sharpness);
    report("so far");
  }
  std::string text = fmt::format(
      "// Written by tools/fit_skinny from {} recorded cases; see gemm_skinny_calibration.hpp.\n",
      products.size());
  cuda::visit_constants(tried, [&](const std::string& name, double& constant) {
    text += fmt::format("{{\"{}\", {:.4g}}},\n", name, constant);
  });
  if (argc == 4)
    std::ofstream(argv[3]) << text;
  else
    fmt::print("{}", text);
  return 0;
}

}  // namespace

}  // namespace ashlar

int main(int argc, char** argv) {
  try {
    return ashlar::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fit_skinny: {}\n", error.what());
    return 1;
  }
}

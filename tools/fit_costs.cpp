// fit_costs FOLDER [--write FILE]: fits the constants of the tile cost model
// (src/cuda/engines/tile_cost.hpp) to the timings in FOLDER/configs_*.json, which `ashlar bench
// --configs --record FOLDER` wrote, and prints or writes the table.
//
// The model itself is fitted: this program has its own tile_calibration(), so that the engines'
// configs() can be evaluated repeatedly with other constants.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>

#include "bench/memory.hpp"
#include "bench/recorded_configs.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "plan/plan_data.hpp"

namespace ashlar {

namespace {

using cuda::TileCalibration;
using Key = std::tuple<std::string, DType, int, int, int>;

constexpr TileCalibration kKnown[] = {
#include "cuda/engines/tile_calibration.inc"
};

struct Table {
  std::map<Key, TileCalibration> rows;

  // Created on first use; names live as long as the map's keys.
  TileCalibration& at(std::string_view engine, DType operands, int tile_m, int tile_n,
                      int variant) {
    const auto [row, is_new] =
        rows.try_emplace({std::string(engine), operands, tile_m, tile_n, variant});
    if (is_new) {
      const bool wide = engine.ends_with("_sm90");
      row->second = {std::get<0>(row->first), operands, tile_m, tile_n, variant,
                     wide ? 0.7 : 0.5,        1e-6,     0.85};
      // Starts from the previous fit where there is one.
      for (const TileCalibration& known : kKnown)
        if (Key(known.engine, known.operands, known.tile_m, known.tile_n, known.variant) ==
            row->first) {
          row->second.efficiency = known.efficiency;
          row->second.tile_seconds = known.tile_seconds;
          row->second.hidden = known.hidden;
        }
    }
    return row->second;
  }
};
Table table;

}  // namespace

namespace cuda {
const TileCalibration& tile_calibration(std::string_view engine, DType operands, int tile_m,
                                        int tile_n, int variant) {
  return table.at(engine, operands, tile_m, tile_n, variant);
}
}  // namespace cuda

namespace {

// A recorded region with the engines that were timed for it.
struct Known {
  bench::RecordedCase record;
  std::shared_ptr<const PlanData> plan;
  const Region* region = nullptr;
  std::vector<const Engine*> engines;
  double fastest = 0;
};

std::vector<Known> known_cases(const std::string& folder, const DeviceProps& device) {
  std::vector<Known> all;
  for (bench::RecordedCase& record : bench::recorded_cases(folder)) {
    Known known;
    const bench::Problem& problem = record.problem.problem;
    known.plan =
        build_plan(problem.build(), device, bench::plan_options(problem, {}), nullptr, false);
    for (const PlanData::Step& step : known.plan->steps)
      if (step.region.to_text(known.plan->lowered.graph) == record.region)
        known.region = &step.region;
    if (!known.region) continue;
    for (const Engine* engine : engine_table(device.kind))
      if (std::any_of(record.trials.begin(), record.trials.end(),
                      [&](const Trial& trial) { return trial.engine == engine->id(); }) &&
          engine->supports(*known.region, device))
        known.engines.push_back(engine);
    // Kernels of other libraries are not estimated.
    std::erase_if(record.trials,
                  [](const Trial& trial) { return trial.engine == "cuda.cublaslt"; });
    if (record.trials.empty()) continue;
    known.fastest = record.fastest();
    known.record = std::move(record);
    all.push_back(std::move(known));
  }
  return all;
}

// How well the current constants do on one case.
struct Score {
  double loss = 0;     // logarithm of first choice / fastest
  double regret = 0;   // its square: one large loss is worse than many small ones
  double spread = 0;   // squared logarithms of estimate / measurement, near the fastest
  double weights = 0;  // sum of their weights

  void operator+=(const Score& other) {
    loss += other.loss;
    regret += other.regret;
    spread += other.spread;
    weights += other.weights;
  }
  bool operator==(const Score&) const = default;
  double mean_spread() const { return spread / std::max(weights, 1.0); }
};

constexpr double kGuess = 0.02;  // assumed loss of a first choice that was not timed

Score score_of(const Known& one, const DeviceProps& device) {
  Score score;
  double best_estimate = 1e30, chosen = one.fastest;
  double untimed = 1e30;  // the lowest estimate of an untimed configuration
  for (const Engine* engine : one.engines)
    for (const Config& config : engine->configs(*one.region, device)) {
      const Trial* timed = one.record.find({std::string(engine->id()), config.knobs, 0, {}, {}});
      const double estimate = config.cost.seconds(device, one.region->precision());
      if (!timed) {
        untimed = std::min(untimed, estimate);
        continue;
      }
      const double weight = std::pow(one.fastest / *timed->measured, 2);
      score.weights += weight;
      score.spread += weight * std::pow(std::log(estimate / *timed->measured), 2);
      if (estimate < best_estimate) {
        best_estimate = estimate;
        chosen = *timed->measured;
      }
    }
  score.loss = std::log(chosen / one.fastest);
  // An untimed configuration would be a guess: it must not rank first.
  if (untimed < best_estimate) score.loss += kGuess + std::log(best_estimate / untimed);
  score.regret = score.loss * score.loss;
  return score;
}

Score sum_of(const std::vector<Score>& scores) {
  Score all;
  for (const Score& one : scores) all += one;
  return all;
}

constexpr double kUsualEfficiency = 0.75;

// Rounded as the table is written: what is scored is what will be read.
double written(double TileCalibration::*constant, double value) {
  const std::string text = constant == &TileCalibration::efficiency ? fmt::format("{:.3f}", value)
                           : constant == &TileCalibration::tile_seconds
                               ? fmt::format("{:.2e}", value)
                               : fmt::format("{:.2f}", value);
  return std::strtod(text.c_str(), nullptr);
}

// Coordinate descent: multiplies one constant after the other by a few factors and keeps
// improvements.
class Descent {
 public:
  Descent(const std::vector<Known>& cases, const DeviceProps& device)
      : cases_(cases), device_(device) {
    for (const Known& one : cases) scores_.push_back(score_of(one, device));
    find_what_rows_affect();
    least_total_ = total(scores_);
  }

  // Losses of first choices by suite.
  void print_losses() const {
    std::map<std::string, std::pair<double, int>> losses;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      auto& [sum, count] = losses[cases_[i].record.suite];
      sum += scores_[i].loss;
      ++count;
      if (scores_[i].loss > 0.08)
        fmt::print(stderr, "  {} {}: {:.2f} times the fastest\n", cases_[i].record.suite,
                   cases_[i].record.problem.name, std::exp(scores_[i].loss));
    }
    for (const auto& [suite, loss] : losses)
      fmt::print(stderr, "  {}: {:.3f} times the fastest\n", suite,
                 std::exp(loss.first / loss.second));
  }
  bool is_timed(TileCalibration& row) const { return affected_.contains(&row); }

  void run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      const double before = least_total_;
      // Tiles differ in efficiency; the other constants are shared by all tiles of an engine.
      for (const auto& group : groups()) {
        vary(group, &TileCalibration::efficiency, 0.05, 1.2);
        vary(group, &TileCalibration::tile_seconds, 1e-7, 2e-5);
        vary(group, &TileCalibration::hidden, 0.3, 1);
      }
      for (const auto& [row, affected] : affected_) {
        vary({row}, &TileCalibration::efficiency, 0.05, 1.2);
        vary({row}, &TileCalibration::tile_seconds, 1e-7, 2e-5);
      }
      shake(500);
      const Score all = sum_of(scores_);
      fmt::print(stderr, "round {}: first choices lose {:.1f} %, estimates are off by {:.0f} %\n",
                 round + 1, (std::exp(all.loss / static_cast<double>(cases_.size())) - 1) * 100,
                 std::sqrt(all.mean_spread()) * 100);
      if (least_total_ > before - 1e-3) return;
    }
  }

 private:
  double total(const std::vector<Score>& scores) const {
    const Score all = sum_of(scores);
    // Where loads or memory hide the mainloop, any efficiency would fit: the usual one is used.
    double unusual = 0;
    for (const auto& [row, affected] : affected_)
      unusual += std::pow(std::log(row->efficiency / kUsualEfficiency), 2);
    return (all.loss + 2 * all.regret) / static_cast<double>(cases_.size()) +
           0.1 * all.mean_spread() + 1e-4 * unusual;
  }

  // A row whose change changes no score belongs to untimed configurations.
  void find_what_rows_affect() {
    for (auto& [key, row] : table.rows) {
      const double before = row.efficiency;
      row.efficiency = before / 3;
      std::vector<std::size_t> affected;
      for (std::size_t i = 0; i < cases_.size(); ++i)
        if (score_of(cases_[i], device_) != scores_[i]) affected.push_back(i);
      row.efficiency = before;
      if (!affected.empty()) affected_[&row] = affected;
    }
  }

  std::vector<std::vector<TileCalibration*>> groups() const {
    std::map<std::pair<std::string_view, DType>, std::vector<TileCalibration*>> found;
    for (const auto& [row, affected] : affected_)
      found[{row->engine, row->operands}].push_back(row);
    std::vector<std::vector<TileCalibration*>> all;
    for (auto& [key, rows] : found) all.push_back(rows);
    return all;
  }

  void vary(const std::vector<TileCalibration*>& rows, double TileCalibration::*constant,
            double least, double most) {
    std::set<std::size_t> affected;
    for (TileCalibration* row : rows)
      affected.insert(affected_.at(row).begin(), affected_.at(row).end());
    for (const double factor : {0.6, 0.8, 0.9, 0.95, 0.98, 1.02, 1.05, 1.1, 1.25, 1.6}) {
      std::vector<double> before;
      for (TileCalibration* row : rows) {
        before.push_back(row->*constant);
        row->*constant = written(constant, std::clamp(row->*constant * factor, least, most));
      }
      std::vector<Score> scores = scores_;
      for (const std::size_t i : affected) scores[i] = score_of(cases_[i], device_);
      if (const double found = total(scores); found < least_total_) {
        scores_ = std::move(scores);
        least_total_ = found;
        continue;
      }
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i]->*constant = before[i];
    }
  }

  // The first choice depends on several rows at once: perturbs a few rows of one engine slightly.
  void shake(int tries) {
    const auto all = groups();
    std::normal_distribution<double> step(0, 0.03);
    for (int i = 0; i < tries; ++i) {
      const auto& rows = all[random_() % all.size()];
      std::map<TileCalibration*, double> before;
      std::set<std::size_t> affected;
      for (int j = 0; j < 3; ++j) {
        TileCalibration* row = rows[random_() % rows.size()];
        before.emplace(row, row->efficiency);
        row->efficiency = written(&TileCalibration::efficiency,
                                  std::clamp(row->efficiency * std::exp(step(random_)), 0.05, 1.2));
        affected.insert(affected_.at(row).begin(), affected_.at(row).end());
      }
      std::vector<Score> scores = scores_;
      for (const std::size_t one : affected) scores[one] = score_of(cases_[one], device_);
      if (const double found = total(scores); found < least_total_) {
        scores_ = std::move(scores);
        least_total_ = found;
        continue;
      }
      for (const auto& [row, efficiency] : before) row->efficiency = efficiency;
    }
  }

  const std::vector<Known>& cases_;
  const DeviceProps& device_;
  std::mt19937_64 random_{1};
  std::vector<Score> scores_;
  double least_total_ = 0;
  std::map<TileCalibration*, std::vector<std::size_t>> affected_;  // cases, by row
};

std::string dtype_name(DType dtype) { return std::string(to_string(dtype)); }

// The mean of several rows.
struct Mean {
  double efficiency = 0, seconds = 0, hidden = 0;
  int count = 0;
  void add(const TileCalibration& row) {
    efficiency += row.efficiency;
    seconds += row.tile_seconds;
    hidden += row.hidden;
    ++count;
  }
};

// Adds rows for untimed tiles, the means of the timed ones, and one for each core.
std::string to_text(const Descent& fitted, std::size_t cases) {
  const auto line = [](std::string_view engine, DType dtype, int m, int n, int variant,
                       double efficiency, double seconds, double hidden) {
    return fmt::format("{{\"{}\", {}, {}, {}, {}, {:.3f}, {:.2e}, {:.2f}}},\n", engine,
                       dtype_name(dtype), m, n, variant, efficiency, seconds, hidden);
  };
  std::map<std::tuple<std::string, DType, int>, Mean> means;
  std::string rows;
  for (auto& [key, row] : table.rows) {
    const auto& [engine, dtype, m, n, variant] = key;
    // Keeps the rows of untimed configurations, too: with their constants none ranked first.
    rows += line(engine, dtype, m, n, variant, row.efficiency, row.tile_seconds, row.hidden);
    if (!fitted.is_timed(row)) continue;
    means[{engine, dtype, variant}].add(row);
    means[{engine.ends_with("_sm90") ? "_sm90" : "_sm80", dtype, 0}].add(row);
  }
  // Rows of all cores must exist, whatever was recorded.
  means.try_emplace({"_sm90", bf16, 0}, Mean{0.7, 1e-6, 0.85, 1});
  means.try_emplace({"_sm80", bf16, 0}, Mean{0.5, 1.5e-6, 0.85, 1});
  std::string text = fmt::format(
      "// Written by tools/fit_costs from {} recorded cases; see tile_cost.hpp.\n"
      "// engine, operands, tile, variant, efficiency, seconds of a tile, hidden share\n",
      cases);
  for (const auto& [key, mean] : means)
    text += line(std::get<0>(key), std::get<1>(key), 0, 0, std::get<2>(key),
                 mean.efficiency / mean.count, mean.seconds / mean.count, mean.hidden / mean.count);
  return text + rows;
}

int run(int argc, char** argv) {
  if (argc != 2 && !(argc == 4 && std::strcmp(argv[2], "--write") == 0)) {
    fmt::print(stderr, "usage: fit_costs FOLDER [--write FILE]\n");
    return 2;
  }
  const DeviceProps device = Device::named("h200").props();
  const std::vector<Known> cases = known_cases(argv[1], device);
  if (cases.empty()) {
    fmt::print(stderr, "no timings of configurations in {}\n", argv[1]);
    return 2;
  }
  Descent descent(cases, device);
  descent.run(20);
  descent.print_losses();
  const std::string text = to_text(descent, cases.size());
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
    fmt::print(stderr, "fit_costs: {}\n", error.what());
    return 1;
  }
}

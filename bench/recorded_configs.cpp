#include "recorded_configs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/error.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

namespace ashlar::bench {

namespace {

using Json = nlohmann::ordered_json;  // knobs keep their order
using Knobs = decltype(Trial::knobs);

void add_trials(const Json& json, RecordedCase& into) {
  for (const Json& one : json) {
    if (!one.contains("measured_us") || one.contains("difference")) continue;
    Trial& trial = into.trials.emplace_back();
    trial.engine = one.at("engine").get<std::string>();
    for (const auto& [name, value] : one.at("knobs").items())
      trial.knobs.emplace_back(name, value.get<std::int64_t>());
    trial.estimated = one.value("estimated_us", 0.0) * 1e-6;
    trial.measured = one.at("measured_us").get<double>() * 1e-6;
    std::optional<double>& row = into.back_to_back.emplace_back();
    if (one.contains("row_us")) row = one.at("row_us").get<double>() * 1e-6;
  }
}

void add_file(const std::string& path, std::vector<RecordedCase>& all) {
  std::ifstream file(path, std::ios::binary);
  try {
    const Json json = Json::parse(file);
    const std::string name = json.at("suite").get<std::string>();
    const Suite suite = choose_suites(std::vector{name}, DeviceKind::cuda).at(0);
    for (const Json& entry : json.at("configs")) {
      const auto found = std::find_if(suite.cases.begin(), suite.cases.end(), [&](const Case& one) {
        return one.name == entry.at("name");
      });
      if (found == suite.cases.end()) continue;
      RecordedCase one{name, *found, entry.at("region").get<std::string>(), {}, {}};
      add_trials(entry.at("trials"), one);
      if (!one.trials.empty()) all.push_back(std::move(one));
    }
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::io, fmt::format("{}: {}", path, error.what()));
  }
}

// Engines gain and lose knobs over time: a missing knob equals 0.
bool is_same(const Knobs& recorded, const Knobs& now) {
  const auto set = [](const Knobs& knobs) {
    std::map<std::string, std::int64_t> all(knobs.begin(), knobs.end());
    std::erase_if(all, [](const auto& knob) { return knob.second == 0; });
    return all;
  };
  return set(recorded) == set(now);
}

}  // namespace

double RecordedCase::fastest() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Trial& trial : trials) least = std::min(least, *trial.measured);
  return least;
}

const Trial* RecordedCase::find(const Trial& trial) const {
  for (const Trial& one : trials)
    if (one.engine == trial.engine && is_same(one.knobs, trial.knobs)) return &one;
  return nullptr;
}

std::vector<RecordedCase> recorded_cases(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("configs_"))
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<RecordedCase> all;
  for (const std::string& file : files) add_file(file, all);
  return all;
}

}  // namespace ashlar::bench

#include "remembered_plans.hpp"

#include <fmt/format.h>

#include <ashlar/error.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

namespace ashlar::bench::cudnn {

using nlohmann::json;

namespace {

std::uint64_t hash_of(const std::string& text) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

json to_json(const PlanChoice& choice) {
  if (!choice.refusal.empty()) return {{"refusal", choice.refusal}};
  return {{"engine", choice.engine}, {"knobs", choice.knobs}, {"timed", choice.timed}};
}

PlanChoice choice_of(const json& entry) {
  PlanChoice choice;
  if (entry.contains("refusal")) {
    choice.refusal = entry.at("refusal").get<std::string>();
    return choice;
  }
  choice.engine = entry.at("engine").get<std::int64_t>();
  choice.knobs = entry.at("knobs").get<std::vector<std::pair<int, std::int64_t>>>();
  choice.timed = entry.at("timed").get<int>();
  return choice;
}

}  // namespace

RememberedPlans::RememberedPlans(std::string path) : path_(std::move(path)) {
  std::ifstream file(path_);
  if (!file) return;
  try {
    const json all = json::parse(file);
    for (const auto& [key, entry] : all.items()) choices_[key] = choice_of(entry);
  } catch (const json::exception& error) {
    throw Error(ErrorCode::parse, fmt::format("{}: {}", path_, error.what()));
  }
}

const PlanChoice* RememberedPlans::find(const std::string& key) const {
  const auto found = choices_.find(key);
  return found == choices_.end() ? nullptr : &found->second;
}

void RememberedPlans::remember(const std::string& key, PlanChoice choice) {
  choices_[key] = std::move(choice);
  json all = json::object();
  for (const auto& [name, one] : choices_) all[name] = to_json(one);
  std::ofstream file(path_);
  file << all.dump(1) << '\n';
  if (!file.flush()) throw Error(ErrorCode::io, fmt::format("{}: cannot be written", path_));
}

std::string key_of(const Stretch& stretch, bool tf32) {
  return fmt::format("{:016x}.{}-{}{}", hash_of(stretch.graph.to_json()), stretch.first,
                     stretch.last, tf32 ? "" : ".exact");
}

}  // namespace ashlar::bench::cudnn

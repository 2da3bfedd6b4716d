#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "report.hpp"

namespace ashlar::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMilli = 1e3;
constexpr double kGiga = 1e-9;

Json rounded(std::optional<double> value) {
  if (!value) return nullptr;
  return std::strtod(fmt::format("{:.4g}", *value).c_str(), nullptr);
}

// A member is left out when there is nothing to say.
void put(Json& json, const char* key, std::optional<double> value, double unit = 1) {
  if (value) json[key] = rounded(*value * unit);
}

Json case_record(const Measurement& m) {
  Json json = {{"name", m.name}, {"check", m.check}};
  if (m.ok) {
    json["ours_ms"] = rounded(m.ours * kMilli);
    put(json, "onednn_ms", m.peer, kMilli);
    put(json, "speed", m.speed());
    put(json, "onednn_best_layout_ms", m.peer_best, kMilli);
    put(json, "speed_best_layout", m.speed_best());
    put(json, "alone_ms", m.alone, kMilli);
    put(json, "overhead", m.overhead());
    put(json, "onednn_alone_ms", m.peer_alone, kMilli);
    put(json, "onednn_overhead", m.peer_overhead());
    put(json, "naive_ms", m.naive, kMilli);
    json["limit_ms"] = rounded(m.limit() * kMilli);
    json["share_of_limit"] = rounded(m.share());
    if (m.arithmetic > 0) {
      json["gflops"] = rounded(m.arithmetic / m.ours * kGiga);
      json["peak_gflops"] = rounded(m.peak * kGiga);
    }
    json["gb_per_s"] = rounded(m.traffic / m.ours * kGiga);
    json["copy_gb_per_s"] = rounded(m.copy_speed * kGiga);
    json["samples"] = m.samples;
  }
  json["engine"] = m.engine;
  if (!m.peer_implementation.empty()) json["onednn"] = m.peer_implementation;
  if (!m.peer_best_implementation.empty()) json["onednn_best_layout"] = m.peer_best_implementation;
  return json;
}

Json suite_record(const SuiteResult& suite) {
  const Summary summary = summary_of(suite);
  Json json = {{"suite", suite.name}, {"title", suite.title}};
  put(json, "speed", summary.speed);
  put(json, "speed_best_layout", summary.speed_best);
  put(json, "share_of_limit", summary.share);
  put(json, "least_over_naive", summary.least_naive);
  put(json, "most_overhead", summary.most_overhead);
  if (summary.slowest)
    json["worst"] = {{"name", summary.slowest->name}, {"speed", rounded(summary.slowest->speed())}};
  json["cases"] = Json::array();
  for (const Measurement& m : suite.measurements) json["cases"].push_back(case_record(m));
  return json;
}

}  // namespace

std::string to_json(const Setting& setting, std::span<const SuiteResult> suites) {
  Json json = {{"device", setting.device},
               {"threads", setting.threads},
               {"peer", setting.peer.empty() ? Json(nullptr) : Json(setting.peer)},
               {"date", setting.date},
               {"commit", setting.commit},
               {"seed", setting.seed},
               {"load_at_start", rounded(setting.load)},
               {"suites", Json::array()}};
  for (const SuiteResult& suite : suites) json["suites"].push_back(suite_record(suite));
  return json.dump(2) + "\n";
}

}  // namespace ashlar::bench

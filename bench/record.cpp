// The JSON record of a run: one object per suite and case.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "report.hpp"
#include "units.hpp"

namespace ashlar::bench {

namespace {

using Json = nlohmann::ordered_json;

Json rounded(std::optional<double> value) {
  return value ? Json(four_digits(*value)) : Json(nullptr);
}

// Absent values are omitted.
void put(Json& json, const std::string& key, std::optional<double> value, double unit = 1) {
  if (value) json[key] = rounded(*value * unit);
}

// Keys about the peer begin with its name.
Json case_record(const Measurement& m, const std::string& usual_peer) {
  const std::string& peer = m.peer_name.empty() ? usual_peer : m.peer_name;
  Json json = {{"name", m.name}, {"check", m.check}};
  if (m.ok) {
    json["ours_ms"] = rounded(m.ours * kMilli);
    put(json, peer + "_ms", m.peer, kMilli);
    put(json, "speed", m.speed());
    put(json, peer + "_best_layout_ms", m.peer_best, kMilli);
    put(json, "speed_best_layout", m.speed_best());
    put(json, "alone_ms", m.alone, kMilli);
    put(json, "overhead", m.overhead());
    put(json, peer + "_alone_ms", m.peer_alone, kMilli);
    put(json, peer + "_overhead", m.peer_overhead());
    put(json, "apart_ms", m.apart, kMilli);
    put(json, "speed_over_apart", m.speed_apart());
    if (m.apart) json["share_of_apart_bytes"] = rounded(m.traffic / m.apart_traffic);
    put(json, "naive_ms", m.naive, kMilli);
    json["roofline_ms"] = rounded(m.roofline() * kMilli);
    json["share_of_roofline"] = rounded(m.share());
    if (m.arithmetic > 0) {
      json["gflops"] = rounded(m.arithmetic / m.ours * kGiga);
      json["peak_gflops"] = rounded(m.peak * kGiga);
    }
    json["gb_per_s"] = rounded(m.traffic / m.ours * kGiga);
    json["copy_gb_per_s"] = rounded(m.copy_speed * kGiga);
    json["share_of_copy"] = rounded(m.copy_share());
    put(json, "same_copy_ms", m.same_copy, kMilli);
    put(json, "share_of_same_copy", m.same_copy_share());
    put(json, "back_to_back_ms", m.back_to_back, kMilli);
    put(json, "share_back_to_back", m.share_back_to_back());
    put(json, "copy_back_to_back_ms", m.same_copy_back_to_back, kMilli);
    put(json, "share_of_copy_back_to_back", m.copy_share_back_to_back());
    if (m.back_to_back) json["runs_back_to_back"] = m.runs_back_to_back;
    json["samples"] = m.samples;
  }
  json["engine"] = m.engine;
  if (!m.config.empty()) json["config"] = m.config;
  for (const auto& [stage, seconds] : m.stages) json["seconds"][stage] = rounded(seconds);
  json["regions"] = m.kernels;
  if (!m.peer_implementation.empty()) json[peer] = m.peer_implementation;
  if (m.peer_kernels > 1) json[peer + "_calls"] = m.peer_kernels;
  if (!m.peer_refusal.empty()) json[peer + "_refusal"] = m.peer_refusal;
  if (!m.peer_best_implementation.empty()) json[peer + "_best_layout"] = m.peer_best_implementation;
  return json;
}

Json suite_record(const SuiteResult& suite, const std::string& peer) {
  const Summary summary = summary_of(suite);
  Json json = {{"suite", suite.name}, {"title", suite.title}};
  put(json, "speed", summary.speed);
  put(json, "speed_best_layout", summary.speed_best);
  put(json, "share_of_roofline", summary.share);
  put(json, "share_back_to_back", summary.share_back_to_back);
  put(json, "share_of_copy_back_to_back", summary.copy_share_back_to_back);
  put(json, "least_over_naive", summary.least_naive);
  put(json, "max_overhead", summary.max_overhead);
  put(json, "least_over_apart", summary.least_apart);
  if (summary.slowest)
    json["worst"] = {{"name", summary.slowest->name}, {"speed", rounded(summary.slowest->speed())}};
  if (summary.farthest)
    json["farthest"] = {{"name", summary.farthest->name},
                        {"share_of_roofline", rounded(summary.farthest->share())}};
  json["cases"] = Json::array();
  for (const Measurement& m : suite.measurements) json["cases"].push_back(case_record(m, peer));
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
               {"load_at_start", rounded(setting.load)}};
  if (setting.tune) json["tuned"] = true;
  if (setting.gpu) {
    json.erase("threads");
    json["driver"] = setting.driver;
    json["copy_gb_per_s"] = rounded(setting.copy_speed * kGiga);
  }
  json["suites"] = Json::array();
  for (const SuiteResult& suite : suites)
    json["suites"].push_back(suite_record(suite, setting.gpu ? "cudnn" : "onednn"));
  return json.dump(2) + "\n";
}

std::string to_json(const Setting& setting, const std::string& device, const HostTimes& times) {
  const Json json = {{"device", device},
                     {"host", setting.device},
                     {"date", setting.date},
                     {"commit", setting.commit},
                     {"run_us", rounded(times.run * 1e6)},
                     {"compile_ms", rounded(times.compiled * kMilli)},
                     {"first_compile_ms", rounded(times.first * kMilli)},
                     {"compile_from_cache_ms", rounded(times.cached * kMilli)}};
  return json.dump(2) + "\n";
}

}  // namespace ashlar::bench

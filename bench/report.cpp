#include "report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <omp.h>

#include <ashlar/device.hpp>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "onednn_peer.hpp"

namespace ashlar::bench {

namespace {

constexpr double kMilli = 1e3;
constexpr double kGiga = 1e-9;

std::string milliseconds(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.3f}", *seconds * kMilli) : "-";
}

std::string rate(const Measurement& measurement, double seconds) {
  return measurement.arithmetic > 0
             ? fmt::format("{:.1f} GFLOP/s", measurement.arithmetic / seconds * kGiga)
             : fmt::format("{:.1f} GB/s", measurement.traffic / seconds * kGiga);
}

nlohmann::ordered_json rounded(std::optional<double> value) {
  if (!value) return nullptr;
  return std::strtod(fmt::format("{:.4g}", *value).c_str(), nullptr);
}

nlohmann::ordered_json in_milliseconds(std::optional<double> seconds) {
  return rounded(seconds ? std::optional(*seconds * kMilli) : std::nullopt);
}

}  // namespace

Setting setting_here(const std::string& commit, std::uint64_t seed) {
  Setting setting;
  setting.device = Device::cpu().props().description;
  setting.peer = peer_version();
  setting.date = fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  setting.commit = commit;
  setting.threads = omp_get_max_threads();
  setting.seed = seed;
  if (double load = 0; getloadavg(&load, 1) == 1) setting.load = load;
  return setting;
}

std::string table_head(const Setting& setting) {
  return fmt::format(
      "ours against {} on {}, {} threads each, commit {}, {}, load at start {:.2f}\n"
      "medians in ms; ratio = ours / oneDNN; the rate is ours; * oneDNN's plain loops\n\n"
      "{:<34}{:>10}{:>10}{:>8}{:>16}{:>11}  {}\n",
      setting.peer, setting.device, setting.threads, setting.commit, setting.date, setting.load,
      "case", "ours", "oneDNN", "ratio", "rate", "naive", "engine");
}

std::string table_row(const Measurement& measurement) {
  if (!measurement.ok) return fmt::format("{:<34}{}\n", measurement.name, measurement.check);
  const std::optional<double> ratio = measurement.ratio();
  return fmt::format(
      "{:<34}{:>10}{:>10}{:>8}{:>16}{:>11}  {}\n", measurement.name, milliseconds(measurement.ours),
      milliseconds(measurement.peer), ratio ? fmt::format("{:.2f}", *ratio) : "-",
      rate(measurement, measurement.ours), milliseconds(measurement.naive), measurement.engine);
}

const Measurement* slowest(std::span<const Measurement> measurements) {
  const Measurement* found = nullptr;
  for (const Measurement& measurement : measurements)
    if (measurement.ok && measurement.ratio() && (!found || *measurement.ratio() > *found->ratio()))
      found = &measurement;
  return found;
}

std::string to_json(const Setting& setting, std::span<const Measurement> measurements) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const Measurement& measurement : measurements) {
    nlohmann::ordered_json entry = {{"name", measurement.name}, {"check", measurement.check}};
    if (measurement.ok) {
      entry["ours_ms"] = in_milliseconds(measurement.ours);
      entry["onednn_ms"] = in_milliseconds(measurement.peer);
      entry["ours_least_ms"] = in_milliseconds(measurement.ours_least);
      entry["onednn_least_ms"] = in_milliseconds(measurement.peer_least);
      entry["ratio"] = rounded(measurement.ratio());
      if (measurement.naive) entry["naive_ms"] = in_milliseconds(measurement.naive);
      entry["samples"] = measurement.samples;
      if (measurement.arithmetic > 0)
        entry["gflops"] = rounded(measurement.arithmetic / measurement.ours * kGiga);
      entry["gb_per_s"] = rounded(measurement.traffic / measurement.ours * kGiga);
    }
    entry["engine"] = measurement.engine;
    entry["onednn_implementation"] = measurement.peer_implementation;
    cases.push_back(std::move(entry));
  }
  nlohmann::ordered_json record = {{"device", setting.device},
                                   {"threads", setting.threads},
                                   {"peer", setting.peer},
                                   {"date", setting.date},
                                   {"commit", setting.commit},
                                   {"seed", setting.seed},
                                   {"load_at_start", rounded(setting.load)}};
  if (const Measurement* worst = slowest(measurements))
    record["slowest"] = {{"name", worst->name}, {"ratio", rounded(worst->ratio())}};
  record["cases"] = std::move(cases);
  return record.dump(2) + "\n";
}

}  // namespace ashlar::bench

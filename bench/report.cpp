#include "report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ashlar/device.hpp>
#include <chrono>
#include <cstdlib>

#ifndef ASHLAR_NO_OPENMP
#include <omp.h>
#endif

#include "peer.hpp"
#include "statistics.hpp"
#include "units.hpp"

namespace ashlar::bench {

namespace {

constexpr double kTera = 1e-12;

std::string milliseconds(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.3f}", *seconds * kMilli) : "-";
}

std::string times(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.2f}", *ratio) : "-";
}

std::string rate(const Measurement& m) {
  return m.arithmetic > 0 ? fmt::format("{:.1f} GFLOP/s", m.arithmetic / m.ours * kGiga)
                          : fmt::format("{:.1f} GB/s", m.traffic / m.ours * kGiga);
}

int threads_here() {
#ifdef ASHLAR_NO_OPENMP
  return 1;
#else
  return omp_get_max_threads();
#endif
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
  setting.threads = threads_here();
  setting.seed = seed;
  if (double load = 0; getloadavg(&load, 1) == 1) setting.load = load;
  return setting;
}

Summary summary_of(const SuiteResult& result) {
  Summary summary;
  std::vector<double> speeds, best, shares, shares_back_to_back, copy_shares_back_to_back;
  for (const Measurement& m : result.measurements) {
    if (!m.ok) continue;
    shares.push_back(m.share());
    if (!summary.farthest || m.share() < summary.farthest->share()) summary.farthest = &m;
    if (const auto share = m.share_back_to_back()) shares_back_to_back.push_back(*share);
    if (const auto share = m.copy_share_back_to_back()) copy_shares_back_to_back.push_back(*share);
    if (const auto speed = m.speed()) {
      speeds.push_back(*speed);
      if (!summary.slowest || *speed < *summary.slowest->speed()) summary.slowest = &m;
    }
    if (const auto speed = m.speed_best()) best.push_back(*speed);
    if (const auto speed = m.speed_naive())
      summary.least_naive = std::min(*speed, summary.least_naive.value_or(*speed));
    if (const auto overhead = m.overhead())
      summary.max_overhead = std::max(*overhead, summary.max_overhead.value_or(*overhead));
    if (const auto speed = m.speed_apart())
      summary.least_apart = std::min(*speed, summary.least_apart.value_or(*speed));
  }
  summary.speed = geometric_mean(speeds);
  summary.speed_best = geometric_mean(best);
  summary.share = geometric_mean(shares);
  summary.share_back_to_back = geometric_mean(shares_back_to_back);
  summary.copy_share_back_to_back = geometric_mean(copy_shares_back_to_back);
  return summary;
}

std::string target_text(const Target& target) {
  std::vector<std::string> parts;
  if (target.speed) parts.push_back(fmt::format("geometric mean at least {:.2f}", *target.speed));
  if (target.worst) parts.push_back(fmt::format("no case below {:.2f}", *target.worst));
  if (target.share)
    parts.push_back(fmt::format("at least {:.0f} % of the roofline", *target.share * 100));
  if (target.least_share)
    parts.push_back(
        fmt::format("no case below {:.0f} % of the roofline", *target.least_share * 100));
  if (target.share_back_to_back)
    parts.push_back(fmt::format("at least {:.0f} % of the roofline back to back",
                                *target.share_back_to_back * 100));
  if (target.copy_share_back_to_back)
    parts.push_back(fmt::format("at least {:.0f} % of copies back to back",
                                *target.copy_share_back_to_back * 100));
  if (target.naive)
    parts.push_back(
        fmt::format("at least {:.1f} times the speed of the naive kernel", *target.naive));
  if (target.overhead)
    parts.push_back(fmt::format("fusion overhead at most {:.0f} %", *target.overhead * 100));
  if (target.apart)
    parts.push_back(
        fmt::format("at least {:.1f} times the speed of several graphs", *target.apart));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Outcome outcome_of(const Target& target, const Summary& summary) {
  Outcome outcome = Outcome::no_target;
  const auto judge = [&](std::optional<double> wanted, std::optional<double> got, bool at_most) {
    if (!wanted || outcome == Outcome::missed) return;
    if (got && (at_most ? *got > *wanted : *got < *wanted))
      outcome = Outcome::missed;
    else if (!got)
      outcome = Outcome::not_measured;
    else if (outcome == Outcome::no_target)
      outcome = Outcome::reached;
  };
  judge(target.speed, summary.speed, false);
  judge(target.worst, summary.slowest ? summary.slowest->speed() : std::nullopt, false);
  judge(target.share, summary.share, false);
  judge(target.least_share,
        summary.farthest ? std::optional(summary.farthest->share()) : std::nullopt, false);
  judge(target.share_back_to_back, summary.share_back_to_back, false);
  judge(target.copy_share_back_to_back, summary.copy_share_back_to_back, false);
  judge(target.naive, summary.least_naive, false);
  judge(target.overhead, summary.max_overhead, true);
  judge(target.apart, summary.least_apart, false);
  return outcome;
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::not_measured: return "not measured";
    case Outcome::missed: return "not reached";
    case Outcome::reached: return "reached";
    case Outcome::no_target: break;
  }
  return "";
}

std::string table_head(const Setting& setting) {
  const std::string against = setting.peer.empty() ? "" : " against " + setting.peer;
  if (setting.gpu)
    return fmt::format(
        "ours{} on {}, {}, commit {}, {}\n"
        "copy bandwidth {:.2f} TB/s; medians in ms, L2 cache flushed before every run; speed = "
        "time of the peer /\nour time, above 1 we are faster; roofline: bytes at copy bandwidth or "
        "arithmetic at peak\n",
        against, setting.device, setting.driver, setting.commit, setting.date,
        setting.copy_speed * kTera);
  return fmt::format(
      "ours{} on {}, {} thread{}, commit {}, {}, load at start {:.2f}\n"
      "{}medians in ms; speed = time of oneDNN / our time, above 1 we are faster; best: oneDNN on\n"
      "layouts of its own choice; roofline: our share of FMA throughput or copy bandwidth, "
      "measured "
      "between samples\n",
      against, setting.device, setting.threads, setting.threads == 1 ? "" : "s", setting.commit,
      setting.date, setting.load,
      setting.peer.empty() ? "oneDNN was not built in (-DASHLAR_BUILD_BENCH=ON): there is no peer\n"
                           : "");
}

std::string suite_head(const SuiteResult& suite, const Setting& setting) {
  const std::string target = target_text(suite.target);
  const std::string title = fmt::format("\n{}: {}{}\n", suite.name, suite.title,
                                        target.empty() ? "" : " (target: " + target + ")");
  if (setting.gpu)
    return title + fmt::format("{:<44}{:>9}{:>9}{:>7}{:>9}{:>8}{:>8}{:>11}{:>10}  {}\n", "case",
                               "ours", "peer", "speed", "roofline", "of it", "of copy", "our rate",
                               "naive", "engine");
  return title + fmt::format("{:<38}{:>10}{:>10}{:>7}{:>10}{:>7}{:>10}{:>15}  {}\n", "case", "ours",
                             "oneDNN", "speed", "best", "speed", "roofline", "our rate", "engine");
}

namespace {

// Four decimals: tenths of a microsecond.
std::string fine_milliseconds(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.4f}", *seconds * kMilli) : "-";
}

// In the unit of the resource that bounds the case.
std::string gpu_rate(const Measurement& m) {
  if (m.arithmetic * m.copy_speed > m.traffic * m.peak)
    return fmt::format("{:.0f} TFLOP/s", m.arithmetic / m.ours * kTera);
  return fmt::format("{:.0f} GB/s", m.traffic / m.ours * kGiga);
}

std::string gpu_row(const Measurement& m, const Setting& setting) {
  std::string note;
  if (m.kernels > 1) note += fmt::format(", {} regions", m.kernels);
  if (m.peer_kernels > 1) note += fmt::format("; peer: {} calls", m.peer_kernels);
  if (!m.peer_refusal.empty()) note += "; peer: " + m.peer_refusal;
  if (m.apart)
    note += fmt::format("; as several graphs {} ms: {:.2f} times as long, {:.0f} % of its bytes",
                        fine_milliseconds(m.apart), *m.speed_apart(),
                        m.traffic / m.apart_traffic * 100);
  if (const auto overhead = m.overhead())
    note += fmt::format(", {:+.1f} % over alone", *overhead * 100);
  if (const auto overhead = m.peer_overhead())
    note += fmt::format(" (peer {:+.1f} %)", *overhead * 100);
  if (m.back_to_back)
    note += fmt::format("; back to back {} ms, {:.0f} %", fine_milliseconds(m.back_to_back),
                        *m.share_back_to_back() * 100);
  if (const auto share = m.copy_share_back_to_back())
    note += fmt::format(" (copies {} ms, {:.0f} %)", fine_milliseconds(m.same_copy_back_to_back),
                        *share * 100);
  if (m.check.ends_with(")")) note += "; " + m.check;  // a peer that is far off
  if (setting.tune && !m.config.empty()) note += "; " + m.config;
  return fmt::format("{:<44}{:>9}{:>9}{:>7}{:>9}{:>6.0f} %{:>6.0f} %{:>11}{:>10}  {}{}\n", m.name,
                     fine_milliseconds(m.ours), fine_milliseconds(m.peer), times(m.speed()),
                     fine_milliseconds(m.roofline()), m.share() * 100, m.copy_share() * 100,
                     gpu_rate(m), fine_milliseconds(m.naive), m.engine, note);
}

}  // namespace

std::string table_row(const Measurement& m, const Setting& setting) {
  if (!m.ok) return fmt::format("{:<38}{}\n", m.name, m.check);
  if (setting.gpu) return gpu_row(m, setting);
  std::string fused;
  if (const auto overhead = m.overhead())
    fused = fmt::format(", {:+.1f} % over alone", *overhead * 100);
  if (const auto overhead = m.peer_overhead())
    fused += fmt::format(" (oneDNN {:+.1f} %)", *overhead * 100);
  return fmt::format("{:<38}{:>10}{:>10}{:>7}{:>10}{:>7}{:>8.0f} %{:>15}  {}{}\n", m.name,
                     milliseconds(m.ours), milliseconds(m.peer), times(m.speed()),
                     milliseconds(m.peer_best), times(m.speed_best()), m.share() * 100, rate(m),
                     m.engine, fused);
}

std::string suite_foot(const SuiteResult& suite) {
  const Summary summary = summary_of(suite);
  std::string line = fmt::format("{}:", suite.name);
  if (summary.speed) {
    line += fmt::format(" geometric mean of the speed {:.2f}", *summary.speed);
    if (summary.speed_best) line += fmt::format(" (best layout {:.2f})", *summary.speed_best);
    line += fmt::format(", worst {:.2f} ({});", *summary.slowest->speed(), summary.slowest->name);
  }
  if (summary.share) {
    line += fmt::format(" {:.0f} % of the roofline", *summary.share * 100);
    line += fmt::format(", lowest {:.0f} % ({})", summary.farthest->share() * 100,
                        summary.farthest->name);
  }
  if (summary.share_back_to_back)
    line += fmt::format("; back to back {:.0f} %", *summary.share_back_to_back * 100);
  if (summary.copy_share_back_to_back)
    line +=
        fmt::format(", {:.0f} % of copies back to back", *summary.copy_share_back_to_back * 100);
  if (summary.least_naive)
    line += fmt::format("; at least {:.0f} times the naive kernel", *summary.least_naive);
  if (const Outcome outcome = outcome_of(suite.target, summary); outcome != Outcome::no_target)
    line += fmt::format("; target {}", to_string(outcome));
  return line + "\n";
}

}  // namespace ashlar::bench

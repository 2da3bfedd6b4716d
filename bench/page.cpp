// The HTML report: a chart and a table per suite. The page is well-formed XML.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report.hpp"

namespace ashlar::bench {

namespace {

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><title>Ashlar benchmark</title>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<style>
:root { --ink: #1d2126; --faint: #6a737d; --line: #d5dae0; --paper: #ffffff;
        --ours: #1f6fb4; --peer: #e08a2e; --best: #f0c48d; --roofline: #c0392b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --faint: #98a1ab; --line: #3a424b; --paper: #14181c;
          --ours: #5aa7e6; --peer: #e69a4a; --best: #8a6a40; --roofline: #ff6b5e; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .3rem; }
p.note, figcaption { color: var(--faint); margin: .2rem 0; } figure { margin: .8rem 0; }
table { border-collapse: collapse; font-size: .86rem; display: block; overflow-x: auto; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid var(--line);
         white-space: nowrap; }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .faint { fill: var(--faint); } svg .grid { stroke: var(--line); }
svg .roofline { stroke: var(--roofline); stroke-width: 2; }
.ours { fill: var(--ours); } .peer { fill: var(--peer); } .best { fill: var(--best); }
.good { color: #2e8b57; } .bad { color: var(--roofline); }
nav a { margin-right: .8rem; color: var(--ours); }
</style></head><body>
)";

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  return safe;
}

std::string time_cell(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.3f}", *seconds * 1e3) : "";
}

std::string ratio_cell(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.2f}", *ratio) : "";
}

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.0f} %", *share * 100) : "";
}

// --- the chart: one group of bars per case; 100 % is the roofline, measured along with the case
constexpr double kLabels = 250, kBars = 560, kRight = 60;  // widths, in user units
constexpr double kBar = 9, kGap = 7, kTop = 24;

struct Bar {
  const char* style;
  const char* name;
  std::optional<double> seconds;
};

std::vector<Bar> bars_of(const Measurement& m, const Setting& setting) {
  return {{"ours", "ours", m.ours},
          {"peer", setting.peer_name(), m.peer},
          setting.gpu ? Bar{"best", "ours, as several graphs", m.apart}
                      : Bar{"best", "oneDNN, its own layout", m.peer_best}};
}

std::string chart(const SuiteResult& suite, const Setting& setting) {
  double most = 1, height = kTop;
  for (const Measurement& m : suite.measurements) {
    if (!m.ok) continue;
    for (const Bar& bar : bars_of(m, setting))
      if (bar.seconds) {
        most = std::max(most, m.roofline() / *bar.seconds);
        height += kBar;
      }
    height += kGap;
  }
  const double scale = kBars / (std::ceil(most * 10) / 10);
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n",
                  kLabels + kBars + kRight, height + kGap, escaped(suite.name));
  for (double share = 0; share <= most + 0.05; share += most > 3 ? 1.0 : 0.25)
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.0f}\" x2=\"{0:.1f}\" y2=\"{2:.0f}\"/>"
        "<text class=\"faint\" x=\"{0:.1f}\" y=\"14\" text-anchor=\"middle\">{3:.0f} %</text>\n",
        kLabels + share * scale, kTop - 6, height, share * 100);
  double y = kTop;
  for (const Measurement& m : suite.measurements) {
    if (!m.ok) continue;
    const double first = y;
    for (const Bar& bar : bars_of(m, setting)) {
      if (!bar.seconds) continue;
      const double share = m.roofline() / *bar.seconds;
      svg += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">"
          "<title>{}: {:.3f} ms, {:.0f} % of the roofline</title></rect>\n",
          bar.style, kLabels, y, share * scale, kBar - 1, bar.name, *bar.seconds * 1e3,
          share * 100);
      y += kBar;
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                       kLabels - 8, (first + y) / 2 + 4, escaped(m.name));
    if (const auto speed = m.speed())
      svg += fmt::format("<text class=\"faint\" x=\"{:.1f}\" y=\"{:.1f}\">{:.2f}</text>\n",
                         kLabels + kBars + 10, (first + y) / 2 + 4, *speed);
    y += kGap;
  }
  svg += fmt::format(
      "<line class=\"roofline\" x1=\"{0:.1f}\" y1=\"{1:.0f}\" x2=\"{0:.1f}\" "
      "y2=\"{2:.1f}\"/></svg>\n",
      kLabels + scale, kTop - 6, y);
  return svg;
}

std::string cells(std::initializer_list<std::string> texts) {
  std::string html;
  for (const std::string& text : texts) html += fmt::format("<td>{}</td>", text);
  return html;
}

std::string overhead_of(const Measurement& m) {
  return m.overhead() ? fmt::format("{:+.1f} %", *m.overhead() * 100) : "";
}

std::string cpu_cells(const Measurement& m) {
  return cells({time_cell(m.ours), time_cell(m.peer), ratio_cell(m.speed()), time_cell(m.peer_best),
                ratio_cell(m.speed_best()), time_cell(m.roofline()), percent(m.share()),
                overhead_of(m), escaped(m.engine)});
}

std::string gpu_cells(const Measurement& m) {
  const std::string peer = !m.peer_refusal.empty() ? m.peer_refusal : m.peer_implementation;
  return cells({time_cell(m.ours), time_cell(m.peer), ratio_cell(m.speed()),
                time_cell(m.roofline()), percent(m.share()), percent(m.copy_share()),
                time_cell(m.naive), time_cell(m.apart), escaped(m.engine), escaped(peer)});
}

constexpr const char* kCpuHead =
    "<th>case</th><th>ours, ms</th><th>oneDNN, ms</th><th>speed</th><th>its own layout, ms</th>"
    "<th>speed</th><th>roofline, ms</th><th>of roofline</th><th>fusion overhead</th>"
    "<th>engine</th>";
constexpr const char* kGpuHead =
    "<th>case</th><th>ours, ms</th><th>peer, ms</th><th>speed</th><th>roofline, ms</th>"
    "<th>of roofline</th><th>of copy</th><th>naive kernel, ms</th><th>as several graphs, ms</th>"
    "<th>engine</th><th>peer</th>";

std::string table(const SuiteResult& suite, const Setting& setting) {
  std::string html =
      fmt::format("<table><thead><tr>{}</tr></thead><tbody>\n", setting.gpu ? kGpuHead : kCpuHead);
  for (const Measurement& m : suite.measurements) {
    html += fmt::format("<tr><td>{}</td>", escaped(m.name));
    if (!m.ok)
      html += fmt::format("<td colspan=\"{}\">{}</td>", setting.gpu ? 10 : 9, escaped(m.check));
    else
      html += setting.gpu ? gpu_cells(m) : cpu_cells(m);
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string section(const SuiteResult& suite, const Setting& setting) {
  const Summary summary = summary_of(suite);
  std::string html =
      fmt::format("<h2 id=\"{0}\">{1}</h2>\n<p>", escaped(suite.name), escaped(suite.title));
  if (summary.speed)
    html += fmt::format("Geometric mean of the speed <b>{:.2f}</b>, worst {:.2f} ({}). ",
                        *summary.speed, *summary.slowest->speed(), escaped(summary.slowest->name));
  if (summary.share) html += fmt::format("{:.0f} % of the roofline. ", *summary.share * 100);
  if (const std::string target = target_text(suite.target); !target.empty()) {
    const Outcome outcome = outcome_of(suite.target, summary);
    html += fmt::format("Target: {}: <b class=\"{}\">{}</b>.", escaped(target),
                        outcome == Outcome::reached  ? "good"
                        : outcome == Outcome::missed ? "bad"
                                                     : "note",
                        to_string(outcome));
  }
  return html + fmt::format(
                    "</p>\n<p class=\"note\">{}</p>\n<figure>{}<figcaption>Share of the roofline "
                    "(red line); on the right the speed over {}.</figcaption></figure>\n{}",
                    escaped(suite.bound_by), chart(suite, setting),
                    setting.gpu ? "the peer" : "oneDNN on the user's layout",
                    table(suite, setting));
}

}  // namespace

namespace {

std::string introduction(const Setting& setting) {
  if (setting.gpu)
    return fmt::format(
        "<h1>Ashlar on a GPU</h1>\n<p>{}; {}; {}; {}; commit {}; copy bandwidth {:.2f} TB/s.</p>\n"
        "<p class=\"note\">Medians of interleaved samples in one process, the L2 cache flushed "
        "before each. Speed is the peer's time (its fastest plan) over ours: above 1 we are "
        "faster. The roofline is bytes at copy bandwidth or arithmetic at peak, whichever takes "
        "longer.</p>\n",
        escaped(setting.device), escaped(setting.driver),
        setting.peer.empty() ? "no peer" : escaped(setting.peer), escaped(setting.date),
        escaped(setting.commit), setting.copy_speed * 1e-12);
  return fmt::format(
      "<h1>Ashlar on the CPU</h1>\n<p>{}; {} threads; {}; {}; commit {}; load at start "
      "{:.2f}.</p>\n"
      "<p class=\"note\">Medians of interleaved samples in one process. Speed is oneDNN's time "
      "over ours: above 1 we are faster. The roofline is arithmetic at the FMA throughput or bytes "
      "at copy bandwidth, whichever takes longer, both measured between the samples; Winograd "
      "convolutions multiply less and may exceed it.</p>\n",
      escaped(setting.device), setting.threads,
      setting.peer.empty() ? "oneDNN was not built in" : escaped(setting.peer),
      escaped(setting.date), escaped(setting.commit), setting.load);
}

std::string legend(const Setting& setting) {
  return fmt::format(
      "<svg viewBox=\"0 0 600 16\" style=\"max-width: 40rem\" role=\"img\" aria-label=\"legend\">"
      "<rect class=\"ours\" x=\"0\" y=\"3\" width=\"22\" height=\"9\"/><text x=\"28\" "
      "y=\"12\">ours</text><rect class=\"peer\" x=\"90\" y=\"3\" width=\"22\" height=\"9\"/>"
      "<text x=\"118\" y=\"12\">{}</text><rect class=\"best\" x=\"270\" y=\"3\" "
      "width=\"22\" height=\"9\"/><text x=\"298\" y=\"12\">{}</text>"
      "<line class=\"roofline\" x1=\"450\" y1=\"1\" x2=\"450\" y2=\"14\"/><text x=\"458\" "
      "y=\"12\">roofline</text></svg>\n",
      setting.gpu ? "peer" : "oneDNN, user's layout",
      setting.gpu ? "ours, as several graphs" : "oneDNN, its own layout");
}

}  // namespace

std::string to_html(const Setting& setting, std::span<const SuiteResult> suites) {
  std::string html = kHead + introduction(setting) + legend(setting) + "<nav>";
  for (const SuiteResult& suite : suites)
    html += fmt::format("<a href=\"#{0}\">{0}</a> ", escaped(suite.name));
  html += "</nav>\n";
  for (const SuiteResult& suite : suites) html += section(suite, setting);
  return html + "</body></html>\n";
}

}  // namespace ashlar::bench

#include "region_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "../units.hpp"
#include "graph_figure.hpp"
#include "markup.hpp"

namespace ashlar::cli::html {

namespace {

std::string boundary_lines(const Inspection& plan, const RegionInspection& region,
                           const std::string& id) {
  std::string html;
  for (const RegionBoundary& boundary : region.boundaries)
    html += fmt::format(
        "<p class=\"faint\">Separate from <a href=\"#{0}-r{1}\">region {1}</a>, <code>{2}</code> "
        "goes through memory: {3}.</p>",
        id, boundary.region + 1, escaped(plan.graph.tensor(boundary.value).name),
        escaped(boundary.reason));
  return html;
}

// Engines that were asked, behind a line that counts them.
std::string attempt_list(const RegionInspection& region) {
  int slower = 0, refused = 0, others = 0;
  std::string rows;
  for (const EngineAttempt& attempt : region.attempts) {
    if (attempt.is_other_operation) {
      ++others;
      continue;
    }
    const bool is_able = attempt.outcome.ends_with("estimated");
    if (!attempt.is_chosen) ++(is_able ? slower : refused);
    rows += fmt::format(
        "<tr><td class=\"text mono\">{}</td><td class=\"text\">{}</td>"
        "<td class=\"text wrap\">{}{}</td></tr>\n",
        escaped(attempt.engine), to_string(attempt.method),
        attempt.is_chosen ? "<b>chosen</b>, " : "", escaped(attempt.outcome));
  }
  return fmt::format(
      "<details><summary>Other engines: {} slower by estimate, {} refused, {} for other "
      "operations</summary><table><tbody>\n{}</tbody></table></details>",
      slower, refused, others, rows);
}

std::string region_rows(const GraphReport& report, std::size_t index, const std::string& id) {
  const Inspection& plan = report.inspection;
  const RegionInspection& region = plan.regions[index];
  const RegionFacts facts = facts_of(report, index);
  const Roofline& roof = facts.roofline;
  std::string html = fmt::format(
      "<tr class=\"main\" id=\"{}-r{}\"><td class=\"text\"><span class=\"badge {}\">{}</span></td>"
      "<td class=\"text wrap mono\">{}</td><td class=\"text mono\">{}</td><td class=\"text\">{}"
      "</td><td>{}</td><td>{}</td><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{:.1f}</td>"
      "</tr>\n",
      id, index + 1, css_class(region.method), index + 1, escaped(region.name),
      region.engine.empty() ? "none in this build" : escaped(region.engine),
      region.engine.empty() ? "" : to_string(region.method), time_text(facts.seconds),
      time_text(roof.seconds()), share_markup(facts.share()), quantity_text(roof.flops, "FLOP"),
      quantity_text(roof.bytes, "B"), roof.bytes > 0 ? roof.flops / roof.bytes : 0);
  html += fmt::format("<tr class=\"more\"><td></td><td colspan=\"9\">{}",
                      boundary_lines(plan, region, id));
  std::string facts_line = fmt::format("{}, bound by {}", escaped(region.kind),
                                       roof.is_compute_bound() ? "arithmetic" : "memory");
  if (!region.config.empty())
    facts_line += fmt::format("; <code>{}</code>", escaped(region.config));
  if (region.scratch_bytes > 0)
    facts_line +=
        fmt::format("; scratch {}", quantity_text(static_cast<double>(region.scratch_bytes), "B"));
  if (report.measured) facts_line += fmt::format("; estimated {}", time_text(region.seconds));
  return html +
         fmt::format("<p class=\"faint\">{}.</p>{}</td></tr>\n", facts_line, attempt_list(region));
}

}  // namespace

std::string time_text(double seconds) {
  std::string text = duration_text(seconds);
  if (text.ends_with("us")) text.replace(text.size() - 2, 2, "\xC2\xB5s");
  return text;
}

std::string share_markup(double share) {
  return fmt::format("<span class=\"share\"><i style=\"width: {:.0f}%\"></i></span>{:.0f} %",
                     std::min(share, 1.0) * 100, share * 100);
}

RegionFacts facts_of(const GraphReport& report, std::size_t region) {
  if (report.measured)
    return {report.measured->region_seconds[region], report.measured->regions[region]};
  const RegionInspection& one = report.inspection.regions[region];
  return {one.seconds, nominal_roofline(one)};
}

std::string region_table(const GraphReport& report, const std::string& id) {
  std::string html = fmt::format(
      "<div class=\"scroll\"><table class=\"regions\"><thead><tr><th class=\"text\"></th>"
      "<th class=\"text\">region</th><th class=\"text\">engine</th>"
      "<th class=\"text\">computes by</th><th>{}</th><th>roofline</th>"
      "<th class=\"text\">of roofline</th><th>arithmetic</th><th>memory</th><th>FLOP/B</th></tr>"
      "</thead><tbody>\n",
      report.measured ? "measured" : "estimated");
  for (std::size_t i = 0; i < report.inspection.regions.size(); ++i)
    html += region_rows(report, i, id);
  return html + "</tbody></table></div>\n";
}

}  // namespace ashlar::cli::html

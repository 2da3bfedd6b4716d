#include "explain_page.hpp"

#include <ashlar/version.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "../units.hpp"
#include "graph_figure.hpp"
#include "markup.hpp"
#include "region_table.hpp"
#include "style.hpp"

namespace ashlar::cli::html {

namespace {

// Of the whole graph.
struct GraphFacts {
  double seconds = 0, roofline = 0;
};
GraphFacts graph_facts(const GraphReport& report) {
  if (report.measured) return {report.measured->plan.median, report.measured->roofline.seconds()};
  GraphFacts facts{report.inspection.seconds(), 0};
  for (const RegionInspection& region : report.inspection.regions)
    facts.roofline += region.roofline_seconds();
  return facts;
}

std::string counted(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string check_markup(const GraphReport& report) {
  if (!report.check) return "not checked";
  return report.check->ok ? "<span class=\"good\">ok</span>" : "<span class=\"bad\">FAILED</span>";
}

std::string ratio(const Rival& rival, double seconds) {
  return rival.timing
             ? fmt::format("{:.2f}x", rival.timing->median / seconds)
             : fmt::format("<span class=\"faint\" title=\"{}\">-</span>", escaped(rival.note));
}

std::string summary_table(std::span<const GraphReport> reports) {
  const bool measured = reports.front().measured.has_value();
  std::string html = fmt::format(
      "<div class=\"scroll\"><table class=\"summary\"><thead><tr><th class=\"text\">graph</th>"
      "<th>operations</th><th>regions</th><th>{}</th><th class=\"text\">of roofline</th>{}"
      "<th class=\"text\">check</th></tr></thead><tbody>\n",
      measured ? "measured" : "estimated",
      measured ? "<th>speed vs unfused</th><th>speed vs oneDNN</th>" : "");
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const GraphReport& report = reports[i];
    const GraphFacts facts = graph_facts(report);
    html += fmt::format(
        "<tr><td class=\"text\"><a href=\"#g{}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td>"
        "<td class=\"text\">{}</td>",
        i + 1, escaped(report.given.name()), report.inspection.operations,
        report.inspection.regions.size(), time_text(facts.seconds),
        share_markup(facts.seconds > 0 ? facts.roofline / facts.seconds : 0));
    if (report.measured)
      html += fmt::format("<td>{}</td><td>{}</td>", ratio(report.measured->unfused, facts.seconds),
                          ratio(report.measured->peer, facts.seconds));
    html += fmt::format("<td class=\"text\">{}</td></tr>\n", check_markup(report));
  }
  return html + "</tbody></table></div>\n";
}

// --- one graph

std::string fact_list(const GraphReport& report) {
  const Inspection& plan = report.inspection;
  std::string html = "<ul class=\"facts\">";
  const auto add = [&](const std::string& markup) { html += "<li>" + markup + "</li>"; };
  add(counted(static_cast<std::size_t>(plan.operations), "operation"));
  add(counted(plan.regions.size(), "region"));
  if (plan.device.present)
    add(fmt::format("workspace {}", quantity_text(static_cast<double>(plan.workspace_bytes), "B")));
  add(plan.notes.deterministic ? "deterministic" : "not deterministic");
  if (plan.notes.tf32) add("f32 products in tf32");
  if (plan.notes.reduced_precision_accumulation) add("reduced-precision accumulation");
  if (plan.notes.truncating_accumulation) add("tensor cores truncate sums");
  if (plan.notes.winograd) add(fmt::format("Winograd tiles of {}", plan.notes.winograd));
  if (report.check)
    add(fmt::format("check {}<span class=\"faint\">{}</span>", check_markup(report),
                    escaped(report.check->headline.substr(report.check->headline.find(',')))));
  return html + "</ul>\n";
}

std::string bar(const std::string& style, const std::string& name, double seconds, double most,
                const std::string& note) {
  return fmt::format(
      "<tr><td class=\"text\">{}</td><td class=\"text\"><i class=\"{}\" style=\"width: {:.1f}%\">"
      "</i></td><td><b>{}</b> <span class=\"faint\">{}</span></td></tr>\n",
      escaped(name), style, most > 0 ? seconds / most * 100 : 0, time_text(seconds), note);
}

std::string rival_bar(const Rival& rival, double seconds, double most) {
  if (rival.timing)
    return bar("rival", rival.name, rival.timing->median, most,
               fmt::format("{:.2f}x our time", rival.timing->median / seconds));
  return fmt::format(
      "<tr><td class=\"text\">{}</td><td class=\"text wrap faint\" colspan=\"2\">{}</td></tr>\n",
      escaped(rival.name), escaped(rival.note));
}

// The plan next to what it is compared with.
std::string bars(const GraphReport& report) {
  const GraphFacts facts = graph_facts(report);
  const double share = facts.seconds > 0 ? facts.roofline / facts.seconds * 100 : 0;
  double most = std::max(facts.seconds, facts.roofline);
  std::string html = "<div class=\"bars\"><table><tbody>\n", note;
  if (const auto& measured = report.measured) {
    for (const Rival* rival : {&measured->unfused, &measured->peer})
      if (rival->timing) most = std::max(most, rival->timing->median);
    html +=
        bar("plan", "this plan", facts.seconds, most, fmt::format("{:.0f} % of roofline", share));
    html += rival_bar(measured->unfused, facts.seconds, most);
    html += rival_bar(measured->peer, facts.seconds, most);
    const Roofline& roof = measured->roofline;
    note = fmt::format(
        "Medians, sides timed in turn ({} runs of this plan). Roofline: {} at {} or {} at {}, {}.",
        measured->plan.runs, quantity_text(roof.flops, "FLOP"),
        quantity_text(roof.flops / roof.arithmetic_seconds, "FLOP/s"),
        quantity_text(roof.bytes, "B"), quantity_text(roof.bytes / roof.memory_seconds, "B/s"),
        measured->has_measured_rates ? "rates measured between the runs"
                                     : "rates of the data sheet");
  } else {
    html +=
        bar("plan", "this plan", facts.seconds, most, fmt::format("estimated, {:.0f} %", share));
    note = "Estimates of the cost model; nothing was run. Roofline by nominal rates of the device.";
  }
  if (report.measured && report.measured->is_busy)
    note += " The machine was busy with other processes: these times say little.";
  html += bar("roofline", "roofline", facts.roofline, most,
              report.measured && report.measured->roofline.is_compute_bound() ? "compute bound"
              : report.measured                                               ? "memory bound"
                                                                              : "sum of regions");
  if (report.inspection.notes.winograd)
    note += " Winograd multiplies less than the roofline counts: its share may pass 100 %.";
  return html + fmt::format("</tbody></table><p class=\"faint\"><small>{}</small></p></div>\n",
                            escaped(note));
}

std::string legend(const Inspection& plan) {
  std::string html = "<ul class=\"legend\">";
  std::set<ComputeMethod> methods;
  for (const RegionInspection& region : plan.regions) methods.insert(region.method);
  for (const ComputeMethod method : methods)
    html += fmt::format("<li><i class=\"method {}\"></i>region by {}</li>", css_class(method),
                        to_string(method));
  return html +
         "<li><i></i>operation</li><li><i class=\"pill\"></i>input</li>"
         "<li><i class=\"pill strong\"></i>output</li>"
         "<li><i class=\"pill dashed\"></i>workspace tensor</li></ul>";
}

Figure figure_of(const GraphReport& report, const std::string& id) {
  std::vector<RegionCaption> captions;
  for (std::size_t i = 0; i < report.inspection.regions.size(); ++i) {
    const RegionInspection& region = report.inspection.regions[i];
    const RegionFacts facts = facts_of(report, i);
    captions.push_back(
        {fmt::format("{} \xC2\xB7 {}", i + 1, region.engine.empty() ? "no engine" : region.engine),
         fmt::format("{}{}, {:.0f} % of roofline", time_text(facts.seconds),
                     report.measured ? "" : " estimated", facts.share() * 100),
         fmt::format("#{}-r{}", id, i + 1)});
  }
  return region_figure(report.inspection, captions);
}

// What the planner changed before it partitioned the graph, with the graph as it was.
std::string rewrites(const GraphReport& report) {
  if (report.inspection.rewrites.empty()) return {};
  std::string html =
      fmt::format("<details><summary>Rewritten before partitioning: {}</summary><ul>",
                  counted(report.inspection.rewrites.size(), "change"));
  for (const std::string& note : report.inspection.rewrites)
    html += fmt::format("<li>{}</li>", escaped(note));
  return html + fmt::format(
                    "</ul></details><details><summary>The graph as written: {}</summary>"
                    "<div class=\"scroll\">{}</div></details>\n",
                    counted(report.given.nodes().size(), "operation"),
                    plain_figure(report.given).svg);
}

// `number` counts from 1; a page about one graph has its name as the title already.
std::string section(const GraphReport& report, std::size_t number, bool has_heading) {
  constexpr double kPageWidth = 1100;  // pixels; wider figures use the whole window
  const std::string id = fmt::format("g{}", number);
  const Figure figure = figure_of(report, id);
  return fmt::format(
      "<section id=\"{}\">{}\n{}<div class=\"overview\"><figure class=\"scroll{}\">{}</figure>\n"
      "{}</div>\n{}<h3>Regions in execution order</h3>\n{}{}</section>\n",
      id, has_heading ? fmt::format("<h2>{}</h2>", escaped(report.given.name())) : "",
      fact_list(report), figure.width > kPageWidth ? " wide" : "", figure.svg, bars(report),
      legend(report.inspection), region_table(report, id), rewrites(report));
}

constexpr const char* kMarkers =
    "<svg width=\"0\" height=\"0\" style=\"position: absolute\" aria-hidden=\"true\"><defs>"
    "<marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
    "markerHeight=\"7\" orient=\"auto\"><path class=\"arrowhead\" d=\"M0 .8 7.5 4 0 7.2z\"/>"
    "</marker></defs></svg>\n";

}  // namespace

std::string explain_page(std::span<const GraphReport> reports) {
  const DeviceProps& device = reports.front().inspection.device;
  const bool is_single = reports.size() == 1;
  const std::string title = is_single
                                ? fmt::format("{} on {}", reports.front().given.name(), device.name)
                                : fmt::format("{} graphs on {}", reports.size(), device.name);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>{0} - "
      "Ashlar</title>"
      "\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<style>{1}</style></head><body>\n{2}<h1>{0}</h1>\n<p class=\"faint\">{3}; Ashlar "
      "{4}{5}.</p>\n",
      escaped(title), kStyle, kMarkers, escaped(device.description), ASHLAR_VERSION,
      device.present ? "" : "; the device is not present here: plans are explained, not built");
  html +=
      "<p class=\"faint\">A region is a set of operations that one kernel computes. Tensors "
      "between "
      "regions go through memory; inside a region they stay in registers or caches.</p>\n";
  if (!is_single) html += summary_table(reports);
  for (std::size_t i = 0; i < reports.size(); ++i) html += section(reports[i], i + 1, !is_single);
  return html + "</body></html>\n";
}

}  // namespace ashlar::cli::html

#include <fmt/format.h>

#include <ashlar/inspect.hpp>
#include <cstdio>
#include <memory>

#include "commands.hpp"
#include "compile_flags.hpp"
#include "files.hpp"
#include "graph_report.hpp"
#include "html/explain_page.hpp"
#include "progress.hpp"

namespace ashlar::cli {

namespace {

struct ExplainFlags : CompileFlags {
  std::vector<std::string> graphs;
  std::string html;  // file; empty: text on standard output
  ReportRequest request;
};

std::string headline(const GraphReport& report, const std::string& counter) {
  const Inspection& plan = report.inspection;
  return fmt::format("{}{} on {} ({}): {} operation{} in {} region{}\n", counter, plan.graph.name(),
                     plan.device.name, plan.device.description, plan.operations,
                     plan.operations == 1 ? "" : "s", plan.regions.size(),
                     plan.regions.size() == 1 ? "" : "s");
}

// With a page, standard output gets what was measured and checked only.
void print_report(const GraphReport& report, bool is_brief, const std::string& counter) {
  fmt::print("{}", is_brief ? headline(report, counter) : report.inspection.to_text());
  if (report.check) {
    fmt::print("{}\n", report.check->headline);
    if (!is_brief || !report.check->ok)
      for (const std::string& detail : report.check->details) fmt::print("  {}\n", detail);
  }
  fmt::print("{}", report.timing);
  std::fflush(stdout);
}

int explain_graphs(const ExplainFlags& flags) {
  const bool runs = flags.request.check || flags.request.time;
  const Device device = runs ? flags.present_device() : flags.chosen_device();
  Progress progress;
  std::vector<GraphReport> reports;
  bool ok = true;
  for (const std::string& path : flags.graphs) {
    const std::string counter =
        flags.graphs.size() == 1 ? ""
                                 : fmt::format("[{}/{}] ", reports.size() + 1, flags.graphs.size());
    progress.stage(fmt::format("{}reading {}", counter, path));
    reports.push_back(
        report_graph(read_graph(path), device, flags.chosen_options(), flags.request, progress));
    const GraphReport& report = reports.back();
    progress.pause();
    print_report(report, !flags.html.empty(), counter);
    ok = ok && (!report.check || report.check->ok);
  }
  if (!flags.html.empty()) {
    write_file(flags.html, html::explain_page(reports));
    fmt::print("page: {}\n", flags.html);
  }
  return ok ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_explain_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command =
      app.add_subcommand("explain",
                         "Show how graphs are partitioned into fusion regions, which engine runs "
                         "each region and why; the device need not be present");
  command
      ->add_option("GRAPH", flags->graphs,
                   "Graphs in JSON (docs/graph-json.md), - for standard input")
      ->required();
  command
      ->add_option("--html", flags->html,
                   "Write one page that draws the graphs with their regions, instead of text")
      ->type_name("FILE");
  command->add_flag("--check", flags->request.check,
                    "Run on random inputs and compare with the double-precision oracle; exit 1 on "
                    "a mismatch");
  command->add_flag("--time", flags->request.time,
                    "Time the plan and each region, side by side with the same engines unfused, "
                    "with oneDNN (where the build has it) and with the roofline");
  command
      ->add_option("--time-budget", flags->request.time_budget,
                   "Seconds of timing per graph, all sides together (default 1)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 3600.0));
  command->add_option("--seed", flags->request.seed, "Seed of the random inputs (default 1)")
      ->type_name("N");
  add_compile_flags(*command, *flags);
  command->callback([flags, &action] { action = [flags] { return explain_graphs(*flags); }; });
}

}  // namespace ashlar::cli

#include "graph_report.hpp"

#include <fmt/format.h>

#include "inputs.hpp"
#include "runner.hpp"

namespace ashlar::cli {

GraphReport report_graph(Graph graph, const Device& device, const CompileOptions& options,
                         const ReportRequest& request, Progress& progress) {
  GraphReport report;
  report.given = std::move(graph);
  const std::string name = report.given.name();
  progress.stage(fmt::format("compiling {}", name));
  if (!request.check && !request.time) {
    report.inspection = inspect(report.given, device, options);
    return report;
  }
  require_memory(report.given, request.check);
  TensorMemory memory(report.given);
  fill_inputs(memory, {}, request.seed);
  const Runner runner(compile(report.given, device, options), memory);
  report.inspection = runner.plan().inspect();
  if (request.check) {
    progress.stage(fmt::format("checking {} in double precision", name));
    runner.run();
    runner.download_outputs();
    report.check = check_outputs(memory, runner.plan().notes());
  }
  if (request.time) {
    report.measured = measure_side_by_side(runner, memory, options, request.time_budget, progress);
    report.timing = describe(*report.measured, runner.plan());
  }
  return report;
}

}  // namespace ashlar::cli

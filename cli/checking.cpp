#include "checking.hpp"

#include <fmt/format.h>

namespace ashlar::cli {

namespace {

// Error as a share of its bound; 0 / 0 is a perfect result.
double severity(const Comparison& comparison) {
  if (comparison.worst_error == 0) return 0;
  return comparison.worst_error / comparison.worst_bound;
}

}  // namespace

CheckReport check_outputs(const TensorMemory& memory, const PlanNotes& notes) {
  const Graph& graph = memory.graph();
  const std::vector<void*> pointers = memory.pointers();
  const std::vector<const void*> readable(pointers.begin(), pointers.end());
  CheckReport report;
  Comparison worst;
  std::int64_t compared = 0;
  for (const Expected& expected : evaluate_reference(graph, readable, notes)) {
    const void* actual = memory.at(memory.position_of(expected.tensor));
    const Comparison comparison = expected.compare(graph.tensor(expected.tensor), actual);
    report.details.push_back(comparison.summary);
    compared += comparison.compared;
    const bool worse =
        worst.ok == comparison.ok ? severity(comparison) >= severity(worst) : !comparison.ok;
    if (worse) worst = comparison;
    report.ok = report.ok && comparison.ok;
  }
  report.headline =
      fmt::format("check: {}, worst error {:.3g}, its bound {:.3g}, {} elements compared",
                  report.ok ? "ok" : "FAILED", worst.worst_error, worst.worst_bound, compared);
  return report;
}

void require_intact_guards(const TensorMemory& memory) {
  for (std::size_t position = 0; position < memory.tensors().size(); ++position)
    if (!memory.buffer(position).guards_intact())
      throw Error(ErrorCode::internal,
                  fmt::format("memory around tensor '{}' was overwritten",
                              memory.graph().tensor(memory.tensors()[position]).name));
}

}  // namespace ashlar::cli

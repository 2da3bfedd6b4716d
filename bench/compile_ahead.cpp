// Compiles the kernels of whole suites on all cores before anything is measured.
#include <fmt/format.h>

#include "engines_used.hpp"
#include "gpu.hpp"
#include "gpu_tensors.hpp"
#include "measure.hpp"
#include "memory.hpp"

namespace ashlar::bench {

namespace {

void add_case(const Case& one, const Device& device, const PlanRequest& asked,
              BundleBuilder& kernels) {
  const auto add = [&](const Problem& problem, const PlanRequest& request = {}) {
    kernels.add(problem.build(), plan_options(problem, request));
  };
  const Graph graph = one.problem.build();
  add(one.problem, asked);
  add(one.naive ? *one.naive : one.problem, {.naive = true});
  if (one.prepare) add(*one.prepare, asked);
  if (one.alone) add(*one.alone, asked);
  for (const Problem& part : one.apart) add(part, asked);
  if (one.check_prepare) add(*one.check_prepare);
  // Tuning may choose another engine later; its kernel for the check is compiled then.
  const auto used =
      engines_used(inspect(graph, device, plan_options(one.problem, {.engine = asked.engine})));
  if (one.check) add(*one.check, {.engine = used.main_engine});
  for (const TensorId id : graph.bound_tensors())
    if (const Tensor& tensor = graph.tensor(id); tensor.kind == TensorKind::output)
      if (const auto sampling = sampling_graph(tensor)) kernels.add(*sampling);
}

}  // namespace

BundleBuilder kernels_of(const std::vector<Suite>& suites, const Device& device,
                         const PlanRequest& request) {
  BundleBuilder kernels(device);
  for (const Suite& suite : suites)
    for (const Case& one : suite.cases) {
      try {
        add_case(one, device, request, kernels);
      } catch (const Error&) {
        continue;  // measuring reports the reason
      }
    }
  return kernels;
}

void compile_ahead(const std::vector<Suite>& suites, const MeasureOptions& options,
                   const std::function<void(const std::string&)>& progress) {
  progress("planning");
  const BundleBuilder kernels = kernels_of(suites, options.gpu->device(), plan_request_of(options));
  try {
    kernels.build(
        [&](int done, int all) { progress(fmt::format("compiled {} of {} kernels", done, all)); });
  } catch (const Error&) {
    return;  // measuring reports the kernel that does not compile
  }
}

}  // namespace ashlar::bench

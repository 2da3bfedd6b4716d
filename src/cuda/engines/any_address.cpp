#include "cuda/engines/any_address.hpp"

#include <algorithm>

#include "cuda/engines/engines.hpp"
#include "cuda/launch/tensor_map.hpp"

namespace ashlar::cuda {

namespace {

bool begins_at_piece(const View& view) {
  const bool is_one_element = std::all_of(view.strides.begin(), view.strides.end(),
                                          [](std::int64_t stride) { return stride == 0; });
  return is_one_element || view.offset % piece_elements(view.dtype) == 0;
}

bool keeps(const PlanNotes& promised, const PlanNotes& notes) {
  return (notes.deterministic || !promised.deterministic) && (promised.tf32 || !notes.tf32) &&
         (promised.truncating_sums || !notes.truncating_sums) &&
         (promised.reduced_precision_accumulation || !notes.reduced_precision_accumulation);
}

}  // namespace

bool begins_at_pieces(const PointwiseProgram& program) {
  using Step = PointwiseProgram::Step;
  return std::all_of(program.steps.begin(), program.steps.end(),
                     [](const Step& step) {
                       return step.kind != Step::Kind::load || begins_at_piece(step.view);
                     }) &&
         std::all_of(program.stores.begin(), program.stores.end(),
                     [](const auto& store) { return begins_at_piece(store.view); });
}

std::function<KernelDesign()> for_any_address(const Graph& graph, const Region& region,
                                              const Config& config, const DeviceProps& device) {
  return [&graph, &region, promised = config.notes, device] {
    for (const CudaEngine* engine : {&gemm_sm80_engine(), &conv_sm80_engine()}) {
      if (!engine->supports(region, device)) continue;
      for (const Config& other : engine->configs(region, device))
        if (other.scratch_bytes == 0 && keeps(promised, other.notes))
          return engine->design(graph, region, other, device);
    }
    return generic_engine().design(graph, region, {}, device);
  };
}

}  // namespace ashlar::cuda

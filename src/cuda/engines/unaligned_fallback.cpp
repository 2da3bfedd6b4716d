#include "cuda/engines/unaligned_fallback.hpp"

#include <algorithm>

#include "cuda/engines/engines.hpp"
#include "cuda/launch/tensor_map.hpp"

namespace ashlar::cuda {

namespace {

bool is_aligned_view(const View& view) {
  const bool is_one_element = std::all_of(view.strides.begin(), view.strides.end(),
                                          [](std::int64_t stride) { return stride == 0; });
  return is_one_element || view.offset % elements_per_16_bytes(view.dtype) == 0;
}

bool keeps(const PlanNotes& promised, const PlanNotes& notes) {
  return (notes.deterministic || !promised.deterministic) && (promised.tf32 || !notes.tf32) &&
         (promised.truncating_accumulation || !notes.truncating_accumulation) &&
         (promised.reduced_precision_accumulation || !notes.reduced_precision_accumulation);
}

}  // namespace

bool has_aligned_views(const PointwiseProgram& program) {
  using Step = PointwiseProgram::Step;
  return std::all_of(program.steps.begin(), program.steps.end(),
                     [](const Step& step) {
                       return step.kind != Step::Kind::load || is_aligned_view(step.view);
                     }) &&
         std::all_of(program.stores.begin(), program.stores.end(),
                     [](const auto& store) { return is_aligned_view(store.view); });
}

std::function<KernelDesign()> unaligned_fallback(const Graph& graph, const Region& region,
                                                 const Config& config, const DeviceProps& device) {
  return [&graph, &region, promised = config.notes, device] {
    for (const CudaEngine* engine :
         {&gemm_sm80_engine(), &conv_sm80_engine(), &attention_sm80_engine()}) {
      if (!engine->supports(region, device)) continue;
      for (const Config& other : engine->configs(region, device))
        if (other.scratch_bytes == 0 && keeps(promised, other.notes))
          return engine->design(graph, region, other, device);
    }
    return generic_engine().design(graph, region, {}, device);
  };
}

}  // namespace ashlar::cuda

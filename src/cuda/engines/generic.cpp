// Generic engine: supports every region with one thread (or CTA) per output and 64-bit indices. It
// makes every valid graph run; fast engines replace it where they support the region.
#include <algorithm>

#include "cuda/engines/engines.hpp"
#include "cuda/engines/gemm_tails.hpp"
#include "cuda/engines/generic/operations.hpp"
#include "graph/op_traits.hpp"

namespace ashlar::cuda {

namespace {

bool has_complex(const PointwiseProgram& program) {
  return std::any_of(program.steps.begin(), program.steps.end(),
                     [](const auto& step) {
                       return step.kind == PointwiseProgram::Step::Kind::load &&
                              is_complex(step.view.dtype);
                     }) ||
         std::any_of(program.stores.begin(), program.stores.end(),
                     [](const auto& store) { return is_complex(store.view.dtype); });
}

GenericKernel describe_region(const Region& region) {
  GenericKernel kernel(region);
  if (!region.anchor) {
    kernel.file("pointwise");
    kernel.pass(element_count(region.epilogue.space));
    return kernel;
  }
  std::visit(
      [&](const auto& op) {
        if constexpr (Described<std::remove_cvref_t<decltype(op)>>) describe(op, kernel);
      },
      region.anchor->op);
  return kernel;
}

class GenericEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.generic"; }
  EngineKind kind() const override { return EngineKind::naive; }
  ComputeMethod method() const override { return ComputeMethod::thread_per_output; }
  std::string_view description() const override {
    return "any region, one thread per output with 64-bit indices";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (has_complex(region.epilogue) ||
        std::any_of(region.prologues.begin(), region.prologues.end(), has_complex))
      return Support::no("complex tensors are not supported");
    if (!region.anchor) return Support::yes();
    if (Support support = has_no_tails(region); !support) return support;
    const bool described =
        std::visit([](const auto& op) { return Described<std::remove_cvref_t<decltype(op)>>; },
                   region.anchor->op);
    if (!described)
      return Support::no("'{}' has no generic kernel", traits_of(region.anchor->op).name);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    // Every operand of every term is loaded through the caches with its own address computation.
    Config config;
    config.cost = {.flops = region.flops(),
                   .bytes = region.bytes(),
                   .flops_fraction = 0.01,
                   .bytes_fraction = 0.1};
    config.scratch_bytes = describe_region(region).scratch_bytes();
    config.notes.runtime_compiled = true;
    return {config};
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config&,
                      const DeviceProps& device) const override {
    return describe_region(region).design(graph, device);
  }
};

}  // namespace

const CudaEngine& generic_engine() {
  static const GenericEngine engine;
  return engine;
}

}  // namespace ashlar::cuda

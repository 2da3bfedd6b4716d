// Matrix products and convolutions on tensor cores by cp.async and mma.sync: any layout, type and
// fusion, on every GPU from sm_80 on.
#include "cuda/engines/engines.hpp"
#include "cuda/engines/product_tails.hpp"
#include "cuda/engines/sm80/product_design.hpp"

namespace ashlar::cuda {

namespace {

class ProductEngine : public CudaEngine {
 public:
  explicit ProductEngine(bool convolutions) : convolutions_(convolutions) {}
  std::string_view id() const override {
    return convolutions_ ? "cuda.conv_sm80" : "cuda.gemm_sm80";
  }
  std::string_view description() const override {
    return convolutions_ ? "convolutions of any layout on tensor cores (mma.sync), all directions"
                         : "matrix products of any layout on tensor cores (mma.sync)";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    const bool is_matmul = region.anchor_as<Matmul>() != nullptr;
    if (convolutions_ && is_matmul) return Support::other_operation("a matrix product");
    if (!convolutions_ && !is_matmul) return Support::other_operation("no matrix product");
    if (Support support = is_tensor_product(region); !support) return support;
    if (Support support = has_no_tails(region); !support) return support;
    for (const PointwiseProgram& prologue : region.prologues)
      if (prologue.has_blocks()) return Support::no("scales of blocks before the product");
    return ProductDesigner(region, device).support();
  }
  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    return ProductDesigner(region, device).configs(id());
  }
  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    return ProductDesigner(region, device).design(graph, config);
  }

 private:
  bool convolutions_;
};

}  // namespace

const CudaEngine& gemm_sm80_engine() {
  static const ProductEngine engine(false);
  return engine;
}

const CudaEngine& conv_sm80_engine() {
  static const ProductEngine engine(true);
  return engine;
}

}  // namespace ashlar::cuda

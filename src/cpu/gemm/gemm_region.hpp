// Helpers of the engines that map a region to GEMMs.
#pragma once

#include <memory>

#include "cpu/gemm/gemm.hpp"
#include "plan/region.hpp"

namespace ashlar::cpu {

// Configurations of a region that runs these GEMMs.
inline std::vector<Config> gemm_region_configs(const std::vector<GemmShape>& shapes,
                                               const Region& region, const DeviceProps& device,
                                               bool may_split, bool in_place = false) {
  Cost extra;
  extra.bytes = region.bytes();
  extra.flops = region.epilogue.flops_per_element() *
                static_cast<double>(element_count(region.epilogue.space));
  return gemm_configs(shapes, device, region.precision(), extra, may_split, in_place);
}

// Builds the kernel for the region's precision.
template <template <class> class KernelType, class... Args>
std::unique_ptr<Kernel> build_gemm_kernel(const Region& region, Args&&... args) {
  if (region.precision() == f64)
    return std::make_unique<KernelType<double>>(region, std::forward<Args>(args)...);
  return std::make_unique<KernelType<float>>(region, std::forward<Args>(args)...);
}

}  // namespace ashlar::cpu

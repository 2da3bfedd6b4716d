#include "cpu/kernels/quad_product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/quad_product.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/quad_product-inl.h"

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(BestQuadProduct);
HWY_EXPORT(PlainQuadProduct);

const QuadProduct& quad_product() { return HWY_DYNAMIC_DISPATCH(BestQuadProduct)(); }
const QuadProduct& plain_quad_product() { return HWY_DYNAMIC_DISPATCH(PlainQuadProduct)(); }

}  // namespace ashlar::cpu
#endif  // HWY_ONCE

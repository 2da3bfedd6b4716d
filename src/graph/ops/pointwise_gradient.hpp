// The gradients of the pointwise modes.
#pragma once

#include "graph/gradient_context.hpp"

namespace ashlar {

// OpTraits::gradient of Pointwise.
void pointwise_gradient(GradientContext& context);

}  // namespace ashlar

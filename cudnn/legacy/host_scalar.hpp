// Scalars that callers pass in host memory, in the type of the tensor they belong to.
#pragma once

#include <ashlar/dtype.hpp>

namespace ashlar::cudnn {

// The scalar at `from`: f64, f32, f16 or bf16.
double read_host_scalar(const void* from, DType dtype);

}  // namespace ashlar::cudnn

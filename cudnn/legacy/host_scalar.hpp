// Numbers that callers hand over in host memory, in the type of the data they belong to.
#pragma once

#include <ashlar/dtype.hpp>

namespace ashlar::cudnn {

// The number at `from`: f64, f32, f16 or bf16.
double read_host_scalar(const void* from, DType dtype);

}  // namespace ashlar::cudnn

#include "ops/op_case.hpp"

namespace ashlar::ops {

std::vector<OpCase> spatial_cases() { return {}; }

}  // namespace ashlar::ops

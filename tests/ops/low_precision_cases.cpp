#include "ops/op_case.hpp"

namespace ashlar::ops {

std::vector<OpCase> low_precision_cases() { return {}; }

}  // namespace ashlar::ops

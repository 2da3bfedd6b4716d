#include "ops/op_case.hpp"

namespace ashlar::ops {

std::vector<OpCase> statistics_cases() { return {}; }

}  // namespace ashlar::ops

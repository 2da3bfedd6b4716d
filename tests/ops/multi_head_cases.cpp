#include "ops/op_case.hpp"

namespace ashlar::ops {

std::vector<OpCase> multi_head_cases() { return {}; }

}  // namespace ashlar::ops

#include "ops/op_case.hpp"

namespace ashlar::ops {

std::vector<OpCase> recurrent_cases() { return {}; }

}  // namespace ashlar::ops

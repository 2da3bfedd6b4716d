#include "ops/op_case.hpp"

namespace ashlar::ops {

std::vector<OpCase> sequence_cases() { return {}; }

}  // namespace ashlar::ops

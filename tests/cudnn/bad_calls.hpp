// Invalid calls for bad_calls_test.cpp, which compares their status and message with a golden file.
#pragma once

#include <cudnn.h>

#include <functional>
#include <string>
#include <vector>

namespace ashlar::cudnn::test {

struct BadCall {
  std::string name;  // unique
  // Makes the call; its status and the last error are compared with the golden file.
  std::function<cudnnStatus_t()> call;
};
using BadCalls = std::vector<BadCall>;

BadCalls bad_handle_calls();
BadCalls bad_attribute_calls();
BadCalls bad_parameter_calls();
BadCalls bad_operation_calls();
BadCalls bad_norm_and_attention_calls();
BadCalls bad_plan_calls();
BadCalls bad_null_calls();
BadCalls bad_legacy_calls();

}  // namespace ashlar::cudnn::test

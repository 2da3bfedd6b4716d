// Prints what the bad calls of tests/cudnn return from the libcudnn it is linked with, ours or
// NVIDIA's: one line "name | status" or "name | signal" each. Every call runs in its own process.
//
//   g++ -std=c++20 -DCUDNN_WITHOUT_CUDA_HEADERS -Icudnn/include -Itests tests/clients/bad_calls.cpp
//       tests/cudnn/scoped_descriptor.cpp tests/cudnn/bad_*calls.cpp tests/cudnn/bad_operation.cpp
//       -lcudnn
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "cudnn/bad_calls.hpp"

namespace {

using namespace ashlar::cudnn::test;

void answer(const BadCall& bad) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    try {
      std::printf("%s | %d\n", bad.name.c_str(), static_cast<int>(bad.call()));
    } catch (const std::exception& error) {  // a descriptor that the call needs was rejected
      std::printf("%s | not called: %s\n", bad.name.c_str(), error.what());
    }
    std::fflush(stdout);
    _exit(0);
  }
  int how = 0;
  waitpid(child, &how, 0);
  if (WIFSIGNALED(how)) std::printf("%s | signal %d\n", bad.name.c_str(), WTERMSIG(how));
}

}  // namespace

int main() {
  for (const auto& group :
       {bad_handle_calls, bad_attribute_calls, bad_parameter_calls, bad_operation_calls,
        bad_norm_and_attention_calls, bad_plan_calls, bad_null_calls, bad_legacy_calls})
    for (const BadCall& bad : group()) answer(bad);
}

// A failure of cuda.host happens in stream order, after the call that enqueued it has returned. It
// reaches the caller all the same. On a GPU, real or emulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ashlar/error.hpp>
#include <ashlar/memory.hpp>
#include <cmath>

#include "captured_run.hpp"
#include "cuda/cuda_device.hpp"
#include "failing_engine.hpp"

namespace ashlar::cuda {
namespace {

using testing::HasSubstr;

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(GpuHostEngine, FailuresReachTheCaller) {
  if (device_count() == 0) GTEST_SKIP() << driver().reason;
  const Device gpu = Device::named("cuda:0");
  const FailingRun failing(0);
  const Stream stream;
  const auto says_why = testing::AllOf(HasSubstr("cuda.host"), HasSubstr("outputs are invalid"),
                                       HasSubstr("no memory for the weights"));
  failing.run(stream.handle());
  EXPECT_NO_THROW(rethrow_host_failure(1)) << "another GPU";
  EXPECT_THAT(error_of([&] { gpu.synchronize(stream.handle()); }), says_why);
  EXPECT_EQ(error_of([&] { gpu.synchronize(stream.handle()); }), "no error") << "reported once";

  // A caller that waits by other means learns it from the next run, and its outputs are NaN.
  failing.run(stream.handle());
  stream.wait();
  EXPECT_THAT(error_of([&] { failing.run(stream.handle()); }), says_why);
  float values[4] = {};
  failing.y().download(values, sizeof(values));
  for (const float value : values) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace ashlar::cuda

// A failure of cuda.host happens in stream order, after the call that enqueued it has returned. It
// reaches the caller all the same. On a GPU, real or emulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ashlar/error.hpp>
#include <ashlar/memory.hpp>
#include <cmath>

#include "captured_run.hpp"
#include "cuda/cuda_device.hpp"
#include "cuda/engines/engines.hpp"
#include "plan/kernel.hpp"
#include "plan/partition.hpp"

namespace ashlar::cuda {
namespace {

using testing::HasSubstr;

class FailingKernel final : public Kernel {
 public:
  void run(const KernelContext&) const override {
    fail(ErrorCode::out_of_memory, "no memory for the weights");
  }
};

class FailingEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.failing"; }
  EngineKind kind() const override { return EngineKind::reference; }
  std::string_view description() const override { return "fails in every run"; }
  Support supports(const Region&, const DeviceProps&) const override { return Support::yes(); }
  std::vector<Config> configs(const Region&, const DeviceProps&) const override {
    return {Config{}};
  }
  std::unique_ptr<Kernel> build(const Graph&, const Region&, const Config&,
                                const DeviceProps&) const override {
    return std::make_unique<FailingKernel>();
  }
};

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
  Graph graph("sample");
  graph.output("y", relu(graph.input("x", {4}, f32)));
  const LoweredGraph lowered = lower(graph, true);
  const std::vector<Region> regions =
      partition(lowered, std::vector<FusionLimits>(lowered.graph.nodes().size()));
  ASSERT_EQ(regions.size(), 1u);
  const FailingEngine failing;
  const auto kernel = make_host_engine(failing)->build(lowered.graph, regions[0], {}, gpu.props());

  const Memory x(gpu, 16), y(gpu, 16);
  std::vector<Location> locations(lowered.graph.tensors().size());
  locations[static_cast<std::size_t>(regions[0].reads[0])] = {Location::Kind::bound, 0, nullptr};
  locations[static_cast<std::size_t>(regions[0].writes[0])] = {Location::Kind::bound, 1, nullptr};
  void* const pointers[] = {x.data(), y.data()};
  const Stream stream;
  const KernelContext context(locations, pointers, nullptr, stream.handle());

  const auto says_why = testing::AllOf(HasSubstr("cuda.host"), HasSubstr("outputs are invalid"),
                                       HasSubstr("no memory for the weights"));
  kernel->run(context);
  EXPECT_THAT(error_of([&] { synchronize(gpu, stream.handle()); }), says_why);
  EXPECT_EQ(error_of([&] { synchronize(gpu, stream.handle()); }), "no error") << "reported once";

  // A caller that waits by other means learns it from the next run, and its outputs are NaN.
  kernel->run(context);
  stream.wait();
  EXPECT_THAT(error_of([&] { kernel->run(context); }), says_why);
  float values[4] = {};
  y.download(values, sizeof(values));
  for (const float value : values) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace ashlar::cuda

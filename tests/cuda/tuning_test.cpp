// Tuning on a GPU, real or emulated: single runs, and runs back to back as a CUDA graph.
#include <ashlar/memory.hpp>
#include <ashlar/tune.hpp>

#include "api/backends.hpp"
#include "gpu_check.hpp"
#include "plan/backend.hpp"

namespace ashlar::cuda {
namespace {

class GpuTuning : public GpuTest {};

TEST_F(GpuTuning, WorkIsDoneWhenItIsReplayed) {
  const Device device = Device::named("cuda:0");
  const Backend& gpu = backend_for(DeviceKind::cuda);
  constexpr std::int64_t kBytes = 100;
  Memory memory(device, kBytes);
  const auto bytes = [&] {
    std::vector<std::uint8_t> all(kBytes);
    memory.download(all.data(), kBytes);
    return all;
  };
  memory.fill(std::byte{1});
  device.synchronize();
  const auto recording = gpu.recording(device.props(), [&](void* stream) {
    gpu.fill(device.props(), memory.data(), std::byte{7}, kBytes, stream);
  });
  EXPECT_EQ(bytes(), std::vector<std::uint8_t>(kBytes, 1));
  for (int i = 0; i < 2; ++i) {
    memory.fill(std::byte{1});
    recording->replay(nullptr);
    EXPECT_EQ(bytes(), std::vector<std::uint8_t>(kBytes, 7));
  }
}

Graph tuned_gemm() {
  Graph graph("product");
  const Value x = graph.input("x", {4, 256}, bf16);
  const Value w = graph.input("w", {256, 128}, bf16, Layout(Dims{1, 256}));
  graph.output("y", graph.matmul(x, w, {.dtype = f32}), {.dtype = bf16});
  return graph;
}

TEST_F(GpuTuning, EveryCandidateIsTimed) {
  const Device device = Device::named("cuda:0");
  const Memory weights(device, std::int64_t{256} * 128 * 2);
  for (const bool back_to_back : {false, true}) {
    SCOPED_TRACE(back_to_back ? "back to back" : "alone");
    CompileOptions options{.tune = true, .tune_back_to_back = back_to_back, .max_candidates = 2};
    options.constants = {{"w", weights.data()}};
    const std::vector<RegionTrials> regions =
        autotune(tuned_gemm(), device, {.options = options, .again = true});
    ASSERT_EQ(regions.size(), 1);
    ASSERT_EQ(regions[0].trials.size(), 2);
    for (const Trial& trial : regions[0].trials) {
      EXPECT_EQ(trial.failure, "");
      EXPECT_GT(trial.measured.value_or(0), 0) << trial.engine << " " << trial.config_text();
    }
    const Plan plan = compile(tuned_gemm(), device, options);
    EXPECT_NE(plan.explain().find("us measured"), std::string::npos);
    options.constants.clear();  // the check binds its own weights
    expect_agrees(tuned_gemm(), "cuda.gemm_skinny", {.options = options});
  }
}

}  // namespace
}  // namespace ashlar::cuda

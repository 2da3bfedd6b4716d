// Tensor-core engines are bitwise reproducible: results do not depend on the order of CTAs, nor on
// the previous contents of the workspace.
#include <algorithm>
#include <set>

#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "gemm_graphs.hpp"
#include "gpu_check.hpp"
#include "support/test_device.hpp"

namespace ashlar::cuda {
namespace {

class GpuSameBits : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    is_emulated_ = is_emulated_gpu();
    if (Device::named("cuda:0").props().compute_capability != 90) GTEST_SKIP() << "no sm_90a";
  }
  // The emulator has no races between CTAs, and is slow: it shows that the workspace is not read
  // before it is written. `real` has enough CTAs to keep a GPU busy.
  void expect_same_bits(const CudaEngine& engine, const Graph& real, const Graph& emulated) {
    const Graph& graph = is_emulated_ ? emulated : real;
    const DeviceProps device = Device::named("cuda:0").props();
    const auto outline = build_plan(graph, device, {}, nullptr, false);
    std::vector<SavedChoice> choices;
    for (const PlanData::Step& step : outline->steps)
      choices.push_back({std::string(step.choice.engine->id()), step.choice.config.knobs});
    bool is_taken = false;
    for (std::size_t step = 0; step < choices.size(); ++step) {
      const Region& region = outline->steps[step].region;
      const Support support = engine.supports(region, device);
      if (support.is_other_operation()) continue;
      ASSERT_TRUE(bool(support)) << support.reason();
      is_taken = true;
      for (const Config& config : some_of(engine.configs(region, device))) {
        std::vector<SavedChoice> own = choices;
        own[step] = {std::string(engine.id()), config.knobs};
        run_often(graph, *build_plan(graph, device, {}, &own, true), config.to_text());
      }
    }
    EXPECT_TRUE(is_taken) << engine.id();
  }

 private:
  // The first configuration, and the first of every other strategy.
  std::vector<Config> some_of(const std::vector<Config>& configs) const {
    static const std::vector<std::string> kWays = {
        "split", "splits", "windows",     "ping_pong", "cluster", "parts",
        "held",  "passes", "taps_across", "together",  "stream"};
    std::set<std::pair<std::string, bool>> known;
    std::vector<Config> result;
    for (const Config& config : configs) {
      bool is_new = false;
      for (const auto& [name, value] : config.knobs) {
        if (std::find(kWays.begin(), kWays.end(), name) == kWays.end()) continue;
        is_new = known.insert({name, value > 1}).second || is_new;
      }
      if (!is_new && !result.empty()) continue;
      result.push_back(config);
      if (is_emulated_ && result.size() == 2) break;
    }
    return result;
  }

  // Bytes that differ in every run.
  static void soil(Memory& memory, std::uint64_t seed) {
    std::vector<std::uint64_t> words(static_cast<std::size_t>(memory.bytes() / 8 + 1));
    std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (std::uint64_t& word : words) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      word = state;
    }
    memory.upload(words.data(), memory.bytes());
  }

  void run_often(const Graph& graph, const PlanData& plan, const std::string& what) const {
    ASSERT_TRUE(plan.notes.deterministic) << what;
    const Device device = Device::named("cuda:0");
    support::BoundMemory host(graph);
    support::fill_inputs(host, 11);
    set_rows_of_experts(host);
    std::vector<Memory> tensors;
    std::vector<void*> pointers;
    for (const TensorId id : host.bound()) {
      tensors.emplace_back(device, byte_size(graph.tensor(id)));
      tensors.back().upload(host.data(id), tensors.back().bytes());
      pointers.push_back(tensors.back().data());
    }
    Memory workspace(device, std::max<std::int64_t>(plan.workspace_bytes, 8));
    std::vector<std::byte> first;
    const int runs = is_emulated_ ? 2 : 20;
    for (int run = 0; run < runs; ++run) {
      soil(workspace, static_cast<std::uint64_t>(2 * run + 1));
      for (std::size_t i = 0; i < tensors.size(); ++i)
        if (graph.tensor(host.bound()[i]).kind == TensorKind::output)
          soil(tensors[i], static_cast<std::uint64_t>(2 * run + 2));
      plan.run(pointers, workspace.data(), nullptr);
      device.synchronize();
      for (std::size_t i = 0; i < tensors.size(); ++i)
        if (graph.tensor(host.bound()[i]).kind == TensorKind::output)
          tensors[i].download(host.data(host.bound()[i]), tensors[i].bytes());
      const std::vector<std::byte> bytes = host.output_bytes();
      if (run == 0) first = bytes;
      const auto [here, there] = std::mismatch(bytes.begin(), bytes.end(), first.begin());
      ASSERT_TRUE(here == bytes.end()) << "run " << run << " differs from the first one at byte "
                                       << here - bytes.begin() << ": " << what;
    }
  }

  // Experts with equal numbers of rows; other inputs unchanged.
  static void set_rows_of_experts(support::BoundMemory& memory) {
    const TensorId first = memory.graph().find_tensor("first");
    if (first == kNoTensor) return;
    const Tensor& experts = memory.graph().tensor(first);
    const std::int64_t count = experts.dims[0],
                       rows = memory.graph().tensor(memory.graph().find_tensor("token")).dims[1];
    for (std::int64_t i = 0; i < count; ++i)
      write_element(experts, memory.data(first), i, static_cast<double>(i * rows / count));
  }

  bool is_emulated_ = false;
};

TEST_F(GpuSameBits, GemmSm90) {
  for (const DType dtype : {bf16, f32, e4m3})
    expect_same_bits(
        gemm_sm90_engine(),
        MatrixGraph{.dtype = dtype, .rows = 1000, .columns = 520, .depth = 4096, .fused = true}
            .graph(),
        MatrixGraph{.dtype = dtype, .rows = 130, .columns = 72, .depth = 512, .fused = true}
            .graph());
}

TEST_F(GpuSameBits, GemmSm80) {
  expect_same_bits(gemm_sm80_engine(),
                   MatrixGraph{.rows = 500, .columns = 520, .depth = 4096}.graph(),
                   MatrixGraph{.rows = 70, .columns = 72, .depth = 512}.graph());
}

TEST_F(GpuSameBits, GemmSkinny) {
  for (const std::int64_t rows : {1, 16})
    expect_same_bits(gemm_skinny_engine(),
                     MatrixGraph{.rows = rows, .columns = 4096, .depth = 8192}.graph(),
                     MatrixGraph{.rows = rows, .columns = 128, .depth = 512}.graph());
}

TEST_F(GpuSameBits, MoeSm90) {
  expect_same_bits(moe_sm90_engine(),
                   ExpertsGraph{.rows = 2000, .depth = 1024, .columns = 512, .experts = 8}.graph(),
                   ExpertsGraph{.rows = 150, .depth = 80, .columns = 72, .experts = 3}.graph());
}

TEST_F(GpuSameBits, MoeGradients) {
  const ExpertsGradientGraph real = {
      .mode = MoeMode::gather, .rows = 4000, .depth = 1024, .columns = 512};
  const ExpertsGradientGraph emulated = {
      .mode = MoeMode::gather, .rows = 150, .depth = 80, .columns = 72, .experts = 3};
  for (const CudaEngine* engine : {&moe_wgrad_sm90_engine(), &moe_sm90_engine()})
    expect_same_bits(*engine, real.graph(), emulated.graph());
}

TEST_F(GpuSameBits, ConvSm90) {
  for (const ConvDirection direction : {ConvDirection::forward, ConvDirection::data})
    expect_same_bits(
        conv_sm90_engine(),
        ConvGraph{.direction = direction, .images = 8, .channels = 512, .filters = 192}.graph(),
        ConvGraph{
            .direction = direction, .images = 2, .channels = 64, .filters = 72, .extent = {7, 8}}
            .graph());
}

TEST_F(GpuSameBits, NarrowGroups) {
  for (const ConvDirection direction : kConvDirections)
    expect_same_bits(
        direction == ConvDirection::filter ? conv_wgrad_sm90_engine() : conv_sm90_engine(),
        ConvGraph{.direction = direction, .images = 32, .groups = 8, .extent = {14, 14}}.graph(),
        ConvGraph{.direction = direction,
                  .images = 4,
                  .channels = 96,
                  .filters = 96,
                  .groups = 3,
                  .extent = {7, 7}}
            .graph());
}

TEST_F(GpuSameBits, ConvWgradSm90) {
  for (const DType dtype : {bf16, f32})
    expect_same_bits(conv_wgrad_sm90_engine(),
                     ConvGraph{.dtype = dtype,
                               .direction = ConvDirection::filter,
                               .images = 32,
                               .channels = 128,
                               .filters = 192}
                         .graph(),
                     ConvGraph{.dtype = dtype,
                               .direction = ConvDirection::filter,
                               .images = 3,
                               .channels = 64,
                               .filters = 64,
                               .extent = {7, 8}}
                         .graph());
}

TEST_F(GpuSameBits, ConvSm80) {
  for (const ConvDirection direction : kConvDirections)
    expect_same_bits(
        conv_sm80_engine(),
        ConvGraph{.direction = direction, .images = 16, .channels = 96, .filters = 72}.graph(),
        ConvGraph{
            .direction = direction, .images = 2, .channels = 24, .filters = 40, .extent = {6, 7}}
            .graph());
}

TEST_F(GpuSameBits, ConvDirect) {
  for (const ConvDirection direction : kConvDirections) {
    expect_same_bits(conv_direct_engine(),
                     ConvGraph{.direction = direction,
                               .images = 16,
                               .channels = 3,
                               .filters = 64,
                               .extent = {112, 112},
                               .window = {7, 7},
                               .op = {.padding = {3, 3}, .stride = {2, 2}}}
                         .graph(),
                     ConvGraph{.direction = direction,
                               .images = 2,
                               .channels = 3,
                               .filters = 16,
                               .extent = {20, 24},
                               .window = {7, 7},
                               .op = {.padding = {3, 3}, .stride = {2, 2}}}
                         .graph());
    expect_same_bits(conv_direct_engine(),
                     ConvGraph{.direction = direction, .images = 16, .groups = 16}.graph(),
                     ConvGraph{.direction = direction,
                               .images = 2,
                               .channels = 32,
                               .filters = 32,
                               .groups = 4,
                               .extent = {7, 9}}
                         .graph());
  }
}

}  // namespace
}  // namespace ashlar::cuda

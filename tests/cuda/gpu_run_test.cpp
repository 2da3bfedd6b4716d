// Runs of plans on streams, concurrently, and as CUDA graphs. On a GPU, real or emulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <ashlar/device.hpp>
#include <ashlar/error.hpp>
#include <ashlar/memory.hpp>
#include <ashlar/plan.hpp>
#include <atomic>
#include <thread>

#include "captured_run.hpp"
#include "cuda/cuda_device.hpp"
#include "cuda/driver/context.hpp"
#include "cuda/jit/nvrtc.hpp"

namespace ashlar::cuda {
namespace {

constexpr std::int64_t kRunRows = 5, kRunColumns = 36;

// Several regions with intermediates, a host scalar, and enough columns for vectors.
Graph sample_graph() {
  Graph g("sample");
  const Value x = g.input("x", {kRunRows, kRunColumns}, f32),
              b = g.input("b", {1, kRunColumns}, f32);
  const Value factor = g.scalar("factor", f32, 2);
  g.output("y", g.softmax(tanh(x + b)) * x * factor);
  return g;
}

// The tensors of one run on the GPU; `factor` on the host.
struct Operands {
  Memory x, b, y;
  float factor;
  Memory workspace;

  Operands(const Plan& plan, int seed)
      : x(gpu(), kRunRows * kRunColumns * 4),
        b(gpu(), kRunColumns * 4),
        y(gpu(), kRunRows * kRunColumns * 4),
        factor(1.0f + static_cast<float>(seed)),
        workspace(gpu(), plan.workspace_size()) {
    fill(seed);
  }
  static Device gpu() { return Device::named("cuda:0"); }
  void fill(int seed) {
    std::vector<float> values(kRunRows * kRunColumns);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(seed) * 11) % 17) / 8 - 1;
    x.upload(values.data(), x.bytes());
    b.upload(values.data() + 7, b.bytes());
    y.fill(std::byte{0x5A});
    gpu().synchronize();
  }
  Binding binding(const Plan& plan) const {
    Binding result = plan.binding();
    result.set("x", x.data());
    result.set("b", b.data());
    result.set("factor", &factor);
    result.set("y", y.data());
    return result;
  }
  void* scratch() const { return workspace.bytes() > 0 ? workspace.data() : nullptr; }
  std::vector<float> result() const {
    std::vector<float> values(kRunRows * kRunColumns);
    y.download(values.data(), y.bytes());
    return values;
  }
};

class EmptyGraph {
 public:
  EmptyGraph() { check(driver_api().create_graph(&handle_, 0), "graph"); }
  ~EmptyGraph() { driver_api().destroy_graph(handle_); }
  EmptyGraph(const EmptyGraph&) = delete;
  EmptyGraph& operator=(const EmptyGraph&) = delete;
  GraphHandle handle() const { return handle_; }

 private:
  GraphHandle handle_ = nullptr;
};

std::unique_ptr<Executable> capture(const Plan& plan, const Operands& operands,
                                    const Stream& stream) {
  return std::make_unique<Executable>(
      stream, [&] { plan.run(operands.binding(plan), operands.scratch(), stream.handle()); });
}

struct Way {
  const char* name;
  CompileOptions options;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
const Way kRunVariants[] = {
    {"Fused", {}},
    {"Cut", {.fuse = false}},
    {"Owned", {.workspace_limit = 0, .fuse = false}},
    {"Deterministic", {.deterministic = true}},
    {"Naive", {.reference_only = true}},
    {"OnTheHost", {.engine = "cuda.host"}},
};

class GpuRun : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
    scope_ = std::make_unique<ContextScope>(0);
  }
  static Plan make_plan() { return compile(sample_graph(), Operands::gpu(), GetParam().options); }
  // The result of a plain run on these operands.
  static std::vector<float> expected(const Plan& plan, const Operands& operands) {
    plan.run(operands.binding(plan), operands.scratch());
    Operands::gpu().synchronize();
    return operands.result();
  }
  std::unique_ptr<ContextScope> scope_;
};

INSTANTIATE_TEST_SUITE_P(Way, GpuRun, testing::ValuesIn(kRunVariants),
                         [](const auto& way) { return way.param.name; });

TEST_P(GpuRun, TheFirstRunIsCapturedAndReplayedWithOtherData) {
  const Plan plan = make_plan();
  Operands operands(plan, 1);
  const Stream stream;
  const auto graph = capture(plan, operands, stream);
  for (int seed = 1; seed < 4; ++seed) {
    operands.fill(seed);
    graph->launch(stream);
    const std::vector<float> replayed = operands.result();
    EXPECT_EQ(replayed, expected(plan, operands)) << "data " << seed;
    EXPECT_NE(replayed[0], 0.0f);
  }
}

TEST_P(GpuRun, TwoCapturesOfOnePlan) {
  const Plan plan = make_plan();
  const Operands one(plan, 1), two(plan, 2);
  const Stream first, second;
  const auto graph_one = capture(plan, one, first), graph_two = capture(plan, two, second);
  graph_two->launch(first);
  graph_one->launch(second);
  const std::vector<float> results[] = {one.result(), two.result()};
  EXPECT_EQ(results[0], expected(plan, one));
  EXPECT_EQ(results[1], expected(plan, two));
  EXPECT_NE(results[0], results[1]);
}

TEST_P(GpuRun, GraphsArePopulatedAndTakeOtherPointers) {
  const Plan plan = make_plan();
  const Operands one(plan, 1), two(plan, 2);
  const Stream stream;
  const EmptyGraph graph;
  plan.populate_cuda_graph(graph.handle(), one.binding(plan), one.scratch());
  Executable(graph.handle()).launch(stream);
  const std::vector<float> first = one.result();
  EXPECT_EQ(first, expected(plan, one));
  // Other pointers, workspace and scalar.
  plan.update_cuda_graph(graph.handle(), two.binding(plan), two.scratch());
  Executable(graph.handle()).launch(stream);
  const std::vector<float> second = two.result();
  EXPECT_EQ(second, expected(plan, two));
  EXPECT_EQ(one.result(), first);
  EXPECT_THROW(plan.populate_cuda_graph(graph.handle(), one.binding(plan), one.scratch()), Error);
}

TEST_P(GpuRun, EveryRunGivesTheSameBits) {
  const Plan plan = make_plan();
  const Operands operands(plan, 3);
  const std::vector<float> first = expected(plan, operands);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(expected(plan, operands), first);
}

// Each thread has its own stream, operands and (unless the plan owns memory) workspace.
TEST_P(GpuRun, ManyThreadsAndStreamsShareOnePlan) {
  constexpr int kThreads = 4, kRuns = 3;
  const Plan plan = make_plan();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int seed = 0; seed < kThreads; ++seed)
    threads.emplace_back([&, seed] {
      const Stream stream;
      Operands operands(plan, seed);
      std::vector<std::vector<float>> results;
      for (int run = 0; run < kRuns; ++run) {
        plan.run(operands.binding(plan), operands.scratch(), stream.handle());
        stream.wait();
        results.push_back(operands.result());
        operands.fill(seed);
      }
      for (const auto& result : results)
        if (result != expected(plan, operands)) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(GpuGraphMisuse, IsSaidInASentence) {
  Graph g("plain");
  g.output("y", relu(g.input("x", {8}, f32)));
  const Plan on_cpu = compile(g, Device::cpu());
  const std::vector<void*> none(2, nullptr);
  int anything = 0;
  try {
    on_cpu.populate_cuda_graph(&anything, none);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("expected one for a GPU"));
  }
  EXPECT_THROW(on_cpu.populate_cuda_graph(nullptr, none), Error);
  if (device_count() == 0 || !nvrtc().is_open) return;
  const ContextScope scope(0);
  const Plan plan = compile(g, Operands::gpu());
  const EmptyGraph graph;
  EXPECT_THROW(plan.populate_cuda_graph(graph.handle(), none), Error) << "null pointers";
  const Memory memory(Operands::gpu(), 64);
  const std::vector<void*> pointers(2, memory.data());
  try {
    plan.update_cuda_graph(graph.handle(), pointers);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), testing::HasSubstr("got a graph of 0 nodes, expected the 1"));
  }
}

// Only on the emulated GPU: a real error would poison the context of all tests.
TEST(GpuErrors, NameKernelAndRegion) {
  if (device_count() == 0) GTEST_SKIP() << driver().reason;
  if (detect_gpu(0).description.find("Emulated") == std::string::npos)
    GTEST_SKIP() << "a real GPU does not recover";
  Graph g("plain");
  g.output("y", relu(g.input("x", {64}, f32)));
  const Plan plan = compile(g, Operands::gpu());
  const Memory y(Operands::gpu(), 256);
  std::vector<float> on_the_host(64);
  try {
    plan.run({{"x", on_the_host.data()}, {"y", y.data()}});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_THAT(error.what(), testing::ContainsRegex("kernel '[a-z_]+' of 'relu_fwd'"));
    EXPECT_THAT(error.what(), testing::HasSubstr("ASHLAR_CUDA_SYNC=1 tells which"));
  }
}

TEST(GpuUpload, GraphsKeepTheValuesOfTheirCapture) {
  if (device_count() == 0) GTEST_SKIP() << driver().reason;
  const Device gpu = Device::named("cuda:0");
  const Stream stream;
  Memory memory(gpu, 3 * sizeof(std::int32_t));
  std::array<std::int32_t, 3> words = {3, -1, 7}, found{};
  gpu.enqueue_upload(memory.data(), words, stream.handle());
  words = {5, 6, 7};
  stream.wait();
  memory.download(found.data(), memory.bytes());
  EXPECT_THAT(found, testing::ElementsAre(3, -1, 7)) << "the caller may reuse its memory";
  const Executable graph(stream,
                         [&] { gpu.enqueue_upload(memory.data(), words, stream.handle()); });
  words = {0, 0, 0};
  graph.launch(stream);
  memory.download(found.data(), memory.bytes());
  EXPECT_THAT(found, testing::ElementsAre(5, 6, 7));
}

}  // namespace
}  // namespace ashlar::cuda

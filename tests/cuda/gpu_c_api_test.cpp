// The C API on a GPU: device memory, CUDA graphs, tuning.
#include <ashlar/ashlar.h>

#include <vector>

#include "captured_run.hpp"
#include "gpu_check.hpp"

namespace ashlar::cuda {

namespace {

#define ASSERT_OK(call) ASSERT_EQ(call, ASHLAR_OK) << ashlar_last_error()

class GpuCApi : public GpuTest {};

// y = relu(x), 64 floats.
std::string relu_json() {
  Graph graph("relu");
  graph.output("y", relu(graph.input("x", {64}, f32)));
  return graph.to_json();
}

TEST_F(GpuCApi, PopulatesAndUpdatesACudaGraph) {
  const std::string json = relu_json();
  ashlar_graph* graph = nullptr;
  ashlar_plan* plan = nullptr;
  ASSERT_OK(ashlar_graph_from_json(json.data(), json.size(), &graph));
  ashlar_compile_options options;
  ashlar_compile_options_init(&options);
  options.device = "cuda:0";
  ASSERT_OK(ashlar_compile(graph, &options, &plan));
  int64_t workspace = -1;
  ASSERT_OK(ashlar_plan_workspace_size(plan, &workspace));
  ASSERT_EQ(workspace, 0);

  std::vector<ashlar_memory*> memory(4);
  std::vector<void*> pointers(4);
  std::vector<float> values(64);
  for (int i = 0; i < 64; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i - 32);
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_OK(ashlar_memory_create("cuda:0", 256, &memory[i]));
    ASSERT_OK(ashlar_memory_data(memory[i], &pointers[i]));
    ASSERT_OK(ashlar_memory_fill(memory[i], 0xff));
  }
  ASSERT_OK(ashlar_memory_upload(memory[0], values.data(), 256));
  for (float& value : values) value = -value;
  ASSERT_OK(ashlar_device_upload("cuda:0", pointers[2], values.data(), 256, nullptr));

  const auto relu_of = [](float value) { return value > 0 ? value : 0.0f; };
  {
    const Stream stream;
    GraphHandle cuda_graph = nullptr;
    check(driver_api().create_graph(&cuda_graph, 0), "graph");
    ASSERT_OK(ashlar_plan_populate_cuda_graph(plan, cuda_graph, &pointers[0], 2, nullptr));
    Executable(cuda_graph).launch(stream);
    ASSERT_OK(ashlar_plan_update_cuda_graph(plan, cuda_graph, &pointers[2], 2, nullptr));
    Executable(cuda_graph).launch(stream);
    driver_api().destroy_graph(cuda_graph);
  }
  std::vector<float> first(64), second(64);
  ASSERT_OK(ashlar_memory_download(memory[1], first.data(), 256));
  ASSERT_OK(ashlar_device_synchronize("cuda:0", nullptr));
  ASSERT_OK(ashlar_device_download("cuda:0", second.data(), pointers[3], 256, nullptr));
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(first[i], relu_of(-values[i])) << i;
    EXPECT_EQ(second[i], relu_of(values[i])) << i;
  }
  for (ashlar_memory* one : memory) ashlar_memory_destroy(one);
  ashlar_plan_destroy(plan);
  ashlar_graph_destroy(graph);
}

TEST_F(GpuCApi, TimesCandidatesAndRuns) {
  const std::string json = relu_json();
  ashlar_graph* graph = nullptr;
  ASSERT_OK(ashlar_graph_from_json(json.data(), json.size(), &graph));
  ashlar_compile_options options;
  ashlar_compile_options_init(&options);
  options.device = "cuda:0";
  options.max_candidates = 1;
  ashlar_trials* trials = nullptr;
  ASSERT_OK(ashlar_autotune(graph, &options, 1, nullptr, nullptr, &trials));
  ashlar_trial trial;
  ashlar_trial_init(&trial);
  ASSERT_OK(ashlar_trials_get(trials, 0, 0, &trial));
  EXPECT_GE(trial.measured, 0) << trial.failure;
  ashlar_trials_destroy(trials);

  ashlar_timer* timer = nullptr;
  ASSERT_OK(ashlar_timer_create("cuda:0", &timer));
  ASSERT_OK(ashlar_timer_start(timer, nullptr));
  ASSERT_OK(ashlar_timer_stop(timer, nullptr));
  double seconds = -1;
  ASSERT_OK(ashlar_timer_seconds(timer, &seconds));
  EXPECT_GE(seconds, 0);
  ashlar_timer_destroy(timer);
  ashlar_graph_destroy(graph);
}

}  // namespace

}  // namespace ashlar::cuda

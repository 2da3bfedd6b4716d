// Strategies behind the engines of libcudnn: each computes the right result, and filtering by notes
// always leaves one. Also the JSON of device properties.
#include <gtest/gtest.h>
#include <ashlar/check.hpp>

#include <set>

#include "backend/device_prop.hpp"
#include "backend/strategies.hpp"

namespace ashlar::cudnn {
namespace {

Graph convolution_and_relu() {
  Graph graph;
  const Value x = graph.input("x", {2, 16, 12, 12}, f32, channels_last);
  const Value w = graph.input("w", {24, 16, 3, 3}, f32, channels_last);
  graph.output("y", relu(graph.conv(x, w, {.padding = {1, 1}})));
  return graph;
}

TEST(CudnnStrategies, FirstIsTheDefaultAndLastTheReference) {
  const Graph graph = convolution_and_relu();
  const std::vector<Strategy> strategies = list_strategies(graph, Device::cpu());
  ASSERT_GE(strategies.size(), 3U);
  EXPECT_EQ(strategies.front().label, "automatic");
  EXPECT_EQ(strategies.back().label, "reference");
  for (std::size_t i = 2; i + 1 < strategies.size(); ++i)
    EXPECT_LE(strategies[i - 1].outline.seconds, strategies[i].outline.seconds) << "cheapest first";
}

TEST(CudnnStrategies, EveryStrategyMatchesTheReference) {
  const Graph graph = convolution_and_relu();
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> pointers;
  for (const TensorId id : graph.bound_tensors()) {
    memory.emplace_back(static_cast<std::size_t>(byte_size(graph.tensor(id))));
    fill_random(graph.tensor(id), memory.back().data(), 7 + static_cast<unsigned>(id));
    pointers.push_back(memory.back().data());
  }
  for (const Strategy& strategy : list_strategies(graph, Device::cpu())) {
    const Plan plan = compile(graph, Device::cpu(), strategy.options);
    EXPECT_EQ(plan.workspace_size(), strategy.outline.workspace_size) << strategy.label;
    std::vector<std::byte> workspace(static_cast<std::size_t>(plan.workspace_size()) + 64);
    std::ranges::fill(memory.back(), std::byte{0x7f});
    void* aligned = workspace.data() + 64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64;
    plan.run(pointers, aligned);
    const auto expected = evaluate_reference(
        graph, std::vector<const void*>(pointers.begin(), pointers.end()), plan.notes());
    const Comparison compared =
        expected[0].compare(graph.tensor(expected[0].tensor), pointers.back());
    EXPECT_TRUE(compared.ok) << strategy.label << ": " << compared.summary;
  }
}

TEST(CudnnStrategies, FilteringByNotesLeavesAStrategy) {
  Graph graph;
  const Value x = graph.input("x", {4, 32, 14, 14}, f32, channels_last);
  graph.output("y", graph.conv(x, graph.input("w", {32, 32, 3, 3}, f32, channels_last),
                               {.padding = {1, 1}}));
  for (const char* device : {"cpu", "h200"}) {
    bool is_strict_left = false;
    for (const Strategy& strategy : list_strategies(graph, Device::named(device)))
      is_strict_left |= !strategy.outline.notes.tf32 && strategy.outline.notes.winograd == 0 &&
                        strategy.outline.notes.deterministic && strategy.label != "reference";
    EXPECT_TRUE(is_strict_left) << device;
  }
}

TEST(CudnnDeviceProp, JsonRoundTrips) {
  const Device h200 = Device::named("h200");
  DeviceProps elsewhere = h200.props();
  elsewhere.compute_units = 7;  // no real device has it
  EXPECT_FALSE(device_from_json(device_to_json(Device(elsewhere))).props().present);
  const Device back = device_from_json(device_to_json(h200));
  EXPECT_EQ(back.props().compute_units, h200.props().compute_units);
  EXPECT_EQ(back.props().compute_capability, 90);
  EXPECT_TRUE(device_from_json(device_to_json(Device::cpu())).props().present);
  EXPECT_THROW(device_from_json("{}"), std::runtime_error);
  EXPECT_THROW(device_from_json("no json"), std::runtime_error);
}

}  // namespace
}  // namespace ashlar::cudnn

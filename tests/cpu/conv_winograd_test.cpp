// cpu.conv_winograd in every configuration, and its accuracy.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <ashlar/ashlar.hpp>
#include <cmath>

#include "api/backends.hpp"
#include "support/problem.hpp"

namespace ashlar::cpu {
namespace {

using support::BoundMemory;
using support::Fill;
using support::Problem;

constexpr const char* kWinogradEngine = "cpu.conv_winograd";  // and cpu.conv_winograd_filter

// The plans of a graph with one of its convolutions in each configuration of these engines.
std::vector<std::shared_ptr<const PlanData>> forced_plans(const Graph& graph,
                                                          const CompileOptions& options = {}) {
  const DeviceProps device = Device::cpu().props();
  const auto outline = build_plan(graph, device, options, nullptr, false);
  std::vector<std::shared_ptr<const PlanData>> plans;
  for (std::size_t i = 0; i < outline->steps.size(); ++i) {
    const Region& region = outline->steps[i].region;
    for (const Engine* engine : backend_for(DeviceKind::cpu).engines()) {
      if (!engine->id().starts_with(kWinogradEngine) || !engine->supports(region, device)) continue;
      for (const Config& config : engine->configs(region, device)) {
        std::vector<SavedChoice> choices;
        for (const PlanData::Step& step : outline->steps)
          choices.push_back({std::string(step.choice.engine->id()), step.choice.config.knobs});
        choices[i] = {std::string(engine->id()), config.knobs};
        plans.push_back(build_plan(graph, device, options, &choices, true));
      }
    }
  }
  return plans;
}

void expect_all_agree(const Graph& graph, const Problem::Change& change = {},
                      const CompileOptions& options = {}) {
  Problem problem(graph, 3, Fill::plain, change);
  const auto plans = forced_plans(graph, options);
  EXPECT_FALSE(plans.empty());
  for (const auto& plan : plans) {
    EXPECT_EQ(problem.run(*plan), "") << plan->explain();
    EXPECT_NE(plan->notes.winograd, 0);
    EXPECT_GT(problem.compared(), 0);
  }
}

struct WinogradCase {
  Dims x, w;
  ConvAttributes attributes = {.padding = {1, 1}};
};
const WinogradCase kCases[] = {
    {{2, 16, 7, 9}, {24, 16, 3, 3}},
    {{1, 33, 5, 4}, {35, 33, 3, 3}, {.padding = {0, 2}}},
    {{1, 16, 6, 77}, {32, 16, 3, 3}},  // more tiles per row than a run has
    {{1, 300, 6, 6}, {32, 300, 3, 3}},
    {{3, 64, 12, 12}, {96, 32, 3, 3}},
    {{1, 48, 9, 8},
     {96, 16, 3, 3},
     {.padding = {2, 0}, .post_padding = Dims{1, 3}, .mode = ConvMode::convolution}},
    {{17, 32, 3, 1}, {32, 32, 3, 3}},
    {{1, 128, 5, 6}, {48, 64, 3, 3}, {.mode = ConvMode::convolution}},
};

Dims result_dims(const WinogradCase& c) {
  Graph graph;
  return graph.conv(graph.input("x", c.x, f32), graph.input("w", c.w, f32), c.attributes).dims();
}

Graph forward(const WinogradCase& c, DType dtype, Layout layout) {
  Graph graph;
  Value x = graph.input("x", c.x, dtype, layout), w = graph.input("w", c.w, dtype, layout);
  graph.output("y", graph.conv(x, w, c.attributes));
  return graph;
}

Graph backward_data(const WinogradCase& c, DType dtype, Layout layout) {
  Graph graph;
  Value dy = graph.input("dy", result_dims(c), dtype, layout);
  Value w = graph.input("w", c.w, dtype, layout);
  graph.output("dx", graph.conv_backward_data(dy, w, c.attributes, {.dims = c.x}));
  return graph;
}

Graph backward_filter(const WinogradCase& c, DType dtype, Layout layout) {
  Graph graph;
  Value x = graph.input("x", c.x, dtype, layout);
  Value dy = graph.input("dy", result_dims(c), dtype, layout);
  graph.output("dw", graph.conv_backward_filter(x, dy, c.attributes, {.dims = c.w}));
  return graph;
}

TEST(ConvWinograd, EveryCaseLayoutAndConfiguration) {
  for (const WinogradCase& c : kCases)
    for (const Layout& layout : {row_major, channels_last}) {
      SCOPED_TRACE(testing::Message() << to_string(c.x) << " by " << to_string(c.w));
      expect_all_agree(forward(c, f32, layout));
      expect_all_agree(backward_data(c, f32, layout));
      expect_all_agree(backward_filter(c, f32, layout));
    }
}

TEST(ConvWinograd, NarrowTypes) {
  for (DType dtype : {f16, bf16, e4m3})
    for (const Layout& layout : {row_major, channels_last})
      for (std::size_t i : {std::size_t{0}, std::size_t{5}}) {
        SCOPED_TRACE(to_string(dtype));
        expect_all_agree(forward(kCases[i], dtype, layout));
        expect_all_agree(backward_data(kCases[i], dtype, layout));
        expect_all_agree(backward_filter(kCases[i], dtype, layout));
      }
}

TEST(ConvWinograd, Epilogues) {
  for (const Layout& layout : {row_major, channels_last})
    for (const std::int64_t filters : {std::int64_t{32}, std::int64_t{37}})
      for (const bool blended : {false, true})
        for (DType dtype : {f32, f16}) {
          if (filters == 37 && dtype == f16) continue;
          SCOPED_TRACE(testing::Message() << filters << " filters, " << to_string(dtype)
                                          << (blended ? ", blended" : ""));
          Graph graph;
          Value x = graph.input("x", {2, 32, 10, 7}, dtype, layout);
          Value w = graph.input("w", {filters, 32, 3, 3}, dtype, layout);
          Value bias = graph.input("bias", {1, filters, 1, 1}, f32);
          Value residual = graph.input("residual", {2, filters, 10, 7}, dtype, layout);
          ConvAttributes attributes{.padding = {1, 1}};
          if (blended) attributes.alpha = 0.5, attributes.beta = -2.0;
          Value z = graph.input("z", {2, filters, 10, 7}, f32, layout);
          Value y = blended ? graph.conv(relu(x), w, attributes, {}, z)
                            : graph.conv(x, w, attributes) + z;
          graph.output("y", relu(y + bias), {.dtype = dtype});
          Value v = blended ? graph.conv(x, w, {.padding = {1, 1}})
                            : graph.conv(relu(x), w, {.padding = {1, 1}});
          graph.output("v", relu(v + bias + residual), {.dtype = dtype});
          Problem problem(graph, 9);
          for (const auto& plan : forced_plans(graph))
            EXPECT_EQ(problem.run(*plan), "") << plan->explain();
        }
}

// One large pixel next to small ones, and weights that sum to zero.
TEST(ConvWinograd, BoundsHoldUnderCancellation) {
  for (const Layout& layout : {row_major, channels_last}) {
    const WinogradCase c{{1, 64, 20, 20}, {64, 64, 3, 3}};
    const Graph graph = forward(c, f32, layout);
    expect_all_agree(graph, [&](BoundMemory& memory) {
      const TensorId x = graph.find_tensor("x"), w = graph.find_tensor("w");
      for (std::int64_t i = 0; i < number_count(graph.tensor(x)); i += 53)
        write_element(graph.tensor(x), memory.data(x), i, i % 2 == 0 ? 4096.5 : -8191.25);
      const Tensor& weights = graph.tensor(w);
      for (std::int64_t i = 0; i + 1 < number_count(weights); i += 2)
        write_element(weights, memory.data(w), i + 1, -read_element(weights, memory.data(w), i));
    });
  }
}

// The oracle's tolerance for Winograd must not hide real errors.
TEST(ConvWinograd, PlantedErrorsAreFound) {
  const Graph graph = forward({{1, 64, 16, 16}, {32, 64, 3, 3}}, f32, channels_last);
  for (const auto& plan : forced_plans(graph)) {
    Problem problem(graph, 21);
    ASSERT_EQ(problem.run(*plan), "");
    const TensorId y = graph.find_tensor("y");
    const Tensor& tensor = graph.tensor(y);
    const auto expected = evaluate_reference(graph, problem.memory().readable(), plan->notes);
    ASSERT_EQ(expected.size(), 1u);
    std::byte* memory = problem.memory().data(y);
    double squares = 0;
    for (std::int64_t i = 0; i < number_count(tensor); ++i)
      squares += std::pow(read_element(tensor, memory, i), 2);
    const double typical = std::sqrt(squares / static_cast<double>(number_count(tensor)));
    const auto expect_found = [&](std::int64_t index, double wrong, const char* what) {
      const double right = read_element(tensor, memory, index);
      write_element(tensor, memory, index, wrong);
      EXPECT_FALSE(expected[0].compare(tensor, memory).ok) << what;
      write_element(tensor, memory, index, right);
      EXPECT_TRUE(expected[0].compare(tensor, memory).ok);
    };
    for (std::int64_t index : {std::int64_t{0}, std::int64_t{1234}, std::int64_t{8191}}) {
      const double right = read_element(tensor, memory, index);
      expect_found(index, right + 0.02 * typical, "a fiftieth of the usual size");
      expect_found(index, right - 0.02 * typical, "a fiftieth of the usual size");
      expect_found(index, std::nan(""), "no number");
    }
  }
}

// Error against double precision relative to the typical magnitude of a result, alongside the
// direct f32 sum: the figures of docs/numerics.md.
TEST(ConvWinograd, ErrorFigures) {
  fmt::print("channels |  direct max    rms | F(2, 3) max    rms | F(4, 3) max    rms\n");
  for (const std::int64_t channels : {16, 64, 256, 512}) {
    const Graph graph = forward({{1, channels, 16, 16}, {32, channels, 3, 3}}, f32, channels_last);
    Problem problem(graph, 4);
    const auto expected = evaluate_reference(graph, problem.memory().readable());
    const TensorId y = graph.find_tensor("y");
    const auto errors = [&](const PlanData& plan) {
      std::vector<std::byte> workspace(static_cast<std::size_t>(plan.workspace_bytes) + 64);
      void* aligned = workspace.data();
      std::size_t space = workspace.size();
      std::align(64, space - 64, aligned, space);
      plan.run(problem.memory().pointers(), aligned, nullptr);
      double largest = 0, squares = 0, size = 0;
      for (std::size_t i = 0; i < expected[0].values.size(); ++i) {
        const double got =
            read_element(graph.tensor(y), problem.memory().data(y), static_cast<std::int64_t>(i));
        const double error = std::fabs(got - expected[0].values[i]);
        largest = std::max(largest, error);
        squares += error * error;
        size += expected[0].values[i] * expected[0].values[i];
      }
      const double typical = std::sqrt(size / static_cast<double>(expected[0].values.size()));
      return std::pair(
          largest / typical,
          std::sqrt(squares / static_cast<double>(expected[0].values.size())) / typical);
    };
    const DeviceProps device = Device::cpu().props();
    const auto direct =
        errors(*build_plan(graph, device, {.allow_winograd = false}, nullptr, true));
    std::pair<double, double> tiles[5];
    for (const auto& plan : forced_plans(graph)) tiles[plan->notes.winograd] = errors(*plan);
    fmt::print("{:8} | {:.2e} {:.1e} | {:.2e} {:.1e} | {:.2e} {:.1e}\n", channels, direct.first,
               direct.second, tiles[2].first, tiles[2].second, tiles[4].first, tiles[4].second);
    EXPECT_LT(tiles[2].second, 3 * direct.second);
    EXPECT_LT(tiles[4].second, 6 * direct.second);
    EXPECT_LT(tiles[4].first, 2e-5);
  }
}

TEST(ConvWinograd, IntegersAreExactInF23) {
  const Graph graph = forward({{1, 32, 9, 9}, {32, 32, 3, 3}}, f32, row_major);
  Problem problem(graph, 2, Fill::whole_numbers);
  problem.require_exact();
  int checked = 0;
  for (const auto& plan : forced_plans(graph)) {
    EXPECT_EQ(problem.run(*plan), "") << plan->explain();
    checked += plan->notes.winograd == 2;
  }
  EXPECT_GT(checked, 0);
}

TEST(ConvWinograd, ConstantWeightsGiveTheSameBits) {
  for (const Layout& layout : {row_major, channels_last}) {
    const Graph graph = forward({{1, 32, 14, 14}, {64, 32, 3, 3}}, f32, layout);
    Problem problem(graph, 8);
    const auto plans = forced_plans(graph);
    const auto constant =
        forced_plans(graph, {.constants = {{"w", problem.memory().data(graph.find_tensor("w"))}}});
    ASSERT_EQ(plans.size(), constant.size());
    for (std::size_t i = 0; i < plans.size(); ++i) {
      EXPECT_EQ(problem.run(*plans[i]), "");
      const std::vector<std::byte> bytes = problem.memory().output_bytes();
      EXPECT_EQ(problem.run(*constant[i]), "");
      EXPECT_EQ(problem.memory().output_bytes(), bytes);
      EXPECT_LT(constant[i]->workspace_bytes, plans[i]->workspace_bytes);
    }
  }
}

// An infinity or NaN may spread over its tile, and no further.
TEST(ConvWinograd, InfinitiesStayInTheirTiles) {
  const Graph graph = forward({{1, 16, 32, 32}, {16, 16, 3, 3}}, f32, channels_last);
  const TensorId x = graph.find_tensor("x");
  Problem problem(graph, 5, Fill::plain, [&](BoundMemory& memory) {
    write_element(graph.tensor(x), memory.data(x), 20 * 32 + 20, INFINITY);
    write_element(graph.tensor(x), memory.data(x), 1024 + 7 * 32 + 30, std::nan(""));
  });
  for (const auto& plan : forced_plans(graph)) {
    EXPECT_EQ(problem.run(*plan), "") << plan->explain();
    EXPECT_GE(problem.compared(), 16 * (1024 - 2 * 8 * 8));
  }
}

TEST(ConvWinograd, OnlyWhereAllowed) {
  const Graph graph = forward({{16, 128, 28, 28}, {128, 128, 3, 3}}, f32, channels_last);
  const Plan chosen = compile(graph, Device::cpu());
  EXPECT_NE(chosen.to_json().find(kWinogradEngine), std::string::npos) << chosen.explain();
  EXPECT_NE(chosen.notes().winograd, 0);
  const Plan other = compile(graph, Device::cpu(), {.allow_winograd = false});
  EXPECT_EQ(other.to_json().find(kWinogradEngine), std::string::npos) << other.explain();
  EXPECT_EQ(other.notes().winograd, 0);
  EXPECT_EQ(Plan::from_json(chosen.to_json()).notes().winograd, chosen.notes().winograd);
}

}  // namespace
}  // namespace ashlar::cpu

// Random inputs suit the way the graph uses them.
#include "inputs.hpp"

#include <gmock/gmock.h>

#include <ashlar/check.hpp>
#include <cmath>

#include "cli/process.hpp"
#include "timing.hpp"
#include "units.hpp"

namespace ashlar::cli_test {

namespace {

std::vector<double> values_of(const cli::TensorMemory& memory, const std::string& name) {
  const TensorId id = memory.graph().find_tensor(name);
  const Tensor& tensor = memory.graph().tensor(id);
  std::vector<double> values;
  for (std::int64_t i = 0; i < element_count(tensor.dims); ++i)
    values.push_back(read_element(tensor, memory.at(memory.position_of(id)), i));
  return values;
}

MATCHER_P2(AreWithin, low, high, "") {
  return std::all_of(arg.begin(), arg.end(), [&](double v) { return v >= low && v <= high; });
}

TEST(Inputs, AreTheSameForTheSameSeedAndNameOnly) {
  Graph graph;
  graph.output("y", graph.input("a", {64}, f32) + graph.input("b", {64}, f32));
  cli::TensorMemory first(graph), second(graph), other(graph);
  fill_inputs(first, {}, 1);
  fill_inputs(second, {}, 1);
  fill_inputs(other, {}, 2);
  EXPECT_EQ(values_of(first, "a"), values_of(second, "a"));
  EXPECT_NE(values_of(first, "a"), values_of(other, "a"));
  EXPECT_NE(values_of(first, "a"), values_of(first, "b"));
  EXPECT_THAT(values_of(first, "a"), AreWithin(-1, 1));
  for (const double value : values_of(first, "y")) EXPECT_TRUE(std::isnan(value));
}

TEST(Inputs, OfRaggedAttentionAreValid) {
  const Graph graph = Graph::from_json(read_text(example("attention_varlen")));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    cli::TensorMemory memory(graph);
    fill_inputs(memory, {}, seed);
    const std::vector<double> lengths = values_of(memory, "seq_len_kv");
    EXPECT_THAT(values_of(memory, "seq_len_q"), AreWithin(1, 64));
    EXPECT_THAT(lengths, AreWithin(1, 80));
    const std::vector<double> offsets = values_of(memory, "offsets_kv");
    const auto stride = static_cast<double>(graph.tensor(graph.find_tensor("k")).strides[2]);
    ASSERT_EQ(offsets.size(), lengths.size() + 1);
    EXPECT_EQ(offsets[0], 0);
    for (std::size_t row = 0; row < lengths.size(); ++row)
      EXPECT_EQ(offsets[row + 1] - offsets[row], lengths[row] * stride);
    const std::size_t k = memory.position_of(graph.find_tensor("k"));
    EXPECT_GE(static_cast<double>(memory.buffer(k).size()), 2 * offsets.back());
    EXPECT_TRUE(memory.buffer(k).guards_intact());
  }
}

TEST(Inputs, OfNormsAndArithmeticStayInTheirDomain) {
  Graph graph;
  const Value x = graph.input("x", {4, 8, 3, 3}, f32);
  const Dims channels = {1, 8, 1, 1};
  const NormForward attributes{.mode = NormMode::batch, .phase = NormPhase::inference};
  const NormResults norm = graph.norm(x, attributes,
                                      {.scale = graph.input("scale", channels, f32),
                                       .bias = graph.input("bias", channels, f32),
                                       .running_mean = graph.input("mean", channels, f32),
                                       .running_var = graph.input("var", channels, f32)});
  graph.output("y", norm.y / graph.input("divisor", channels, f32));
  graph.output("z", sqrt(graph.input("root", {16}, f32)));
  cli::TensorMemory memory(graph);
  fill_inputs(memory, {}, 3);
  for (const char* name : {"var", "divisor", "root"})
    EXPECT_THAT(values_of(memory, name), AreWithin(0.25, 2.0));
}

TEST(Inputs, OfMaxPoolingGradientsPointInsideTheirInput) {
  Graph graph;
  const ResampleAttributes pool{
      .mode = ResampleMode::maxpool, .window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  const Value dy = graph.input("dy", {2, 3, 3, 3}, f32);
  const Value index = graph.input("index", {2, 3, 3, 3}, i32);
  graph.output("dx", graph.resample_backward(dy, pool, {.dims = {2, 3, 5, 5}}, {}, index));
  cli::TensorMemory memory(graph);
  fill_inputs(memory, {}, 4);
  const std::vector<double> positions = values_of(memory, "index");
  EXPECT_THAT(positions, AreWithin(0, 8));
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto position = static_cast<std::int64_t>(positions[i]);
    const auto p = static_cast<std::int64_t>(i) / 3 % 3;
    const auto q = static_cast<std::int64_t>(i) % 3;
    EXPECT_GE(2 * p - 1 + position / 3, 0);
    EXPECT_LT(2 * p - 1 + position / 3, 5);
    EXPECT_GE(2 * q - 1 + position % 3, 0);
    EXPECT_LT(2 * q - 1 + position % 3, 5);
  }
}

TEST(Work, CountsMultiplyAddsOfAnchors) {
  Graph graph;
  const Value a = graph.input("a", {2, 3, 5}, f16);
  const Value b = graph.input("b", {2, 5, 7}, f16);
  graph.output("y", graph.matmul(a, b));
  EXPECT_EQ(compile(graph).flops(), 2.0 * 2 * 3 * 5 * 7);
  EXPECT_EQ(cli::traffic_bytes(graph), 2.0 * (2 * 3 * 5 + 2 * 5 * 7 + 2 * 3 * 7));

  Graph conv;
  const Value x = conv.input("x", {1, 4, 6, 6}, f32);
  const Value w = conv.input("w", {8, 2, 3, 3}, f32);  // two groups
  conv.output("y", conv.conv(x, w, {.padding = {1, 1}}));
  EXPECT_EQ(compile(conv).flops(), 2.0 * (8 * 6 * 6) * (2 * 3 * 3));
}

TEST(Timing, TakesTurnsAndKeepsItsBudget) {
  std::string order;
  int rounds = 0;
  const std::vector<cli::Timing> timings =
      cli::time_in_turns({[&] {
                            order += 'a';
                            return 4e-3;
                          },
                          [&] {
                            order += 'b';
                            return 1e-6;  // short: one run before each that counts
                          },
                          [&] {
                            order += 'c';
                            return 2.0;  // long: once
                          }},
                         0, [&] { ++rounds; });
  ASSERT_EQ(timings.size(), 3U);
  EXPECT_TRUE(order.starts_with("abcabbc")) << order;
  EXPECT_EQ(timings[0].runs, 5);
  EXPECT_EQ(timings[1].runs, 5);
  EXPECT_EQ(timings[2].runs, 1);
  EXPECT_GE(rounds, 5);
  EXPECT_EQ(timings[2].median, 2.0);
}

TEST(Units, ReadWell) {
  EXPECT_EQ(cli::duration_text(1.234e-3), "1.23 ms");
  EXPECT_EQ(cli::duration_text(9e-6), "9 us");
  EXPECT_EQ(cli::quantity_text(67.1e6, "FLOP"), "67.1 MFLOP");
  EXPECT_EQ(cli::quantity_text(999.7, "B"), "1 kB");
  EXPECT_EQ(cli::quantity_text(0, "B"), "0 B");
}

}  // namespace

}  // namespace ashlar::cli_test

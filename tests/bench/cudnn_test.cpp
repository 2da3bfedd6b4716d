// The cuDNN peer against a fake library, and measure() on a GPU.
#include <gmock/gmock.h>

#include <algorithm>
#include <ashlar/check.hpp>
#include <ashlar/plan.hpp>
#include <cmath>

#include "bench/back_to_back.hpp"
#include "bench/checking.hpp"
#include "bench/gpu.hpp"
#include "bench/gpu_tensors.hpp"
#include "bench/measure.hpp"
#include "bench/peers/cudnn/cudnn_peer.hpp"
#include "bench/suite.hpp"
#include "cudnn_stand_in.hpp"
#include "support/test_device.hpp"
#include "tiny_suite.hpp"

namespace ashlar::bench_test {

namespace {

using cudnn::Attribute;
using cudnn::DescriptorType;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;

// y = relu(x + b) * c
Graph chain() {
  Graph graph("chain");
  const Value x = graph.input("x", {8, 16}, f32), b = graph.input("b", {1, 16}, f32),
              c = graph.input("c", {8, 16}, f32);
  graph.output("y", relu(x + b) * c);
  return graph;
}

class Cudnn : public testing::Test {
 protected:
  bench::PeerAnswer ask(const Graph& graph, bool tf32 = true) {
    library_.reset();
    memory_ = std::make_unique<bench::Memory>(graph, bench::Problem{}, 1);
    library_ = std::make_unique<cudnn::Library>(stand_in_.functions(), Device::cpu());
    return cudnn::fastest_peer(*library_, {graph, memory_->pointers(), {}, tf32});
  }
  void TearDown() override {
    library_.reset();
    EXPECT_THAT(stand_in_.mistakes, IsEmpty());
    EXPECT_EQ(stand_in_.alive, 0) << "leaked descriptors";
  }

  StandIn stand_in_;
  std::unique_ptr<bench::Memory> memory_;
  std::unique_ptr<cudnn::Library> library_;
};

TEST_F(Cudnn, AWholeGraphIsOneCall) {
  const Graph graph = chain();
  const bench::PeerAnswer answer = ask(graph);
  ASSERT_TRUE(answer.peer) << answer.refusal;
  EXPECT_EQ(answer.peer->kernels(), 1U);
  EXPECT_THAT(answer.peer->description(), HasSubstr("engine 7"));
  EXPECT_EQ(stand_in_.plans, 2) << "all proposals of mode A, and no fallback";
  stand_in_.runs.clear();
  answer.peer->run();
  ASSERT_THAT(stand_in_.runs, SizeIs(1));
  EXPECT_THAT(stand_in_.runs[0], SizeIs(4));
  EXPECT_THAT(stand_in_.runs[0], Contains(memory_->at(graph.find_tensor("x"))));
  EXPECT_THAT(stand_in_.runs[0], testing::Not(Contains(memory_->at(graph.find_tensor("y")))))
      << "its outputs must not be ours";
  EXPECT_TRUE(answer.peer->output(graph.find_tensor("y")));
  EXPECT_EQ(library_->version(), "cuDNN 9.19.0");
}

Graph convolution() {
  Graph graph("convolution");
  const Value x = graph.input("x", {1, 4, 8, 8}, f32), w = graph.input("w", {4, 4, 3, 3}, f32);
  graph.output("y", graph.conv(x, w));
  return graph;
}

// As in cuDNN's benchmark mode: heuristic mode A, the fallbacks, and all remaining engines.
TEST_F(Cudnn, ConvolutionsAreTriedOnAllEngines) {
  stand_in_.engines = 12;
  const Graph graph = convolution();
  const bench::PeerAnswer answer = ask(graph);
  ASSERT_TRUE(answer.peer) << answer.refusal;
  EXPECT_EQ(stand_in_.plans, 2 + 2 + 11) << "engine 7 was proposed";
  EXPECT_THAT(answer.peer->description(), HasSubstr("best of 15"));
}

TEST_F(Cudnn, StrictProductsLeaveOutEnginesThatRound) {
  stand_in_.tensor_cores = true;
  const Graph graph = convolution();
  EXPECT_TRUE(ask(graph).peer);
  EXPECT_THAT(ask(graph, false).refusal, HasSubstr("rounds"));
}

TEST_F(Cudnn, WhatIsRefusedAsOneIsCut) {
  stand_in_.max_operations = 2;
  const Graph graph = chain();
  const bench::PeerAnswer answer = ask(graph);
  ASSERT_TRUE(answer.peer) << answer.refusal;
  EXPECT_EQ(answer.peer->kernels(), 2U);
  EXPECT_THAT(answer.peer->description(), HasSubstr("2 calls"));
  EXPECT_THAT(answer.peer->description(), HasSubstr("this many operations"));
  stand_in_.runs.clear();
  answer.peer->run();
  ASSERT_THAT(stand_in_.runs, SizeIs(2));
  EXPECT_THAT(stand_in_.runs[0], SizeIs(3)) << "x, b and what lies between";
  EXPECT_THAT(stand_in_.runs[1], SizeIs(3));
}

TEST_F(Cudnn, ARefusalIsASentence) {
  stand_in_.refused = {DescriptorType::operation_pointwise};
  const Graph graph = chain();
  const bench::PeerAnswer answer = ask(graph);
  EXPECT_FALSE(answer.peer);
  EXPECT_THAT(answer.refusal, HasSubstr("not supported"));
  EXPECT_THAT(answer.refusal, HasSubstr("this operation"));
}

TEST_F(Cudnn, OlderCallsTakeWhatTheBackendDoesNot) {
  stand_in_.refused = {DescriptorType::operation_reduction};
  Graph graph("softmax");
  graph.output("y", graph.softmax(graph.input("x", {8, 16}, f32)));
  const bench::PeerAnswer answer = ask(graph);
  ASSERT_TRUE(answer.peer) << answer.refusal;
  EXPECT_THAT(stand_in_.legacy_calls, Contains("softmax_forward"));
  EXPECT_THAT(answer.peer->description(), HasSubstr("cudnnSoftmax"));
}

TEST_F(Cudnn, MovesAreTransforms) {
  stand_in_.refused = {DescriptorType::operation_concat};
  Graph graph("join");
  const Value parts[] = {graph.input("a", {4, 8}, f32), graph.input("b", {4, 8}, f32)};
  graph.output("y", graph.concat(parts, 1));
  const bench::PeerAnswer answer = ask(graph);
  ASSERT_TRUE(answer.peer) << answer.refusal;
  stand_in_.legacy_calls.clear();
  answer.peer->run();
  EXPECT_THAT(stand_in_.legacy_calls, SizeIs(2));
}

TEST_F(Cudnn, MatricesAreRowsOfChannels) {
  const Graph graph = chain();
  const bench::PeerAnswer answer = ask(graph);
  const StandInDescriptor& add = *stand_in_.operations.at(0);
  const StandInDescriptor& x = *add.parts.at(Attribute::operation_pointwise_x).at(0);
  EXPECT_EQ(x.numbers.at(Attribute::tensor_dimensions), (std::vector<std::int64_t>{8, 16, 1, 1}));
  EXPECT_EQ(x.numbers.at(Attribute::tensor_strides), (std::vector<std::int64_t>{16, 1, 16, 16}));
  const StandInDescriptor& sum = *add.parts.at(Attribute::operation_pointwise_y).at(0);
  EXPECT_EQ(sum.number(Attribute::tensor_is_virtual), 1);
}

// Whether the peer does not run it: operations that cuDNN lacks, and attention, which is not
// composed.
bool is_untranslated(const Graph& graph) {
  const auto is_beyond = [](const Node& node) {
    return std::holds_alternative<CrossEntropyForward>(node.op) ||
           std::holds_alternative<CrossEntropyBackward>(node.op) ||
           std::holds_alternative<AttentionForward>(node.op) ||
           std::holds_alternative<Rope>(node.op);
  };
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), is_beyond);
}

// Every case of every GPU suite becomes an operation graph or is refused for a known reason.
TEST_F(Cudnn, TranslatesTheSuites) {
  library_ = std::make_unique<cudnn::Library>(stand_in_.functions(), Device::cpu());
  int translated = 0, refused = 0;
  for (const bench::SuiteText& text : bench::built_in_suites()) {
    if (text.device != DeviceKind::cuda) continue;
    const bench::Suite suite = bench::read_suite(std::string(text.name), text.text);
    for (const bench::Case& one : suite.cases) {
      SCOPED_TRACE(suite.name + " " + one.name);
      const Graph graph = one.problem.build();
      cudnn::OperationGraph operations(*library_, {graph, 0, graph.nodes().size()});
      try {
        translate(operations);
        operations.finish();
        ++translated;
        EXPECT_GE(stand_in_.operations.size(), graph.nodes().size());
        EXPECT_EQ(operations.bound().size(), graph.bound_tensors().size());
      } catch (const cudnn::Refused& refusal) {
        // Pooling runs through the legacy API.
        if (!std::string(refusal.what()).ends_with("out of bounds") && !is_untranslated(graph))
          ++refused;
        EXPECT_THAT(refusal.what(),
                    testing::AnyOf(HasSubstr("no such operation"), HasSubstr("not composed"),
                                   HasSubstr("resample kernels read out of bounds")));
      }
    }
  }
  EXPECT_GT(translated, 6 * refused) << "most refusals are sub-byte weights with block scales";
  std::printf("summary: bench: %d cases for GPUs become cuDNN graphs, %d do not\n", translated,
              refused);
}

TEST(CudnnLibrary, ThatIsNoneIsASentence) {
  EXPECT_THROW(cudnn::Library("/nowhere/libcudnn.so.9", Device::cpu()), Error);
  try {
    cudnn::Library("libm.so.6", Device::cpu());
    ADD_FAILURE() << "libm passed for cuDNN";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("not cuDNN 9"));
  }
}

TEST(Differences, AreInUnitsOfTheTolerance) {
  const std::vector<double> theirs = {1, -1, 1, -1};
  std::vector<double> ours = theirs;
  EXPECT_EQ(bench::worst_difference(bf16, ours, theirs), 0);
  ours[2] += 0x1p-7;  // relative to |value| + RMS = 2
  EXPECT_DOUBLE_EQ(bench::worst_difference(bf16, ours, theirs), 0.5);
  EXPECT_GT(bench::worst_difference(f32, ours, theirs), 16);
  EXPECT_TRUE(std::isinf(bench::worst_difference(i8, ours, theirs)));
  ours[0] = std::nan("");
  EXPECT_TRUE(std::isinf(bench::worst_difference(f32, ours, theirs)));
}

// measure() on a GPU, real or emulated, with the fake cuDNN. It computes nothing, which the check
// must detect: the peer is dropped.
TEST(GpuBench, MeasuresTinyCases) {
  const Device& device = support::test_device();
  if (device.props().kind != DeviceKind::cuda) GTEST_SKIP() << "no GPU: ASHLAR_TEST_DEVICE";
  StandIn stand_in;
  bench::Gpu gpu(device, {.flush = 1 << 16, .copy = 1 << 16});
  const cudnn::Library library(stand_in.functions(), device);
  bench::MeasureOptions options;
  options.seconds = 0;
  options.min_samples = 2;
  options.gpu = &gpu;
  options.cudnn = &library;
  const bench::Suite suite = bench::read_suite("tiny", kTinyGpuSuite);
  std::string said;
  bench::compile_ahead({suite}, options, [&](const std::string& what) { said = what; });
  EXPECT_THAT(said, MatchesRegex("compiled [0-9]+ of [0-9]+ kernels"));
  for (const bench::Case& one : suite.cases) {
    SCOPED_TRACE(one.name);
    const bench::Measurement m = bench::measure(one, options, [](const std::string&) {});
    EXPECT_TRUE(m.ok) << m.check;
    EXPECT_EQ(m.samples, 2);
    EXPECT_GT(m.ours, 0);
    EXPECT_FALSE(m.peer.has_value());
    EXPECT_THAT(m.check, HasSubstr("tolerances from the peer ("));
    EXPECT_GT(m.naive.value_or(0), 0);
    EXPECT_GT(m.copy_speed, 0);
    EXPECT_EQ(m.apart.has_value(), !one.apart.empty());
    EXPECT_EQ(m.back_to_back.has_value(), one.problem.back_to_back);
    EXPECT_EQ(m.runs_back_to_back > 0, one.problem.back_to_back);
    EXPECT_GT(m.same_copy.value_or(0), 0);
    EXPECT_EQ(m.same_copy_back_to_back.has_value(), one.problem.back_to_back);
    EXPECT_EQ(m.copy_share_back_to_back().value_or(0) > 0, one.problem.back_to_back);
    EXPECT_THAT(m.engine, HasSubstr("cuda."));
  }
  EXPECT_THAT(gpu.driver(), HasSubstr("CUDA"));
  EXPECT_NO_THROW(gpu.require_alive());
}

// By either method: capturing copies nothing; launching copies every slot from its own source.
TEST(GpuBench, CopiesBackToBackCopyEverySlot) {
  const Device& device = support::test_device();
  if (device.props().kind != DeviceKind::cuda) GTEST_SKIP() << "no GPU: ASHLAR_TEST_DEVICE";
  const bench::Gpu gpu(device, {.flush = 1 << 16, .copy = 1 << 16});
  const bench::GpuCopy copy(gpu, 2000, 3);
  ASSERT_EQ(copy.half(), 992);
  ASSERT_EQ(copy.slots(), 3);
  ASSERT_EQ(copy.methods(), 2) << "the driver offers no copy";
  ashlar::Memory own(device, copy.half());
  const auto fill = [&](void* there, int value) {
    own.fill(std::byte(value));
    ASSERT_TRUE(gpu.copy(there, own.data(), copy.half()));
  };
  const auto expect_all = [&](int slot, int value) {
    ASSERT_TRUE(gpu.copy(own.data(), copy.to(slot), copy.half()));
    std::vector<std::byte> bytes(static_cast<std::size_t>(copy.half()));
    own.download(bytes.data(), copy.half());
    EXPECT_THAT(bytes, testing::Each(std::byte(value))) << "place " << slot;
  };
  for (int slot = 0; slot < copy.slots(); ++slot) fill(copy.from(slot), slot + 1);
  const bench::CopiesBackToBack row(copy);
  ASSERT_THAT(row.methods, SizeIs(2));
  EXPECT_EQ(row.rounds, 1) << "a cache holds them all";
  EXPECT_DOUBLE_EQ(row.seconds_of_one(6), 2);
  for (const bench::WorkGraph& method : row.methods) {
    for (int slot = 0; slot < copy.slots(); ++slot) fill(copy.to(slot), 0);
    for (int slot = 0; slot < copy.slots(); ++slot) expect_all(slot, 0);
    method.launch();
    for (int slot = 0; slot < copy.slots(); ++slot) expect_all(slot, slot + 1);
  }
}

TEST(GpuBench, TensorsAreFilledAndSampled) {
  const Device& device = support::test_device();
  if (device.props().kind != DeviceKind::cuda) GTEST_SKIP() << "no GPU: ASHLAR_TEST_DEVICE";
  const bench::Gpu gpu(device, {.flush = 1 << 16, .copy = 1 << 16});
  Graph graph("large");
  const Value x = graph.input("x", {1500, 2000}, bf16);
  graph.output("y", relu(x));
  const bench::GpuTensors tensors(gpu, graph, {}, 5);
  const std::vector<double> some = bench::sample(gpu, x.tensor(), tensors.pointers()[0]);
  ASSERT_EQ(some.size(), 1000000U);
  double sum = 0, squares = 0;
  for (const double value : some) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 1e6, 0, 0.01);
  EXPECT_NEAR(squares / 1e6, 1.0 / 3, 0.01) << "uniform in [-1, 1]";

  // repeat() fills the memory with the pattern.
  std::vector<std::uint16_t> all(3000000);
  ashlar::Memory copy(device, 6000000);
  copy.fill(std::byte{1});
  copy.upload(all.data(), 4);
  ASSERT_TRUE(gpu.repeat(copy, 4));
  copy.download(all.data(), 6000000);
  EXPECT_THAT(all, testing::Each(0));
}

}  // namespace

}  // namespace ashlar::bench_test

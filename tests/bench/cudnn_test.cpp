// The client of cuDNN's interface, against a stand-in; and the way of a case over a GPU.
#include <gmock/gmock.h>

#include <ashlar/plan.hpp>

#include "bench/checking.hpp"
#include "bench/gpu.hpp"
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
  cudnn::Answer ask(const Graph& graph) {
    memory_ = std::make_unique<bench::Memory>(graph, bench::Problem{}, 1);
    library_ = std::make_unique<cudnn::Library>(stand_in_.functions(), Device::cpu());
    return cudnn::fastest_peer(*library_, {graph, memory_->pointers(), {}});
  }
  void TearDown() override {
    library_.reset();
    EXPECT_THAT(stand_in_.mistakes, IsEmpty());
    EXPECT_EQ(stand_in_.alive, 0) << "descriptors that nobody destroyed";
  }

  StandIn stand_in_;
  std::unique_ptr<bench::Memory> memory_;
  std::unique_ptr<cudnn::Library> library_;
};

TEST_F(Cudnn, AWholeGraphIsOneCall) {
  const Graph graph = chain();
  const cudnn::Answer answer = ask(graph);
  ASSERT_TRUE(answer.peer) << answer.refusal;
  EXPECT_EQ(answer.peer->kernels(), 1U);
  EXPECT_THAT(answer.peer->description(), HasSubstr("engine 7"));
  EXPECT_EQ(stand_in_.plans, 4) << "two proposals of each mode";
  stand_in_.runs.clear();
  answer.peer->run();
  ASSERT_THAT(stand_in_.runs, SizeIs(1));
  EXPECT_THAT(stand_in_.runs[0], SizeIs(4));
  EXPECT_THAT(stand_in_.runs[0], Contains(memory_->at(graph.find_tensor("x"))));
  EXPECT_THAT(stand_in_.runs[0], testing::Not(Contains(memory_->at(graph.find_tensor("y")))))
      << "its outputs must not be ours";
  answer.peer->finish();
  EXPECT_TRUE(answer.peer->output(graph.find_tensor("y")));
  EXPECT_EQ(library_->version(), "cuDNN 9.19.0");
}

TEST_F(Cudnn, WhatIsRefusedAsOneIsCut) {
  stand_in_.most_operations = 2;
  const Graph graph = chain();
  const cudnn::Answer answer = ask(graph);
  ASSERT_TRUE(answer.peer) << answer.refusal;
  EXPECT_EQ(answer.peer->kernels(), 2U);
  EXPECT_THAT(answer.peer->description(), HasSubstr("2 calls"));
  EXPECT_THAT(answer.peer->description(), HasSubstr("so many operations"));
  stand_in_.runs.clear();
  answer.peer->run();
  ASSERT_THAT(stand_in_.runs, SizeIs(2));
  EXPECT_THAT(stand_in_.runs[0], SizeIs(3)) << "x, b and what lies between";
  EXPECT_THAT(stand_in_.runs[1], SizeIs(3));
}

TEST_F(Cudnn, ARefusalIsASentence) {
  stand_in_.refused = {DescriptorType::operation_pointwise};
  const Graph graph = chain();
  const cudnn::Answer answer = ask(graph);
  EXPECT_FALSE(answer.peer);
  EXPECT_THAT(answer.refusal, HasSubstr("not supported"));
  EXPECT_THAT(answer.refusal, HasSubstr("this operation"));
}

TEST_F(Cudnn, OlderCallsTakeWhatTheBackendDoesNot) {
  stand_in_.refused = {DescriptorType::operation_reduction};
  Graph graph("softmax");
  graph.output("y", graph.softmax(graph.input("x", {8, 16}, f32)));
  const cudnn::Answer answer = ask(graph);
  ASSERT_TRUE(answer.peer) << answer.refusal;
  EXPECT_THAT(stand_in_.legacy_calls, Contains("softmax_forward"));
  EXPECT_THAT(answer.peer->description(), HasSubstr("cudnnSoftmax"));
}

TEST_F(Cudnn, MovesAreTransforms) {
  stand_in_.refused = {DescriptorType::operation_concat};
  Graph graph("join");
  const Value parts[] = {graph.input("a", {4, 8}, f32), graph.input("b", {4, 8}, f32)};
  graph.output("y", graph.concat(parts, 1));
  const cudnn::Answer answer = ask(graph);
  ASSERT_TRUE(answer.peer) << answer.refusal;
  stand_in_.legacy_calls.clear();
  answer.peer->run();
  EXPECT_THAT(stand_in_.legacy_calls, SizeIs(2));
}

TEST_F(Cudnn, MatricesAreRowsOfChannels) {
  const Graph graph = chain();
  const cudnn::Answer answer = ask(graph);
  const StandInDescriptor& add = *stand_in_.operations.at(0);
  const StandInDescriptor& x = *add.parts.at(Attribute::operation_pointwise_x).at(0);
  EXPECT_EQ(x.numbers.at(Attribute::tensor_dimensions), (std::vector<std::int64_t>{8, 16, 1, 1}));
  EXPECT_EQ(x.numbers.at(Attribute::tensor_strides), (std::vector<std::int64_t>{16, 1, 16, 16}));
  const StandInDescriptor& sum = *add.parts.at(Attribute::operation_pointwise_y).at(0);
  EXPECT_EQ(sum.number(Attribute::tensor_is_virtual), 1);
}

// Every case of every suite for GPUs: its nodes become operations, or are of those that the backend
// is known not to have.
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
        ++refused;
        EXPECT_THAT(refusal.what(),
                    testing::AnyOf(HasSubstr("no such operation"), HasSubstr("needs the index"),
                                   HasSubstr("only plain softmax")));
      }
    }
  }
  EXPECT_GT(translated, 10 * refused);
  std::printf("summary: bench: %d cases for GPUs become cuDNN graphs, %d do not\n", translated,
              refused);
}

TEST(CudnnLibrary, ThatIsNoneIsASentence) {
  EXPECT_THROW(cudnn::Library("/nowhere/libcudnn.so.9", Device::cpu()), Error);
  try {
    cudnn::Library("libm.so.6", Device::cpu());
    ADD_FAILURE() << "libm passed for cuDNN";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no cuDNN 9"));
  }
}

// Only a wrong output of ours is a failure; the peer's is named.
TEST(CheckDevice, ComparesBothSides) {
  const Graph graph = chain();
  const bench::Problem problem;
  bench::Memory memory(graph, problem, 3);
  const bench::Runner runner(graph, problem, memory.pointers(), Device::cpu());
  runner.run();
  const bench::Verdict right = bench::check_device(graph, problem, memory, nullptr, {}, false);
  EXPECT_TRUE(right.ok) << right.text;
  EXPECT_THAT(right.text, HasSubstr("oracle"));
  static_cast<float*>(memory.at(graph.find_tensor("y")))[5] += 1;
  const bench::Verdict wrong = bench::check_device(graph, problem, memory, nullptr, {}, false);
  EXPECT_FALSE(wrong.ok);
  EXPECT_THAT(wrong.text, HasSubstr("WRONG"));
}

// All of measure() on a GPU, real or emulated, with cuDNN's part played by the stand-in.
TEST(GpuBench, MeasuresTinyCases) {
  const Device& device = support::test_device();
  if (device.props().kind != DeviceKind::cuda) GTEST_SKIP() << "no GPU: ASHLAR_TEST_DEVICE";
  StandIn stand_in;
  bench::Gpu gpu(device, {.flush = 1 << 16, .copy = 1 << 16});
  const cudnn::Library library(stand_in.functions(), device);
  bench::MeasureOptions options;
  options.seconds = 0;
  options.least = 2;
  options.gpu = &gpu;
  options.cudnn = &library;
  const bench::Suite suite = bench::read_suite("tiny", kTinyGpuSuite);
  for (const bench::Case& one : suite.cases) {
    SCOPED_TRACE(one.name);
    const bench::Measurement m = bench::measure(one, options, [](const std::string&) {});
    EXPECT_TRUE(m.ok) << m.check;
    EXPECT_EQ(m.samples, 2);
    EXPECT_GT(m.ours, 0);
    EXPECT_GT(m.peer.value_or(0), 0) << m.peer_refusal;
    EXPECT_GT(m.naive.value_or(0), 0);
    EXPECT_GT(m.copy_speed, 0);
    EXPECT_EQ(m.apart.has_value(), !one.apart.empty());
    EXPECT_THAT(m.engine, HasSubstr("cuda."));
  }
  EXPECT_THAT(gpu.driver(), HasSubstr("CUDA"));
}

}  // namespace

}  // namespace ashlar::bench_test

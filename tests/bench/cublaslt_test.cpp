// The cuBLASLt peer against a fake library that computes nothing: descriptors of a graph and the
// search over algorithms.
#include <gmock/gmock.h>

#include <ashlar/plan.hpp>
#include <cstring>
#include <map>

#include "bench/memory.hpp"
#include "bench/peers/cublaslt/cublaslt_peer.hpp"
#include "bench/peers/cublaslt/matmul.hpp"
#include "bench/suite.hpp"

namespace ashlar::bench_test {
namespace {

namespace lt = bench::cublaslt;
using testing::HasSubstr;

struct Calls {
  int alive = 0;                          // descriptors
  int proposed = 3;                       // algorithms
  int refused_first = 0;                  // of these, the first ones fail to run
  std::vector<std::uint64_t> algorithms;  // of every matmul that ran
  std::map<lt::MatmulAttribute, std::uint64_t> matmul;
};
Calls calls;  // global: the API consists of plain functions

template <class Object>
int make(Object* object) {
  ++calls.alive;
  *object = reinterpret_cast<Object>(&calls);
  return 0;
}
int drop() {
  --calls.alive;
  return 0;
}

lt::Functions stand_in() {
  calls = {};
  lt::Functions f;
  f.create = [](lt::Handle* handle) { return make(handle); };
  f.destroy = [](lt::Handle) { return drop(); };
  f.error_text = [](int) { return "NOT_SUPPORTED"; };
  f.version = [] { return std::size_t{130101}; };
  f.create_layout = [](lt::Layout* layout, lt::Type, std::uint64_t, std::uint64_t, std::int64_t) {
    return make(layout);
  };
  f.destroy_layout = [](lt::Layout) { return drop(); };
  f.set_layout = [](lt::Layout, lt::LayoutAttribute, const void*, std::size_t) { return 0; };
  f.create_matmul = [](lt::MatmulDesc* matmul, lt::Compute, lt::Type) { return make(matmul); };
  f.destroy_matmul = [](lt::MatmulDesc) { return drop(); };
  f.set_matmul = [](lt::MatmulDesc, lt::MatmulAttribute which, const void* value,
                    std::size_t bytes) {
    std::memcpy(&calls.matmul[which], value, bytes);
    return 0;
  };
  f.create_preference = [](lt::Preference* preference) { return make(preference); };
  f.destroy_preference = [](lt::Preference) { return drop(); };
  f.set_preference = [](lt::Preference, lt::PreferenceAttribute, const void*, std::size_t) {
    return 0;
  };
  f.propose = [](lt::Handle, lt::MatmulDesc, lt::Layout, lt::Layout, lt::Layout, lt::Layout,
                 lt::Preference, int wanted, lt::Proposal* found, int* count) {
    *count = std::min(wanted, calls.proposed);
    for (int i = 0; i < *count; ++i) {
      found[i] = {};
      found[i].algorithm[0] = static_cast<std::uint64_t>(i);
    }
    return 0;
  };
  f.matmul = [](lt::Handle, lt::MatmulDesc, const void*, const void*, lt::Layout, const void*,
                lt::Layout, const void*, const void*, lt::Layout, void*, lt::Layout,
                const lt::Algorithm* algorithm, void*, std::size_t, void*) {
    calls.algorithms.push_back((*algorithm)[0]);
    return (*algorithm)[0] < static_cast<std::uint64_t>(calls.refused_first) ? 15 : 0;
  };
  return f;
}

struct Asked {
  bench::PeerAnswer answer;
  std::unique_ptr<bench::Memory> memory;
};
Asked ask(const lt::Library& library, const Graph& graph, bool tf32 = true) {
  auto memory = std::make_unique<bench::Memory>(graph, bench::Problem{}, 1);
  const std::vector<std::string> constants;
  bench::PeerAnswer answer =
      lt::fastest_peer(library, {graph, memory->pointers(), constants, tf32});
  return {std::move(answer), std::move(memory)};
}

Graph matmul(DType dtype, DType result) {
  Graph graph("matmul");
  const Value a = graph.input("a", {6, 32}, dtype), b = graph.input("b", {32, 16}, dtype);
  graph.output("c", graph.matmul(a, b), {.dtype = result});
  return graph;
}

TEST(CublasLtPeer, TriesEveryAlgorithm) {
  {
    const lt::Library library(stand_in(), Device::cpu());
    EXPECT_EQ(library.version(), "cuBLASLt 13.1.1");
    const Graph graph = matmul(f16, f16);
    const Asked asked = ask(library, graph);
    ASSERT_TRUE(asked.answer.peer) << asked.answer.refusal;
    EXPECT_THAT(asked.answer.peer->description(), HasSubstr("best of 3"));
    for (const std::uint64_t algorithm : {0U, 1U, 2U})
      EXPECT_THAT(calls.algorithms, testing::Contains(algorithm));
    EXPECT_TRUE(asked.answer.peer->output(graph.find_tensor("c")));
    EXPECT_FALSE(asked.answer.peer->output(graph.find_tensor("a")));
  }
  EXPECT_EQ(calls.alive, 0) << "leaked descriptors";
}

TEST(CublasLtPeer, LeavesOutWhatDoesNotRun) {
  const lt::Library library(stand_in(), Device::cpu());
  const Graph graph = matmul(f16, f16);
  calls.refused_first = 2;
  EXPECT_THAT(ask(library, graph).answer.peer->description(), HasSubstr("best of 1"));
  calls.refused_first = 3;
  EXPECT_THAT(ask(library, graph).answer.refusal, HasSubstr("NOT_SUPPORTED"));
  calls.proposed = 0;
  EXPECT_THAT(ask(library, graph).answer.refusal, HasSubstr("no algorithm"));
}

TEST(CublasLtPeer, DescribesTheTransposedMatmul) {
  const Graph graph = matmul(f32, f32);
  const lt::Problem strict = lt::describe(graph, false), rounded = lt::describe(graph, true);
  EXPECT_EQ(strict.compute, lt::Compute::f32);
  EXPECT_EQ(rounded.compute, lt::Compute::tf32);
  // Column-major: c^T (16 x 6) = b^T (16 x 32) a^T (32 x 6).
  EXPECT_EQ(strict.a.tensor, graph.find_tensor("b"));
  EXPECT_EQ(strict.a.rows, 16);
  EXPECT_EQ(strict.a.columns, 32);
  EXPECT_FALSE(strict.a.transposed);
  EXPECT_EQ(strict.b.rows, 32);
  EXPECT_EQ(strict.d.columns, 6);
}

// Every case of these matmul suites is one cuBLASLt call.
TEST(CublasLtPeer, SupportsTheSuites) {
  for (const char* name : {"matmul_bf16", "matmul_fp8"}) {
    const bench::Suite suite =
        bench::choose_suites(std::vector<std::string>{name}, DeviceKind::cuda).at(0);
    for (const bench::Case& one : suite.cases) {
      SCOPED_TRACE(one.name);
      const Graph graph = one.problem.build();
      const lt::Problem problem = lt::describe(graph, true);
      const Tensor& c = graph.tensor(graph.find_tensor("c"));
      EXPECT_EQ(problem.d.rows, c.dims[1]);
      EXPECT_EQ(problem.d_type, lt::Type::bf16);
      if (problem.a_type != lt::Type::e4m3) continue;
      EXPECT_TRUE(problem.a.transposed) << "the only layout it supports for fp8";
      EXPECT_FALSE(problem.b.transposed);
      EXPECT_EQ(problem.scale_a, graph.find_tensor("scale_a"));
      EXPECT_EQ(problem.scale_b, graph.find_tensor("scale_b"));
    }
  }
}

TEST(CublasLtPeer, FusesABiasAndAnActivation) {
  Graph graph("fused");
  const Value a = graph.input("a", {6, 32}, bf16), b = graph.input("b", {32, 16}, bf16),
              bias = graph.input("bias", {1, 16}, bf16);
  graph.output("c", relu(graph.matmul(a, b) + bias), {.dtype = bf16});
  const lt::Problem problem = lt::describe(graph, true);
  EXPECT_EQ(problem.epilogue, lt::Epilogue::relu_bias);
  EXPECT_EQ(problem.bias, graph.find_tensor("bias"));

  Graph other("other");
  const Value x = other.input("a", {6, 32}, bf16), y = other.input("b", {32, 16}, bf16),
              column = other.input("column", {6, 1}, bf16);
  other.output("c", other.matmul(x, y) + column, {.dtype = bf16});
  EXPECT_THROW(lt::describe(other, true), lt::Refused);
}

TEST(CublasLtPeer, ALibraryThatIsNoneIsASentence) {
  EXPECT_THROW(lt::Library("/nowhere/libcublasLt.so", Device::cpu()), Error);
}

}  // namespace
}  // namespace ashlar::bench_test

// evaluate_node allocates nothing. This file counts every operator new of the test program.
#include <atomic>
#include <cstdlib>
#include <new>

#include "reference/harness.hpp"

namespace {
std::atomic<std::int64_t> allocations{0};
}

// Not inlined: the compiler would pair malloc with delete and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size > 0 ? size : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ashlar::reference {
namespace {

TEST(EvaluateNode, AllocatesNothing) {
  Graph g;
  const Value x = g.input("x", {2, 4, 6, 6}, f16, channels_last),
              w = g.input("w", {4, 2, 3, 3}, bf16);
  const Value y = relu(g.conv(x, w, {.padding = {1, 1}}));
  NormForward norm;
  norm.mode = NormMode::group;
  norm.groups = 2;
  const Value normed = g.norm(y, norm).y;
  const Value parts[] = {normed, g.resample(y, {.mode = ResampleMode::bilinear, .size = {6, 6}})};
  const Value joined = g.concat(parts, 1);
  const auto [o, stats] = g.attention(joined, joined, joined, {.right_bound = 0}, {}, true);
  const AttentionGradients gradients = g.attention_backward(joined, joined, joined, o, o, stats);
  g.output("sum", g.reduce(gradients.dq, ReductionMode::add, {}));
  g.output("weights", g.softmax(joined));
  g.output("pooled", g.resample(gradients.dv, {.mode = ResampleMode::maxpool, .window = {2, 2}}));
  g.output("moved", g.transpose(g.reshape(gradients.dk, {16, 36}), {1, 0}));
  Evaluation e(g);
  e.fill_inputs(1);
  std::vector<std::vector<const void*>> inputs;
  std::vector<std::vector<void*>> outputs;
  for (const Node& node : g.nodes()) {
    inputs.emplace_back();
    outputs.emplace_back();
    for (TensorId id : node.inputs)
      inputs.back().push_back(id == kNoTensor ? nullptr : e.data(g.tensor(id).name));
    for (TensorId id : node.outputs)
      outputs.back().push_back(id == kNoTensor ? nullptr : e.data(g.tensor(id).name));
  }
  const std::int64_t before = allocations;
  for (std::size_t i = 0; i < g.nodes().size(); ++i)
    evaluate_node(g, g.nodes()[i], {inputs[i], outputs[i]});
  EXPECT_EQ(allocations - before, 0);
  for (const auto& [name, expected] : e.oracle()) {
    const Comparison comparison = expected.compare(e.tensor(name), e.data(name));
    EXPECT_TRUE(comparison.ok) << comparison.summary;
    EXPECT_EQ(comparison.compared, element_count(e.tensor(name).dims));
  }
}

}  // namespace
}  // namespace ashlar::reference

// The structural hash: what it depends on and what it ignores.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <set>

#include "graph/sample_graphs.hpp"

namespace ashlar::tests {
namespace {

std::uint64_t hash_of(const std::function<void(Graph&)>& build) {
  Graph g;
  build(g);
  return g.structural_hash();
}

TEST(StructuralHash, IgnoresNamesAndUids) {
  const auto build = [](Graph& g, const std::string& prefix, std::int64_t uid) {
    const Value x = g.input(prefix + "x", {2, 3}, f32), b = g.input(prefix + "b", {1, 3}, f32);
    const Value sum = g.pointwise(PointwiseMode::add, std::array{x, b}, {}, {.name = prefix + "s"});
    g.set_uid(g.output(prefix + "y", relu(sum)), uid);
  };
  EXPECT_EQ(hash_of([&](Graph& g) { build(g, "one", 50); }),
            hash_of([&](Graph& g) { build(g, "another", 60); }));
}

TEST(StructuralHash, IgnoresTheOrderOfInsertion) {
  const auto forward = hash_of([](Graph& g) {
    const Value x = g.input("x", {2, 3}, f32), b = g.input("b", {2, 3}, f32);
    const Value first = x - b, second = relu(x);
    g.output("p", first);
    g.output("q", second);
  });
  const auto backward = hash_of([](Graph& g) {
    const Value b = g.input("b", {2, 3}, f32), x = g.input("x", {2, 3}, f32);
    const Value second = relu(x), first = x - b;
    g.output("q", second);
    g.output("p", first);
  });
  EXPECT_EQ(forward, backward);
}

TEST(StructuralHash, DistinguishesEqualInputs) {
  const auto difference = [](bool same, bool swapped) {
    return hash_of([=](Graph& g) {
      const Value x = g.input("x", {2}, f32), b = g.input("b", {2}, f32);
      const Value root = sqrt(x);
      g.output("y", swapped ? (same ? x : b) - root : root - (same ? x : b));
    });
  };
  std::set<std::uint64_t> hashes = {difference(false, false), difference(true, false),
                                    difference(false, true), difference(true, true)};
  EXPECT_EQ(hashes.size(), 4u);
}

TEST(StructuralHash, ChangesWithEveryFact) {
  std::set<std::uint64_t> hashes;
  int graphs = 0;
  const auto add = [&](const std::function<void(Graph&)>& build) {
    hashes.insert(hash_of(build));
    ++graphs;
  };
  const auto conv = [&](const ConvAttributes& attributes, DType dtype = f32, Dims x = {1, 4, 8, 8},
                        const Layout& layout = row_major, const OutputSpec& spec = {}) {
    add([=](Graph& g) {
      const Value input = g.input("x", x, dtype, layout), w = g.input("w", {4, 4, 3, 3}, dtype);
      g.output("y", g.conv(input, w, attributes, spec));
    });
  };
  conv({});
  conv({.padding = {1, 1}});
  conv({.padding = {1, 1}, .post_padding = Dims{0, 1}});
  conv({.stride = {2, 1}});
  conv({.stride = {1, 2}});
  conv({.dilation = {2, 2}});
  conv({.mode = ConvMode::convolution});
  conv({.alpha = 2.0});
  conv({}, f16);
  conv({}, f32, {2, 4, 8, 8});
  conv({}, f32, {1, 4, 8, 8}, channels_last);
  conv({}, f32, {1, 4, 8, 8}, Dims{1000, 64, 8, 1});
  conv({}, f32, {1, 4, 8, 8}, row_major, {.dtype = f64});
  conv({}, f32, {1, 4, 8, 8}, row_major, {.layout = channels_last});
  conv({}, f32, {1, 4, 8, 8}, row_major, {.compute = f64});
  for (double value : {1.0, 2.0})
    for (PointwiseMode mode : {PointwiseMode::add, PointwiseMode::mul})
      add([=](Graph& g) {
        const Value x = g.input("x", {2}, f32);
        g.output("y", g.pointwise(mode, std::array{x, g.constant(value, f32, 1)}));
      });
  add([](Graph& g) {
    const Value x = g.input("x", {2}, f32);
    g.output("y", relu(x));
  });
  add([](Graph& g) {
    const Value x = g.input("x", {2}, f32);
    g.output("y", relu(x));
    g.output("z", relu(x));
  });
  add([](Graph& g) {
    const Value x = g.input("x", {2}, f32), y = g.output("y", relu(x));
    g.output("z", relu(y));
  });
  add([](Graph& g) {
    const Value x = g.scalar("x", f32, 1);
    g.output("y", relu(x));
  });
  EXPECT_EQ(hashes.size(), static_cast<std::size_t>(graphs));
}

TEST(StructuralHash, SamplesDiffer) {
  std::set<std::uint64_t> hashes;
  const auto samples = sample_graphs();
  for (const SampleGraph& sample : samples) hashes.insert(sample.graph.structural_hash());
  EXPECT_EQ(hashes.size(), samples.size());
}

TEST(StructuralHash, DeepGraphsDoNotOverflowTheStack) {
  Graph g;
  Value x = g.input("x", {1}, f32);
  for (int i = 0; i < 200000; ++i) x = relu(x);
  g.output("y", x);
  EXPECT_NE(g.structural_hash(), 0u);
}

}  // namespace
}  // namespace ashlar::tests

// The public Plan: running, binding, limits, saving, explaining.
#include <gtest/gtest.h>

#include <array>
#include <ashlar/ashlar.hpp>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

namespace ashlar {
namespace {

// y = relu(a b) c, two regions with an intermediate between them.
Graph two_matmuls() {
  Graph g("two_matmuls");
  const Value a = g.input("a", {3, 4}, f32), b = g.input("b", {4, 5}, f32),
              c = g.input("c", {5, 2}, f32);
  g.output("y", g.matmul(relu(g.matmul(a, b)), c));
  return g;
}

struct Buffers {
  std::vector<float> a = std::vector<float>(12, 0.5f), b = std::vector<float>(20, 2.0f),
                     c = std::vector<float>(10, 1.0f), y = std::vector<float>(6);
};

struct AlignedFree {
  void operator()(void* memory) const { std::free(memory); }
};

std::unique_ptr<void, AlignedFree> workspace_for(const Plan& plan) {
  return std::unique_ptr<void, AlignedFree>(
      plan.workspace_size() == 0
          ? nullptr
          : std::aligned_alloc(64,
                               static_cast<std::size_t>((plan.workspace_size() + 63) / 64 * 64)));
}

void expect_result(const Buffers& run) {
  for (float value : run.y) EXPECT_FLOAT_EQ(value, 20.0f);
}

template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Positions have types; names and uids are checked when they are bound.
template <class Pointer>
concept BindsByPosition = requires(Plan plan, std::vector<Pointer> pointers) {
  plan.run(pointers);
};
static_assert(BindsByPosition<void*> && !BindsByPosition<const void*>);

TEST(Plan, InputsMayBeConstOutputsMayNot) {
  const Plan plan = compile(two_matmuls(), Device::cpu());
  const auto workspace = workspace_for(plan);
  Buffers run;
  const Buffers& inputs = run;
  plan.run(
      {{"a", inputs.a.data()}, {"b", inputs.b.data()}, {"c", inputs.c.data()}, {"y", run.y.data()}},
      workspace.get());
  expect_result(run);
  Binding binding = plan.binding();
  const std::string sentence =
      "binding: pointer of output 'y': got a const one, expected a mutable one";
  EXPECT_EQ(message_of([&] { binding.set("y", inputs.y.data()); }), sentence);
  const std::int64_t uid = plan.graph().tensor(plan.graph().find_tensor("y")).uid;
  EXPECT_EQ(message_of([&] { binding.set(uid, inputs.y.data()); }), sentence);
  EXPECT_EQ(message_of([&] { plan.run({{"y", inputs.y.data()}}); }), sentence);
}

TEST(Plan, RunsByNameByUidAndByBinding) {
  const Graph g = two_matmuls();
  const Plan plan = compile(g, Device::cpu());
  const auto workspace = workspace_for(plan);
  Buffers run;
  plan.run({{"a", run.a.data()}, {"b", run.b.data()}, {"c", run.c.data()}, {"y", run.y.data()}},
           workspace.get());
  expect_result(run);

  run.y.assign(6, 0);
  std::vector<std::pair<std::int64_t, BoundPointer>> by_uid;
  void* pointers[] = {run.a.data(), run.b.data(), run.c.data(), run.y.data()};
  for (std::size_t i = 0; i < 4; ++i)
    by_uid.emplace_back(g.tensor(plan.bound_tensors()[i]).uid, pointers[i]);
  plan.run(by_uid, workspace.get());
  expect_result(run);

  run.y.assign(6, 0);
  Binding binding = plan.binding();
  binding.set("a", run.a.data());
  binding.set("b", run.b.data());
  binding.set("c", run.c.data());
  binding.set("y", run.y.data());
  plan.run(binding, workspace.get());
  expect_result(run);
}

TEST(Plan, ExistsForEveryWorkspaceLimit) {
  for (std::int64_t limit : {0, 1, 100, 1 << 20}) {
    const Plan plan = compile(two_matmuls(), Device::cpu(), {.workspace_limit = limit});
    EXPECT_LE(plan.workspace_size(), limit);
    const auto workspace = workspace_for(plan);
    Buffers run;
    plan.run({{"a", run.a.data()}, {"b", run.b.data()}, {"c", run.c.data()}, {"y", run.y.data()}},
             workspace.get());
    expect_result(run);
  }
  EXPECT_GT(compile(two_matmuls(), Device::cpu(), {.workspace_limit = 0}).owned_bytes(), 0);
}

TEST(Plan, RunsOneOperationAtATimeAndGuarded) {
  for (const CompileOptions& options :
       {CompileOptions{.fuse = false, .reference_only = true}, CompileOptions{.guard = true}}) {
    const Plan plan = compile(two_matmuls(), Device::cpu(), options);
    const auto workspace = workspace_for(plan);
    Buffers run;
    plan.run({{"a", run.a.data()}, {"b", run.b.data()}, {"c", run.c.data()}, {"y", run.y.data()}},
             workspace.get());
    expect_result(run);
  }
}

TEST(Plan, SavesAndLoads) {
  const Plan plan = compile(two_matmuls(), Device::cpu(), {.deterministic = true});
  const Plan loaded = Plan::from_json(plan.to_json());
  EXPECT_EQ(loaded.to_json(), plan.to_json());
  EXPECT_EQ(loaded.region_count(), plan.region_count());
  const auto workspace = workspace_for(loaded);
  Buffers run;
  loaded.run({{"a", run.a.data()}, {"b", run.b.data()}, {"c", run.c.data()}, {"y", run.y.data()}},
             workspace.get());
  expect_result(run);
}

TEST(Plan, RejectsADamagedFile) {
  const std::string json = compile(two_matmuls(), Device::cpu()).to_json();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = json;
    changed.replace(changed.find(from), from.size(), to);
    return message_of([&] { Plan::from_json(changed); });
  };
  EXPECT_NE(with("ashlar-plan", "ashlar-plum").find("format"), std::string::npos);
  EXPECT_NE(with("\"version\": 1", "\"version\": 2").find("version"), std::string::npos);
  EXPECT_NE(with("cpu.matmul_gemm", "cpu.matmul_gone").find("compile the graph again"),
            std::string::npos);
  EXPECT_NE(with("\"mode\": \"relu_fwd\"", "\"mode\": \"tanh_fwd\"").find("graph_hash"),
            std::string::npos);
  EXPECT_NE(message_of([&] { Plan::from_json(json.substr(0, json.size() / 2)); }).find("JSON"),
            std::string::npos);
}

TEST(Plan, AlignsComplexNumbersAsTheirParts) {
  Graph graph;
  graph.output("y", graph.matmul(graph.input("a", {1, 1}, complex_f64),
                                 graph.input("b", {1, 1}, complex_f64)));
  const Plan plan = compile(graph, Device::cpu());
  alignas(16) std::array<std::array<std::byte, 32>, 3> values{};
  const auto bytes = static_cast<std::size_t>(plan.workspace_size());
  std::vector<std::byte> workspace(bytes + 64);
  void* aligned = workspace.data();
  std::size_t room = workspace.size();
  ASSERT_NE(std::align(64, bytes, aligned, room), nullptr);
  const auto run_at = [&](std::ptrdiff_t offset) {
    plan.run({{"a", values[0].data() + offset},
              {"b", values[1].data() + offset},
              {"y", values[2].data() + offset}},
             aligned);
  };
  EXPECT_NO_THROW(run_at(8));
  EXPECT_NE(message_of([&] { run_at(4); }).find("alignment of complex_f64"), std::string::npos);
}

TEST(Plan, RunErrorsNameTheArgument) {
  const Plan plan = compile(two_matmuls(), Device::cpu());
  Buffers run;
  EXPECT_NE(message_of([&] {
              plan.run({{"q", run.a.data()}});
            }).find("got 'q', expected one of: a, b, c, y"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              plan.run({{"a", run.a.data()}});
            }).find("pointer of 'b': got null"),
            std::string::npos);
  EXPECT_NE(
      message_of([&] {
        plan.run({{"a", reinterpret_cast<std::byte*>(run.a.data()) + 2},
                  {"b", run.b.data()},
                  {"c", run.c.data()},
                  {"y", run.y.data()}});
      }).find("pointer of 'a': got an address that is not a multiple of 4, the alignment of f32"),
      std::string::npos);
  EXPECT_NE(
      message_of([&] { plan.run(std::span<void* const>()); }).find("got 0 pointers, expected 4"),
      std::string::npos);
  if (plan.workspace_size() > 0) {
    const auto call = [&](void* workspace) {
      return message_of([&] {
        plan.run(
            {{"a", run.a.data()}, {"b", run.b.data()}, {"c", run.c.data()}, {"y", run.y.data()}},
            workspace);
      });
    };
    EXPECT_NE(call(nullptr).find("workspace: got null"), std::string::npos);
    EXPECT_NE(call(reinterpret_cast<void*>(1)).find("multiple of 64"), std::string::npos);
  }
  Plan other = compile(two_matmuls(), Device::cpu());
  EXPECT_NE(message_of([&] { plan.run(other.binding()); }).find("another plan"), std::string::npos);
}

TEST(Plan, IsExplainedForAnAbsentDevice) {
  const std::string text = explain(two_matmuls(), Device::named("h200"));
  EXPECT_NE(text.find("h200"), std::string::npos);
  EXPECT_NE(text.find("region 1 of 2: matmul + relu_fwd"), std::string::npos);
  EXPECT_NE(text.find("not present"), std::string::npos);
  EXPECT_THROW(compile(two_matmuls(), Device::named("h200")), Error);
  EXPECT_NE(message_of([] { Device::named("h900"); }).find("expected one of: cpu, h200"),
            std::string::npos);
}

// 137 GFLOP at the peak rates of an H200: 989 TFLOP/s with 16-bit operands, twice that with 8-bit,
// half with tf32, 67 TFLOP/s in f32.
TEST(Plan, RooflineUsesTensorCorePeaks) {
  const auto roofline = [](DType a, DType b, const CompileOptions& options = {}) {
    Graph g;
    g.output("c", g.matmul(g.input("a", {4096, 4096}, a), g.input("b", {4096, 4096}, b)));
    const std::string text = explain(g, Device::named("h200"), options);
    const std::size_t at = text.find("roofline  ") + 10;
    return text.substr(at, text.find(" (", at) - at);
  };
  EXPECT_EQ(roofline(bf16, bf16), "139 us");
  EXPECT_EQ(roofline(e4m3, e5m2), "69.5 us");
  EXPECT_EQ(roofline(i8, i8), "69.5 us");
  EXPECT_EQ(roofline(i8, bf16), "139 us");
  EXPECT_EQ(roofline(f32, f32), "278 us");
  EXPECT_EQ(roofline(f32, f32, {.allow_tf32 = false}), "2.05 ms");
}

// explain() counts engines for other operations and lists all others with their refusal or
// estimate.
TEST(Plan, ExplainsEveryEngineItTried) {
  Graph g;
  g.output("c", g.matmul(g.input("a", {4, 4}, f32), g.input("b", {4, 4}, f32)));
  const std::string text = compile(g, Device::cpu()).explain();
  EXPECT_NE(text.find("cpu.matmul_gemm: "), std::string::npos) << text;
  EXPECT_NE(text.find("cpu.matmul_complex: refused: real operands"), std::string::npos) << text;
  EXPECT_NE(text.find("cpu.reference: "), std::string::npos) << text;
  EXPECT_NE(text.find("cpu.matmul_int8: refused: "), std::string::npos) << text;
  const std::size_t others = engines(DeviceKind::cpu).size() - 4;
  EXPECT_NE(text.find("others    " + std::to_string(others) + " engines for other operations"),
            std::string::npos)
      << text;
}

TEST(Plan, WritesThroughATransposedOutput) {
  Graph g;
  const Value a = g.input("a", {2, 3}, f32);
  g.output("y", g.transpose(a * 2.0, {1, 0}));
  const Plan plan = compile(g, Device::cpu());
  EXPECT_EQ(plan.region_count(), 1);
  EXPECT_EQ(plan.workspace_size(), 0);
  const std::vector<float> input = {1, 2, 3, 4, 5, 6};
  std::vector<float> y(6);
  plan.run({{"a", input.data()}, {"y", y.data()}});
  EXPECT_EQ(y, (std::vector<float>{2, 8, 4, 10, 6, 12}));
}

// 2^53 + 1 is not representable in double.
TEST(Plan, MovesEveryBitOfA64BitInteger) {
  constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;
  for (bool fuse : {true, false}) {
    Graph g;
    const Value x = g.input("x", {2, 3}, i64);
    g.output("transposed", g.transpose(x, {1, 0}));
    g.output("reshaped", g.reshape(g.transpose(x, {1, 0}), {6}));
    g.output("joined", g.concat(std::array{x, x}, 0));
    const Plan plan = compile(g, Device::cpu(), {.fuse = fuse});
    const auto workspace = workspace_for(plan);
    const std::vector<std::int64_t> input = {
        kOdd, kOdd + 2, kOdd + 4, -kOdd, std::numeric_limits<std::int64_t>::min(), 7};
    std::vector<std::int64_t> transposed(6), reshaped(6), joined(12);
    plan.run({{"x", input.data()},
              {"transposed", transposed.data()},
              {"reshaped", reshaped.data()},
              {"joined", joined.data()}},
             workspace.get());
    EXPECT_EQ(transposed, (std::vector<std::int64_t>{input[0], input[3], input[1], input[4],
                                                     input[2], input[5]}));
    EXPECT_EQ(reshaped, transposed);
    for (std::size_t i = 0; i < joined.size(); ++i) EXPECT_EQ(joined[i], input[i % 6]);
  }
}

}  // namespace
}  // namespace ashlar

// Attention over a long sequence: its peak memory besides the tensors, and sampled rows against the
// oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <ashlar/ashlar.hpp>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace ashlar::cpu {
namespace {

constexpr std::int64_t kLength = 16384, kLongDim = 64;
constexpr std::int64_t kMaxExtraBytes = std::int64_t{64} << 20;
// Around the borders of query tiles (216 forward, 128 backward, 1024 packed at once) and key tiles
// (128), and both ends.
constexpr std::int64_t kCheckedRows[] = {0, 127, 128, 215, 216, 1024, 5000, 12287, kLength - 1};

// A field of /proc/self/status in bytes; -1 if absent.
std::int64_t memory_field(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
  return -1;
}

// Peak growth of resident memory during a run; -1 if the kernel does not report it.
template <class Body>
std::int64_t peak_growth(Body&& body) {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;  // resets the peak
  const bool cleared = clear.good();
  const std::int64_t before = memory_field("VmRSS");
  body();
  return cleared && before >= 0 ? memory_field("VmHWM") - before : -1;
}

struct Sequence {
  std::vector<float> q, k, v, o, d_o, stats, dq, dk, dv;
  Sequence() {
    const Tensor rows = row_tensor(kLength);
    std::uint64_t seed = 1;
    for (std::vector<float>* tensor : {&q, &k, &v, &d_o, &o, &dq, &dk, &dv}) {
      tensor->resize(static_cast<std::size_t>(kLength * kLongDim));
      fill_random(rows, tensor->data(), seed++);
    }
    stats.resize(static_cast<std::size_t>(kLength));
  }
  static Tensor row_tensor(std::int64_t rows) {
    Graph graph;
    return graph.tensor(graph.input("x", {1, 1, rows, kLongDim}, f32).id());
  }
};

float* row(std::vector<float>& tensor, std::int64_t i, std::int64_t width = kLongDim) {
  return tensor.data() + i * width;
}

// Runs a plan and checks its memory besides the tensors.
void run_within_limit(const char* what, const Graph& graph,
                      std::initializer_list<std::pair<std::string, float*>> tensors) {
  const Plan plan = compile(graph, Device::cpu());
  EXPECT_NE(plan.to_json().find("cpu.attention_tiled"), std::string::npos) << plan.explain();
  Binding binding = plan.binding();
  for (const auto& [name, data] : tensors) binding.set(name, data);
  const std::int64_t growth = peak_growth([&] {
    constexpr std::size_t kAlignment = 64;
    std::size_t space = static_cast<std::size_t>(plan.workspace_size()) + kAlignment;
    const std::unique_ptr<std::byte[]> block(new std::byte[space]);  // not touched before the run
    void* workspace = block.get();
    ASSERT_NE(std::align(kAlignment, space - kAlignment, workspace, space), nullptr);
    plan.run(binding, workspace);
  });
  std::printf("summary: %s of %d tokens: workspace %.1f MiB, resident memory grew by %.1f MiB\n",
              what, static_cast<int>(kLength), static_cast<double>(plan.workspace_size()) / 0x1p20,
              static_cast<double>(growth) / 0x1p20);
  EXPECT_LT(plan.workspace_size(), kMaxExtraBytes);
  EXPECT_LT(growth, kMaxExtraBytes);
}

// Compares rows in memory with the oracle's results for `inputs`, by output name.
void expect_rows(const Graph& graph, const std::vector<std::pair<std::string, const float*>>& data,
                 const std::string& what) {
  std::vector<const void*> pointers;
  const auto find = [&](const std::string& name) {
    return std::find_if(data.begin(), data.end(), [&](const auto& d) { return d.first == name; })
        ->second;
  };
  for (TensorId id : graph.bound_tensors()) pointers.push_back(find(graph.tensor(id).name));
  for (const Expected& expected : evaluate_reference(graph, pointers)) {
    const Tensor& tensor = graph.tensor(expected.tensor);
    const Comparison comparison = expected.compare(tensor, find(tensor.name));
    EXPECT_TRUE(comparison.ok && comparison.compared > 0) << what << ": " << comparison.summary;
  }
}

TEST(AttentionLong, CausalForwardAndBackward) {
  Sequence s;
  const Dims dims = {1, 1, kLength, kLongDim};
  const AttentionAttributes causal{.right_bound = 0};
  {
    Graph g;
    const Value q = g.input("q", dims, f32), k = g.input("k", dims, f32),
                v = g.input("v", dims, f32);
    const auto [o, stats] = g.attention(q, k, v, causal, {}, true);
    g.output("o", o);
    g.output("stats", stats);
    run_within_limit("forward", g,
                     {{"q", s.q.data()},
                      {"k", s.k.data()},
                      {"v", s.v.data()},
                      {"o", s.o.data()},
                      {"stats", s.stats.data()}});
  }
  {
    Graph g;
    const Value q = g.input("q", dims, f32), k = g.input("k", dims, f32),
                v = g.input("v", dims, f32), o = g.input("o", dims, f32),
                d_o = g.input("do", dims, f32), stats = g.input("stats", {1, 1, kLength, 1}, f32);
    const AttentionGradients r = g.attention_backward(q, k, v, o, d_o, stats, causal);
    g.output("dq", r.dq);
    g.output("dk", r.dk);
    g.output("dv", r.dv);
    run_within_limit("backward", g,
                     {{"q", s.q.data()},
                      {"k", s.k.data()},
                      {"v", s.v.data()},
                      {"o", s.o.data()},
                      {"do", s.d_o.data()},
                      {"stats", s.stats.data()},
                      {"dq", s.dq.data()},
                      {"dk", s.dk.data()},
                      {"dv", s.dv.data()}});
  }

  // Row i of o, stats and dq depends on query i and the keys up to i.
  for (std::int64_t i : kCheckedRows) {
    const Dims one = {1, 1, 1, kLongDim}, seen = {1, 1, i + 1, kLongDim};
    Graph g;
    const Value q = g.input("q", one, f32), k = g.input("k", seen, f32),
                v = g.input("v", seen, f32), given_o = g.input("given_o", one, f32),
                d_o = g.input("do", one, f32),
                given_stats = g.input("given_stats", {1, 1, 1, 1}, f32);
    const auto [o, stats] = g.attention(q, k, v, {}, {}, true);
    g.output("o", o);
    g.output("stats", stats);
    g.output("dq", g.attention_backward(q, k, v, given_o, d_o, given_stats).dq);
    expect_rows(g,
                {{"q", row(s.q, i)},
                 {"k", s.k.data()},
                 {"v", s.v.data()},
                 {"given_o", row(s.o, i)},
                 {"do", row(s.d_o, i)},
                 {"given_stats", row(s.stats, i, 1)},
                 {"o", row(s.o, i)},
                 {"stats", row(s.stats, i, 1)},
                 {"dq", row(s.dq, i)}},
                "row " + std::to_string(i));
  }
  // Row j of dk and dv depends on key j and the queries from j on.
  for (std::int64_t j : kCheckedRows) {
    const Dims one = {1, 1, 1, kLongDim}, seeing = {1, 1, kLength - j, kLongDim};
    Graph g;
    const Value q = g.input("q", seeing, f32), k = g.input("k", one, f32),
                v = g.input("v", one, f32), o = g.input("o", seeing, f32),
                d_o = g.input("do", seeing, f32),
                stats = g.input("stats", {1, 1, kLength - j, 1}, f32);
    const AttentionGradients r = g.attention_backward(q, k, v, o, d_o, stats);
    g.output("dk", r.dk);
    g.output("dv", r.dv);
    expect_rows(g,
                {{"q", row(s.q, j)},
                 {"k", row(s.k, j)},
                 {"v", row(s.v, j)},
                 {"o", row(s.o, j)},
                 {"do", row(s.d_o, j)},
                 {"stats", row(s.stats, j, 1)},
                 {"dk", row(s.dk, j)},
                 {"dv", row(s.dv, j)}},
                "key " + std::to_string(j));
  }
}

}  // namespace
}  // namespace ashlar::cpu

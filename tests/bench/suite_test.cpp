// The suite reader and the built-in suites of shapes/.
#include <gmock/gmock.h>

#include <algorithm>
#include <ashlar/plan.hpp>

#include "bench/counts.hpp"
#include "bench/engines_used.hpp"
#include "bench/suite.hpp"
#include "tiny_suite.hpp"

namespace ashlar::bench_test {

namespace {

using bench::Case;
using bench::Problem;
using bench::Suite;
using testing::ElementsAre;
using testing::HasSubstr;

// The tiny suite with the first `old` replaced.
std::string changed(const std::string& old, const std::string& with) {
  std::string text = kTinySuite;
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), with);
}

void expect_refused(const std::string& text, const std::string& part) {
  try {
    bench::read_suite("tiny", text);
    ADD_FAILURE() << "read without complaint; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::parse);
    EXPECT_THAT(error.what(), HasSubstr("tiny"));
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(Reader, RepeatsCasesAndFillsInParameters) {
  const Suite suite = bench::read_suite("tiny", kTinySuite);
  EXPECT_EQ(suite.name, "tiny");
  EXPECT_EQ(suite.target.worst, 0.5);
  std::vector<std::string> names;
  for (const Case& one : suite.cases) names.push_back(one.name);
  EXPECT_THAT(names,
              ElementsAre("matmul_m8", "matmul_m40", "half", "fused_m8", "fused_m40", "gradient"));

  const Graph matmul = suite.cases[1].problem.build();
  EXPECT_EQ(matmul.tensor(matmul.find_tensor("a")).dims, (Dims{40, 24}));
  EXPECT_THAT(suite.cases[1].problem.constants, ElementsAre("b"));
  const Graph half = suite.cases[2].problem.build();
  EXPECT_EQ(half.tensor(half.find_tensor("a")).dtype, f16);
  EXPECT_EQ(suite.cases[3].problem.build().nodes().size(), 3U);
  EXPECT_EQ(suite.cases[3].alone->build().nodes().size(), 1U);
  const Case& gradient = suite.cases[5];
  EXPECT_EQ(gradient.problem.ranges.at("dy").low, 2);
  const Graph softmax = gradient.prepare->build(), naive = gradient.naive->build();
  EXPECT_EQ(softmax.tensor(softmax.find_tensor("y")).dims, (Dims{8, 32}));
  EXPECT_EQ(naive.tensor(naive.find_tensor("y")).dims, (Dims{4, 32}));
}

TEST(Reader, ReadsPeerFailuresAndTolerances) {
  const Suite usual = bench::read_suite("tiny", kTinySuite);
  EXPECT_EQ(usual.cases[2].peer_fails, "");
  EXPECT_EQ(usual.cases[2].far, 16);
  const Suite suite = bench::read_suite(
      "tiny", changed("\"name\": \"half\"",
                      "\"name\": \"half\", \"peer_fails\": \"it ends\", \"far\": 40"));
  EXPECT_EQ(suite.cases[2].peer_fails, "it ends");
  EXPECT_EQ(suite.cases[2].far, 40);
}

TEST(Reader, ReadsBackToBack) {
  const Suite suite = bench::read_suite(
      "tiny", changed("\"name\": \"half\"", "\"name\": \"half\", \"back_to_back\": true"));
  EXPECT_TRUE(suite.cases[2].problem.back_to_back);
  EXPECT_FALSE(suite.cases[0].problem.back_to_back);
  expect_refused(changed("\"name\": \"half\"", "\"name\": \"half\", \"back_to_back\": 8"),
                 "back_to_back");
}

TEST(Reader, RefusesBadFilesNamingTheLocation) {
  expect_refused("", "not JSON");
  expect_refused("{\"format\": ", "not JSON");
  expect_refused("[]", "expected an object");
  expect_refused(changed("ashlar-suite", "shapes"), "tiny.format: got \"shapes\"");
  expect_refused(changed("\"version\": 1", "\"version\": 2"), "tiny.version: got 2");
  expect_refused(changed("\"version\": 1,", "\"version\": 1, \"version\": 1,"), "twice");
  expect_refused(changed("\"title\"", "\"titel\""), "unknown member 'titel'");
  expect_refused(changed("\"title\": \"Small things\",", ""), "'title' is missing");
  expect_refused(changed("\"Small things\"", "7"), "tiny.title: got 7, expected a nonempty string");
  expect_refused(changed("\"speed\": 1.5", "\"speed\": \"fast\""), "tiny.target.speed");
  expect_refused(changed("\"speed\": 1.5", "\"pace\": 1.5"), "unknown member 'pace'");
  expect_refused(changed("\"graph\": \"matmul\"", "\"graph\": \"conv\""), "no graph 'conv'");
  expect_refused(changed("\"constants\"", "\"constant\""), "unknown member 'constant'");
  expect_refused(changed(", \"k\": 24", ""), "parameter 'k' is missing");
  expect_refused(changed("\"k\": 24", "\"k\": 24, \"z\": 1"), "no case uses the parameter 'z'");
  expect_refused(changed("\"name\": \"half\"", "\"name\": \"half\", \"z\": 1"),
                 "tiny.cases[1]: the graph does not use the parameter 'z'");
  expect_refused(changed("\"name\": \"half\", \"m\": 8", "\"name\": \"matmul_m8\", \"m\": 8"),
                 "duplicate case 'matmul_m8'");
  expect_refused(changed("\"half\"", "\"a half\""), "letters, digits");
  expect_refused(changed("{\"name\": \"half\",", "{"), "'name' is missing");
  expect_refused(changed("[8, 40]", "8"), "tiny.each.m");
  expect_refused(changed("[2, 3]", "[2]"), "tiny.graphs.gradient.ranges.dy");
  expect_refused(changed("{\"m\": 4}", "4"), "naive");
  expect_refused(changed("\"name\": \"half\"", "\"name\": \"half\", \"check\": 4"), "check");
  expect_refused(changed("\"name\": \"half\"", "\"name\": \"half\", \"quick\": 1"), "quick");
  expect_refused(changed("\"name\": \"half\"", "\"name\": \"half\", \"peer_fails\": true"),
                 "peer_fails");
  expect_refused(changed("\"name\": \"half\"", "\"name\": \"half\", \"far\": \"off\""), "far");
  expect_refused(changed("\"name\": \"half\"", "\"name\": \"half\", \"apart\": [\"matmul\"]"),
                 "at least two");
}

TEST(Choice, FindsNamesPrefixesAndFiles) {
  const auto names_of = [](const std::vector<std::string>& wanted) {
    std::vector<std::string> names;
    for (const Suite& suite : bench::choose_suites(wanted)) names.push_back(suite.name);
    return names;
  };
  EXPECT_GT(names_of({}).size(), 20U);
  EXPECT_THAT(names_of({"depthwise"}), ElementsAre("depthwise"));
  EXPECT_THAT(names_of({"fusions", "norms"}),
              ElementsAre("fusions_convolution", "fusions_matmul", "norms"));
  EXPECT_THROW(names_of({"resnet"}), Error);
  EXPECT_THAT(names_of({"batchnorm"}), ElementsAre("batchnorm")) << "which is only for GPUs";
  const auto title_of = [](const std::string& name, DeviceKind device) {
    return bench::choose_suites(std::vector{name}, device).at(0).title;
  };
  EXPECT_NE(title_of("norms", DeviceKind::cpu), title_of("norms", DeviceKind::cuda));
  EXPECT_EQ(title_of("bert", DeviceKind::cpu), title_of("bert", DeviceKind::cuda));
  EXPECT_THROW(names_of({"/nowhere/suite.json"}), Error);
}

// Constants and ranges name inputs, and the graph compiles.
void check_problem(const Problem& problem) {
  const Graph graph = problem.build();
  const auto expect_input = [&](const std::string& name) {
    const TensorId id = graph.find_tensor(name);
    ASSERT_NE(id, kNoTensor) << name;
    EXPECT_EQ(graph.tensor(id).kind, TensorKind::input) << name;
  };
  for (const std::string& name : problem.constants) expect_input(name);
  for (const auto& [name, range] : problem.ranges) {
    expect_input(name);
    EXPECT_LT(range.low, range.high) << name;
  }
  EXPECT_GT(bench::traffic(graph), 0);
  EXPECT_GE(compile(graph, Device::cpu()).region_count(), 1);
}

TEST(BuiltInSuites, AllCasesCompile) {
  std::size_t cases = 0;
  for (const bench::SuiteText& text : bench::built_in_suites()) {
    SCOPED_TRACE(std::string(text.name));
    const Suite suite = bench::read_suite(std::string(text.name), text.text);
    for (const Case& one : suite.cases) {
      SCOPED_TRACE(one.name);
      ++cases;
      check_problem(one.problem);
      for (const auto& other : {one.alone, one.prepare, one.naive})
        if (other) check_problem(*other);
    }
  }
  std::printf("summary: bench: %zu suites with %zu cases compile\n",
              bench::built_in_suites().size(), cases);
}

// explain() only selects engines: no GPU needed.
TEST(BuiltInSuites, ArePlannedForAGpu) {
  const Device gpu = Device::named("h200");
  for (const bench::SuiteText& text : bench::built_in_suites()) {
    if (text.device != DeviceKind::cuda) continue;
    const Suite suite = bench::read_suite(std::string(text.name), text.text);
    EXPECT_TRUE(std::any_of(suite.cases.begin(), suite.cases.end(),
                            [](const Case& one) { return one.quick; }))
        << suite.name << " has no quick case";
    for (const Case& one : suite.cases) {
      SCOPED_TRACE(suite.name + " " + one.name);
      const bench::EnginesUsed used = bench::engines_used(inspect(one.problem.build(), gpu));
      EXPECT_GE(used.regions, 1);
      EXPECT_THAT(used.engines, HasSubstr("cuda."));
      for (const Problem& part : one.apart) EXPECT_GE(part.build().nodes().size(), 1U);
      ASSERT_TRUE(one.check) << "no problem small enough for the oracle";
      const Graph small = one.check->build();
      EXPECT_LT(std::max(bench::arithmetic(small), bench::traffic(small)), 1e8);
      EXPECT_EQ(one.check_prepare.has_value(), one.prepare.has_value());
    }
  }
}

TEST(EnginesUsed, ListsEachEngineOnce) {
  Inspection plan;
  const auto add = [&](const char* engine, const char* config, ComputeMethod method) {
    RegionInspection& region = plan.regions.emplace_back();
    region.engine = engine;
    region.config = config;
    region.method = method;
  };
  add("cuda.pointwise", "", ComputeMethod::cuda_cores);
  add("cuda.rows", "rows=4", ComputeMethod::cuda_cores);
  add("cuda.rows", "rows=8", ComputeMethod::cuda_cores);
  const bench::EnginesUsed used = bench::engines_used(plan);
  EXPECT_EQ(used.regions, 3);
  EXPECT_EQ(used.engines, "cuda.pointwise + cuda.rows");
  EXPECT_EQ(used.configs, "rows=4, rows=8");
  EXPECT_EQ(used.main_engine, "cuda.rows");
  EXPECT_FALSE(used.is_slow);
}

TEST(EnginesUsed, NamesPointwiseIfAloneAndReference) {
  Graph graph("square");
  const Value x = graph.input("x", {8}, f32);
  graph.output("y", x * x);
  EXPECT_EQ(bench::engines_used(inspect(graph, Device::cpu())).main_engine, "cpu.pointwise");
  EXPECT_TRUE(bench::engines_used(inspect(graph, Device::cpu(), {.reference_only = true})).is_slow);
  const Inspection nothing;
  EXPECT_EQ(bench::engines_used(nothing).main_engine, "");
}

TEST(BuiltInSuites, HaveTheCasesOfTheirTargets) {
  const auto cases_of = [](const std::string& name) {
    return bench::choose_suites(std::vector{name}).at(0).cases.size();
  };
  EXPECT_EQ(cases_of("resnet50_nhwc"), 16U);
  EXPECT_EQ(cases_of("resnet50_nchw"), 16U);
  EXPECT_EQ(cases_of("resnet50_backward_data"), 6U);
  EXPECT_EQ(cases_of("depthwise_backward"), 8U);
  EXPECT_EQ(cases_of("attention_prefill"), 16U);
  for (const char* norms : {"norms", "norms_backward"})
    EXPECT_EQ(
        bench::choose_suites(std::vector<std::string>{norms}, DeviceKind::cuda).at(0).cases.size(),
        21U)
        << "the 15 that NVIDIA publishes, and six";
}

TEST(Counts, FollowTheDefinitions) {
  const auto graph_of = [](const std::string& suite, const std::string& name) {
    const std::vector<Suite> suites = bench::choose_suites(std::vector{suite});
    for (const Case& one : suites.at(0).cases)
      if (one.name == name) return one.problem.build();
    throw Error(ErrorCode::invalid_argument, name);
  };
  const double conv = 2.0 * 56 * 56 * 64 * 64 * 9;
  EXPECT_EQ(bench::arithmetic(graph_of("resnet50_nhwc", "conv3x3_64_64_56_n1")), conv);
  EXPECT_EQ(bench::arithmetic(graph_of("resnet50_backward_data", "conv3x3_64_64_56_n1")), conv);
  EXPECT_EQ(bench::arithmetic(graph_of("resnet50_backward_filter", "conv3x3_64_64_56_n1")), conv);
  const double full = 4.0 * 8 * 1024 * 1024 * 64, seen = 4.0 * 8 * 1024 * 1025 / 2 * 64;
  EXPECT_EQ(bench::arithmetic(graph_of("attention_prefill", "s1024_full_d64")), full);
  EXPECT_EQ(bench::arithmetic(graph_of("attention_prefill", "s1024_causal_d64")), seen);
  EXPECT_EQ(bench::arithmetic(graph_of("attention_backward", "s1024_causal_d64")), 2.5 * seen);
  EXPECT_EQ(bench::arithmetic(graph_of("elementwise", "relu")), 0);
  EXPECT_EQ(bench::traffic(graph_of("elementwise", "add")), 3.0 * (64 << 20));
  EXPECT_EQ(bench::traffic(graph_of("movement", "slice_rows_4096x4096")), 2.0 * (32 << 20));
  EXPECT_TRUE(bench::is_int8(graph_of("int8", "matmul_1024_u8")));
  EXPECT_FALSE(bench::is_int8(graph_of("matmul_f32", "square_1024")));
}

}  // namespace

}  // namespace ashlar::bench_test

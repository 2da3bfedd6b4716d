// Statistics, targets and the three reports (table, JSON, HTML) of the benchmark.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/bench.hpp"
#include "bench/measure.hpp"
#include "bench/peer.hpp"
#include "bench/report.hpp"
#include "bench/statistics.hpp"
#include "tiny_suite.hpp"

namespace ashlar::bench_test {

namespace {

using bench::Measurement;
using bench::SuiteResult;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

Measurement measured(const std::string& name, double ours, double peer) {
  Measurement m;
  m.name = name;
  m.ok = true;
  m.check = "oneDNN, worst difference 0 of the tolerance";
  m.engine = "cpu.matmul_gemm";
  m.ours = ours;
  m.peer = peer;
  m.arithmetic = 1e9;
  m.traffic = 1e6;
  m.peak = 1e12;
  m.copy_speed = 1e10;
  m.samples = 7;
  return m;
}

SuiteResult two_cases() {
  SuiteResult suite{"pair", "A <pair> & more", "Nothing.", {.speed = 0.9, .worst = 0.4}, {}};
  suite.measurements = {measured("slow", 4e-3, 2e-3), measured("quick", 2e-3, 4e-3)};
  suite.measurements[1].peer_best = 3e-3;
  return suite;
}

const bench::Setting kSetting = {"a \"CPU\"", "oneDNN 1", "2000-01-01T00:00:00Z", "abc", 2, 3, 0.5};

bench::Setting gpu_setting() {
  bench::Setting setting = kSetting;
  setting.gpu = true;
  setting.device = "a GPU";
  setting.peer = "cuDNN 9";
  setting.driver = "driver 1";
  setting.copy_speed = 4e12;
  return setting;
}

TEST(Statistics, MedianAndGeometricMean) {
  EXPECT_EQ(bench::median({3, 1, 2}), 2);
  EXPECT_EQ(bench::median({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(*bench::geometric_mean(std::vector{0.5, 2.0}), 1.0);
  EXPECT_DOUBLE_EQ(*bench::geometric_mean(std::vector{1.0, 10.0, 100.0}), 10.0);
  EXPECT_EQ(bench::geometric_mean(std::vector<double>{}), std::nullopt);
}

TEST(Measured, SpeedIsAboveOneWhereWeAreFaster) {
  const Measurement m = measured("m", 2e-3, 4e-3);
  EXPECT_EQ(m.speed(), 2.0);
  EXPECT_EQ(m.speed_best(), std::nullopt);
  EXPECT_DOUBLE_EQ(m.roofline(), 1e-3);  // 1e9 operations at 1e12 per second
  EXPECT_DOUBLE_EQ(m.share(), 0.5);
  Measurement memory = m;
  memory.copy_speed = 5e8;
  EXPECT_DOUBLE_EQ(memory.roofline(), 2e-3);  // 1e6 bytes at 5e8 per second
  memory.alone = 1.6e-3;
  EXPECT_DOUBLE_EQ(*memory.overhead(), 0.25);
}

TEST(Summary, NamesTheWorstAndJudgesTheTarget) {
  SuiteResult suite = two_cases();
  const bench::Summary summary = bench::summary_of(suite);
  EXPECT_DOUBLE_EQ(*summary.speed, 1.0);
  EXPECT_DOUBLE_EQ(*summary.speed_best, 1.5);
  EXPECT_EQ(summary.slowest->name, "slow");
  EXPECT_EQ(bench::outcome_of(suite.target, summary), bench::Outcome::reached);
  suite.target.worst = 0.6;
  EXPECT_EQ(bench::outcome_of(suite.target, summary), bench::Outcome::missed);
  suite.target.worst = 0.5;
  suite.target.naive = 1;
  EXPECT_EQ(bench::outcome_of(suite.target, summary), bench::Outcome::not_measured);
  EXPECT_EQ(bench::outcome_of({}, summary), bench::Outcome::no_target);
  EXPECT_EQ(bench::target_text({.share = 0.65, .overhead = 0.05}),
            "at least 65 % of the roofline, fusion overhead at most 5 %");
}

TEST(Table, HasTheFiguresAndTheVerdict) {
  const SuiteResult suite = two_cases();
  EXPECT_THAT(bench::table_row(suite.measurements[0], kSetting), HasSubstr(" 0.50 "));
  EXPECT_THAT(bench::table_row(suite.measurements[0], kSetting), HasSubstr("250.0 GFLOP/s"));
  EXPECT_THAT(bench::suite_foot(suite), HasSubstr("speed 1.00"));
  EXPECT_THAT(bench::suite_foot(suite), HasSubstr("worst 0.50 (slow)"));
  EXPECT_THAT(bench::suite_foot(suite), HasSubstr("target reached"));
  Measurement wrong = suite.measurements[0];
  wrong.ok = false;
  wrong.check = "WRONG: y";
  EXPECT_THAT(bench::table_row(wrong, kSetting), HasSubstr("WRONG: y"));
  EXPECT_THAT(bench::table_head(kSetting), Not(HasSubstr("not built in")));
  bench::Setting without = kSetting;
  without.peer.clear();
  EXPECT_THAT(bench::table_head(without), HasSubstr("oneDNN was not built in"));
}

TEST(Record, IsJsonWithTheSetting) {
  const Json json = Json::parse(bench::to_json(kSetting, std::vector{two_cases()}));
  for (const char* key : {"device", "threads", "peer", "date", "commit", "seed", "load_at_start"})
    EXPECT_TRUE(json.contains(key)) << key;
  const Json& suite = json["suites"][0];
  EXPECT_EQ(suite["suite"], "pair");
  EXPECT_EQ(suite["speed"], 1.0);
  EXPECT_EQ(suite["worst"]["name"], "slow");
  EXPECT_EQ(suite["cases"][1]["speed"], 2.0);
  EXPECT_EQ(suite["cases"][1]["onednn_best_layout_ms"], 3.0);
  EXPECT_FALSE(suite["cases"][0].contains("onednn_best_layout_ms"));
  EXPECT_EQ(suite["cases"][0]["share_of_roofline"], 0.25);
}

TEST(ReportOfGpu, NamesThePeer) {
  const bench::Setting setting = gpu_setting();
  SuiteResult suite = two_cases();
  Measurement& m = suite.measurements[0];
  m.peer_kernels = 3;
  m.apart = 12e-3;
  m.apart_traffic = 4e6;
  m.kernels = 1;
  suite.measurements[1].peer.reset();
  suite.measurements[1].peer_refusal = "not supported: a graph like this";
  EXPECT_THAT(bench::table_head(setting), HasSubstr("against cuDNN 9 on a GPU, driver 1"));
  EXPECT_THAT(bench::table_head(setting), HasSubstr("4.00 TB/s"));
  EXPECT_THAT(bench::suite_head(suite, setting), HasSubstr("peer"));
  EXPECT_THAT(bench::suite_head(suite, setting), HasSubstr("naive"));
  EXPECT_THAT(bench::suite_head(suite, kSetting), Not(HasSubstr("naive")))
      << "the reference engine of the CPU is no baseline";
  EXPECT_THAT(bench::table_row(m, setting), HasSubstr("3 calls"));
  EXPECT_THAT(bench::table_row(m, setting), HasSubstr("3.00 times as long, 25 % of its bytes"));
  EXPECT_THAT(bench::table_row(suite.measurements[1], setting), HasSubstr("a graph like this"));
  suite.target = {.least_share = 0.2, .apart = 3};
  EXPECT_EQ(bench::outcome_of(suite.target, bench::summary_of(suite)), bench::Outcome::reached);
  suite.target.least_share = 0.3;
  EXPECT_EQ(bench::outcome_of(suite.target, bench::summary_of(suite)), bench::Outcome::missed);

  m.back_to_back = m.roofline() / 0.9;
  m.runs_back_to_back = 8;
  EXPECT_THAT(bench::table_row(m, setting), HasSubstr("back to back"));
  EXPECT_THAT(bench::table_row(m, setting), Not(HasSubstr("copies")));
  EXPECT_EQ(bench::summary_of(suite).copy_share_back_to_back, std::nullopt);
  m.same_copy_back_to_back = *m.back_to_back * 0.75;  // faster than ours
  EXPECT_THAT(bench::table_row(m, setting), HasSubstr(", 90 % (copies 0.8333 ms, 75 %)"));
  EXPECT_THAT(bench::suite_foot(suite),
              HasSubstr("back to back 90 %, 75 % of copies back to back"));
  suite.target = {.share_back_to_back = 0.88};
  EXPECT_EQ(bench::outcome_of(suite.target, bench::summary_of(suite)), bench::Outcome::reached);
  suite.target.copy_share_back_to_back = 0.74;
  EXPECT_EQ(bench::outcome_of(suite.target, bench::summary_of(suite)), bench::Outcome::reached);
  suite.target.copy_share_back_to_back = 0.76;
  EXPECT_EQ(bench::outcome_of(suite.target, bench::summary_of(suite)), bench::Outcome::missed);
  suite.target = {.share_back_to_back = 0.95};
  EXPECT_EQ(bench::outcome_of(suite.target, bench::summary_of(suite)), bench::Outcome::missed);

  const Json json = Json::parse(bench::to_json(setting, std::vector{suite}));
  EXPECT_EQ(json["driver"], "driver 1");
  EXPECT_EQ(json["copy_gb_per_s"], 4000);
  const Json& cases = json["suites"][0]["cases"];
  EXPECT_EQ(cases[0]["cudnn_ms"], 2.0);
  EXPECT_EQ(cases[0]["cudnn_calls"], 3);
  EXPECT_EQ(cases[0]["speed_over_apart"], 3.0);
  EXPECT_EQ(cases[0]["share_of_apart_bytes"], 0.25);
  EXPECT_EQ(cases[0]["share_back_to_back"], 0.9);
  EXPECT_EQ(cases[0]["runs_back_to_back"], 8);
  EXPECT_EQ(cases[0]["copy_back_to_back_ms"], 0.8333);
  EXPECT_EQ(cases[0]["share_of_copy_back_to_back"], 0.75);
  EXPECT_EQ(json["suites"][0]["share_of_copy_back_to_back"], 0.75);
  EXPECT_FALSE(cases[1].contains("back_to_back_ms"));
  EXPECT_FALSE(cases[1].contains("copy_back_to_back_ms"));
  EXPECT_FALSE(cases[1].contains("share_of_copy_back_to_back"));
  EXPECT_EQ(cases[1]["cudnn_refusal"], "not supported: a graph like this");

  const bench::HostTimes times{.run = 4e-6, .compiled = 0.3, .first = 0.9, .cached = 2e-3};
  EXPECT_THAT(bench::host_text(times), HasSubstr("4.00 us"));
  EXPECT_EQ(Json::parse(bench::to_json(setting, "a GPU", times))["compile_ms"], 300);
}

// Expects properly nested elements; returns their number.
std::size_t expect_well_formed(const std::string& html) {
  std::vector<std::string> open;
  std::size_t elements = 0;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at)) {
    const std::size_t end = html.find('>', at);
    EXPECT_NE(end, std::string::npos);
    const std::string tag = html.substr(at + 1, end - at - 1);
    at = end;
    if (tag.starts_with("!")) continue;
    if (tag.starts_with("/")) {
      EXPECT_FALSE(open.empty()) << tag;
      if (open.empty()) return elements;
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
      continue;
    }
    ++elements;
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    if (!tag.ends_with("/")) open.push_back(tag.substr(0, tag.find(' ')));
  }
  EXPECT_TRUE(open.empty());
  return elements;
}

TEST(Page, IsWellFormedAndNeedsNothingFromOutside) {
  SuiteResult suite = two_cases();
  suite.measurements.push_back(measured("wrong", 1, 1));
  suite.measurements.back().ok = false;
  suite.measurements.back().check = "WRONG: 3 < 5";
  const std::string html = bench::to_html(kSetting, std::vector{suite});
  EXPECT_GT(expect_well_formed(html), 50U);
  EXPECT_THAT(html, HasSubstr("A &lt;pair&gt; &amp; more"));
  EXPECT_THAT(html, HasSubstr("WRONG: 3 &lt; 5"));
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, HasSubstr("roofline, ms"));
  EXPECT_THAT(html, Not(HasSubstr("naive")));
  const std::string on_gpu = bench::to_html(gpu_setting(), std::vector{suite});
  EXPECT_GT(expect_well_formed(on_gpu), 50U);
  EXPECT_THAT(on_gpu, HasSubstr("peer, ms"));
  EXPECT_THAT(on_gpu, HasSubstr("naive kernel, ms"));
  EXPECT_THAT(on_gpu, Not(HasSubstr("oneDNN")));
  for (const char* outside : {"http", "src=", "@import", "url(", "<script", "<link"})
    EXPECT_THAT(html, Not(HasSubstr(outside))) << outside;
}

// measure() end to end on small problems, all sides.
TEST(Measure, RunsChecksAndTimesEverySide) {
  const bench::Suite suite = bench::read_suite("tiny", kTinySuite);
  const bench::MeasureOptions options{.seconds = 0, .min_samples = 2, .seed = 5, .oracle = false};
  SuiteResult result{suite.name, suite.title, suite.bound_by, suite.target, {}};
  const bool with_peer = !bench::peer_version().empty();
  for (const bench::Case& one : suite.cases) {
    SCOPED_TRACE(one.name);
    std::vector<std::string> stages;
    const Measurement m =
        bench::measure(one, options, [&](const std::string& what) { stages.push_back(what); });
    EXPECT_TRUE(m.ok) << m.check;
    EXPECT_EQ(m.samples, 2);
    EXPECT_GT(m.ours, 0);
    EXPECT_GT(m.copy_speed, 0);
    EXPECT_GT(m.roofline(), 0);
    EXPECT_EQ(m.naive, std::nullopt) << "the reference engine of the CPU is no baseline";
    EXPECT_EQ(m.alone.has_value(), one.alone.has_value());
    EXPECT_EQ(m.peer.has_value(), with_peer) << m.peer_implementation;
    EXPECT_THAT(m.engine, HasSubstr("cpu."));
    EXPECT_FALSE(stages.empty());
    result.measurements.push_back(m);
  }
  EXPECT_GT(expect_well_formed(bench::to_html(kSetting, std::vector{result})), 50U);
}

TEST(Measure, OracleDecidesOnRequest) {
  const bench::Suite suite = bench::read_suite("tiny", kTinySuite);
  const Measurement m = bench::measure(
      suite.cases[0], {.seconds = 0, .min_samples = 1, .oracle = true}, [](const std::string&) {});
  EXPECT_TRUE(m.ok);
  EXPECT_THAT(m.check, HasSubstr("oracle"));
}

TEST(Run, RefusesTheNaivePeerOnTheCpu) {
  bench::Request request;
  request.suites = {"norms"};
  request.peers = {"naive"};
  const bench::Listener listener{[](const std::string&) {}, [](const std::string&) {}};
  try {
    bench::run(request, listener);
    ADD_FAILURE() << "the oracle was timed as a peer";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("expected onednn or none"));
  }
}

}  // namespace

}  // namespace ashlar::bench_test

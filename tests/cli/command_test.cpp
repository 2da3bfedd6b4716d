// The command line: help, exit codes, options, damaged graphs.
#include <ashlar/version.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "cli/process.hpp"
#include "graph/op_traits.hpp"

namespace ashlar::cli_test {

namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

// One sentence on stderr, nothing on stdout, exit code 2.
void expect_refused(const Outcome& run, const std::string& part) {
  EXPECT_EQ(run.exit_code, 2) << run.output << run.errors;
  EXPECT_THAT(run.errors, StartsWith("ashlar: "));
  EXPECT_THAT(run.errors, HasSubstr(part));
  EXPECT_EQ(std::count(run.errors.begin(), run.errors.end(), '\n'), 1) << run.errors;
  EXPECT_EQ(run.output, "");
}

std::string graph_file(const std::string& name, const std::string& text) {
  const std::string path = scratch_folder("graphs") + "/" + name + ".json";
  write_text(path, text);
  return path;
}

std::string matmul_graph(const std::string& a_dims, const std::string& extra = "") {
  return R"({"format": "ashlar-graph", "version": 1, "name": "g", "tensors": [
    {"name": "a", "kind": "input", "dtype": "f32", "dims": )" +
         a_dims + R"(},
    {"name": "b", "kind": "input", "dtype": "f32", "dims": [4, 4]},
    {"name": "c", "kind": "output", "dtype": "f32"}], "nodes": [
    {"name": "m", "op": "matmul", "inputs": {"a": "a", "b": "b"}, "outputs": {"c": "c"})" +
         extra + "}]}";
}

TEST(Help, NamesEverySubcommandAndTheExitCodes) {
  const Outcome run = ashlar({"--help"});
  EXPECT_EQ(run.exit_code, 0);
  for (const char* word : {"run", "explain", "validate", "print", "engines", "bench", "bundle",
                           "tune", "doctor", "version", "Exit codes", "ASHLAR_LOG"})
    EXPECT_THAT(run.output, HasSubstr(word));
}

TEST(Help, OfRunNamesEveryOption) {
  const Outcome run = ashlar({"run", "--help"});
  EXPECT_EQ(run.exit_code, 0);
  for (const char* option :
       {"GRAPH", "--input", "--seed", "--check", "--time", "--time-budget", "--save", "--explain",
        "--guard", "--device", "--deterministic", "--no-tf32", "--no-winograd", "--no-fuse",
        "--workspace-limit", "--recompute", "--recompute-budget", "--in-place"})
    EXPECT_THAT(run.output, HasSubstr(option));
}

TEST(Usage, MistakesAreOneSentence) {
  expect_refused(ashlar({}), "subcommand");
  expect_refused(ashlar({"dance"}), "dance");
  expect_refused(ashlar({"run"}), "GRAPH");
  expect_refused(ashlar({"run", example("mlp_gelu"), "--bogus"}), "--bogus");
  expect_refused(ashlar({"run", example("mlp_gelu"), "--seed", "many"}), "seed");
  expect_refused(ashlar({"run", example("mlp_gelu"), "--workspace-limit", "-1"}),
                 "--workspace-limit: got -1, expected at least 0 bytes");
  expect_refused(ashlar({"run", example("mlp_gelu"), "--recompute", "some"}), "--recompute");
  expect_refused(ashlar({"run", example("mlp_gelu"), "--recompute-budget", "-1"}),
                 "--recompute-budget: got -1, expected at least 0 bytes");
  expect_refused(ashlar({"run", example("mlp_gelu"), "--in-place", "y"}), "expected OUTPUT=INPUT");
  expect_refused(ashlar({"run", example("mlp_gelu"), "--in-place", "q=x"}), "name of an output");
  expect_refused(ashlar({"run", example("mlp_gelu"), "--device", "abacus"}), "abacus");
  expect_refused(ashlar({"explain", example("mlp_gelu"), "--device", "abacus"}), "abacus");
  expect_refused(ashlar({"run", example("mlp_gelu"), "--device", "h200"}), "not present");
}

TEST(Tune, TimesAndRemembers) {
  const std::string graph = example("mlp_gelu");
  const Outcome first = ashlar({"tune", graph, "--device", "cpu", "--again"});
  EXPECT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_THAT(first.output, HasSubstr(" us, the fastest of "));
  EXPECT_THAT(first.output, HasSubstr("times as fast as the first choices"));
  const Outcome second = ashlar({"tune", graph, "--device", "cpu"});
  EXPECT_EQ(second.exit_code, 0) << second.errors;
  EXPECT_THAT(second.output, HasSubstr("remembered"));
  const Outcome third = ashlar({"tune", graph, "--device", "cpu", "--back-to-back", "--top", "2"});
  EXPECT_EQ(third.exit_code, 0) << third.errors;
  EXPECT_THAT(third.output, AnyOf(HasSubstr("the fastest of 2"), HasSubstr("remembered")));
  expect_refused(ashlar({"tune", graph, "--device", "h200"}), "not present");
  expect_refused(ashlar({"tune", graph, "--top", "0"}), "--top");
  // What would be ignored is refused.
  expect_refused(ashlar({"run", graph, "--top", "2"}), "--tune");
  expect_refused(ashlar({"explain", graph, "--back-to-back"}), "--tune");
  expect_refused(ashlar({"tune", graph, "--tune"}), "--tune");
  expect_refused(ashlar({"bench", "norms", "--top", "3"}), "--configs or --tune");
  expect_refused(ashlar({"tune", "no_such_suite"}), "no_such_suite");
}

TEST(Version, PrintsIt) {
  const Outcome run = ashlar({"version"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, StartsWith("ashlar " ASHLAR_VERSION "\n"));
  EXPECT_THAT(run.output, HasSubstr("cpu"));
}

TEST(Engines, ListsTheReferenceLast) {
  const Outcome run = ashlar({"engines", "--device", "cpu"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("cpu.matmul_gemm"));
  const std::string last = run.output.substr(run.output.rfind('\n', run.output.size() - 2) + 1);
  EXPECT_THAT(last, HasSubstr("cpu.reference"));
}

TEST(Engines, OpsNamesEveryOperationWithItsDtypes) {
  const Outcome run = ashlar({"engines", "--ops", "--device", "cpu"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  for (const OpTraits& row : op_table()) {
    const std::string name = std::string(row.name) + "\n";
    const std::size_t begin = run.output.starts_with(name) ? 0 : run.output.find("\n" + name) + 1;
    ASSERT_EQ(run.output.compare(begin, name.size(), name), 0) << row.name;
    // The lines of an operation are indented; every dtype stands in one of them.
    std::string lines;
    for (std::size_t at = begin + name.size(); run.output.compare(at, 2, "  ") == 0;) {
      const std::size_t end = run.output.find('\n', at) + 1;
      lines += run.output.substr(at, end - at);
      at = end;
    }
    EXPECT_TRUE(lines.starts_with("  SIMD ") || lines.starts_with("  reference "))
        << row.name << "\n"
        << lines;
    for (DType dtype : kAllDTypes)
      EXPECT_THAT(lines, testing::ContainsRegex("[ ]" + std::string(to_string(dtype)) + "[ :\n]"));
  }
}

TEST(Engines, OpsSayHowTheyAreComputed) {
  const Outcome run = ashlar({"engines", "--ops", "--device", "h200"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, testing::ContainsRegex("\nmatmul\n  tensor cores "));
  EXPECT_THAT(run.output,
              testing::ContainsRegex("  one thread per output +i64 i32 u32: cuda.generic"));
  EXPECT_THAT(run.output, HasSubstr("  CUDA cores "));
  EXPECT_THAT(run.output, Not(HasSubstr("vectorised")));
}

TEST(Bench, HelpNamesEveryOption) {
  const Outcome run = ashlar({"bench", "cpu", "-h"});
  EXPECT_EQ(run.exit_code, 0);
  for (const char* option :
       {"SUITE",  "--list",    "--filter",  "--quick",  "--json",   "--html",   "--record",
        "--seed", "--threads", "--seconds", "--oracle", "--layout", "--commit", "--device",
        "--peer", "--tune",    "--kernels", "--host",   "--bundle", "--top"})
    EXPECT_THAT(run.output, HasSubstr(option));
}

TEST(Bench, NamesTheEnginesForAGpuThatIsNotHere) {
  const Outcome run = ashlar({"bench", "pointwise", "--quick", "--kernels", "--device", "h200"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("bias_gelu_bf16"));
  EXPECT_THAT(run.output, HasSubstr("1 region   cuda.pointwise"));
}

TEST(Bench, ListsSuitesAndCases) {
  const Outcome run = ashlar({"bench", "cpu", "resnet50", "--filter", "7x7", "--list"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("resnet50_nhwc: "));
  EXPECT_THAT(run.output, HasSubstr("\n  conv7x7_3_64_s2_224_n16\n"));
  EXPECT_THAT(run.output, Not(HasSubstr("conv1x1")));
  EXPECT_THAT(run.output, Not(HasSubstr("matmul")));
}

TEST(Bench, RunsASuiteFromAFile) {
  const std::string folder = scratch_folder("bench");
  write_text(folder + "/small.json", R"({"format": "ashlar-suite", "version": 1, "title": "Small",
    "limit": "The call.", "graphs": {"relu": {"tensors": [
      {"name": "x", "kind": "input", "dtype": "f32", "dims": ["$n"]},
      {"name": "y", "kind": "output"}],
      "nodes": [{"op": "pointwise", "inputs": {"x": "x"}, "outputs": {"y": "y"},
                 "attributes": {"mode": "relu_fwd"}}]}},
    "cases": [{"name": "relu", "graph": "relu", "n": 1000}]})");
  const Outcome run = ashlar({"bench", "cpu", folder + "/small.json", "--quick", "--seconds", "0",
                              "--html", folder + "/page.html", "--record", folder + "/results"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("small: Small"));
  EXPECT_THAT(run.output, HasSubstr("cpu.pointwise"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/page.html"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/results/small.json"));
}

TEST(Bench, MistakesAreOneSentence) {
  expect_refused(ashlar({"bench", "cpu", "dance"}), "unknown suite 'dance'");
  expect_refused(ashlar({"bench", "cpu", "bert", "--record", scratch_folder("records")},
                        {"ASHLAR_KERNELS=/of/others"}),
                 "unset ASHLAR_KERNELS");
  expect_refused(ashlar({"bench", "cpu", "/nowhere/suite.json"}), "No such file");
  expect_refused(ashlar({"bench", "cpu", "bert", "--filter", "dance"}), "no case has 'dance'");
  expect_refused(ashlar({"bench", "cpu", "bert", "--layout", "blocked"}), "blocked");
  expect_refused(ashlar({"bench", "bert", "--peer", "mkl"}), "--peer: got mkl, expected onednn");
  expect_refused(ashlar({"bench", "bert", "--peer", "cudnn:/nowhere"}), "expected onednn");
  expect_refused(ashlar({"bench", "bert", "--peer", "naive"}), "one-thread-per-output");
  expect_refused(ashlar({"bench", "bert", "--device", "h300"}), "h300");
  expect_refused(ashlar({"bench", "cpu", graph_file("suite", "{}")}), "suite: ");
}

TEST(Pack, IsMadeListedAndRefused) {
  expect_refused(ashlar({"bundle", "norms"}), "either --arch or --device");
  expect_refused(ashlar({"bundle", "--arch", "sm_90a"}), "SUITE|GRAPH.json");
  expect_refused(ashlar({"bundle", "--arch", "sm_1", "norms"}), "expected one of: sm_90a");
  expect_refused(ashlar({"bundle", "--arch", "sm_90a", "no_such_suite"}), "no_such_suite");
  expect_refused(ashlar({"bundle", "--list", example("mlp_gelu")}), "not a kernel bundle");
  const std::string file = scratch_folder("bundles") + "/small.bundle";
  const Outcome made =
      ashlar({"bundle", "--arch", "sm_90a", example("pooling_head"), "--out", file});
  if (made.errors.find("no NVRTC") != std::string::npos) GTEST_SKIP() << made.errors;
  EXPECT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_THAT(made.output, HasSubstr("of 1 graphs for sm_90a"));
  const Outcome listed = ashlar({"bundle", "--list", file});
  EXPECT_EQ(listed.exit_code, 0) << listed.errors;
  EXPECT_THAT(listed.output, HasSubstr("for sm_90a, by Ashlar " ASHLAR_VERSION));
}

TEST(Run, TimesSideBySide) {
  const Outcome run =
      ashlar({"run", example("mlp_gelu"), "--device", "cpu", "--time", "--time-budget", "0.05"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("time: median "));
  EXPECT_THAT(run.output, HasSubstr("GFLOP/s"));
  EXPECT_THAT(run.output, HasSubstr("GB/s"));
  EXPECT_THAT(run.output, testing::ContainsRegex("unfused: median .*this plan is .*x as fast"));
  EXPECT_THAT(run.output, HasSubstr("\n  oneDNN"));
  EXPECT_THAT(run.output, testing::ContainsRegex("roofline: .*this plan reaches [0-9]+ %"));
  EXPECT_THAT(run.output, Not(HasSubstr("naive")));
}

TEST(Run, SaysWhereThereIsNothingToCompareWith) {
  const Outcome unfused = ashlar({"run", example("mlp_gelu"), "--device", "cpu", "--no-fuse",
                                  "--time", "--time-budget", "0.01"});
  EXPECT_THAT(unfused.output, HasSubstr("unfused: this plan has one region per operation"));
  const Outcome single = ashlar({"run", example("attention_causal_gqa"), "--device", "cpu",
                                 "--time", "--time-budget", "0.01"});
  EXPECT_THAT(single.output, HasSubstr("unfused: the same plan: there is nothing to fuse"));
}

TEST(Explain, TakesManyGraphsAndWritesOnePage) {
  const std::string page = scratch_folder("pages") + "/page.html";
  const Outcome run = ashlar({"explain", example("mlp_gelu"), example("residual_block"), "--device",
                              "cpu", "--check", "--time", "--time-budget", "0.01", "--html", page});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("[2/2] residual_block"));
  EXPECT_THAT(run.output, HasSubstr("check: ok"));
  EXPECT_THAT(run.output, HasSubstr("page: " + page));
  EXPECT_THAT(read_text(page), HasSubstr("2 graphs on cpu"));
  expect_refused(ashlar({"explain", example("mlp_gelu"), "--time", "--device", "h200"}),
                 "not present");
  const Outcome unwritable =
      ashlar({"explain", example("mlp_gelu"), "--device", "h200", "--html", "/nowhere/page.html"});
  EXPECT_EQ(unwritable.exit_code, 2);
  EXPECT_THAT(unwritable.errors, HasSubstr("cannot be written"));
}

// A GPU that this machine does not have is a mistake of the command line, for every command.
TEST(Usage, AbsentGpusAreRefused) {
  const std::string graph = example("mlp_gelu");
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"run", graph},
                                             {"explain", graph},
                                             {"tune", graph},
                                             {"bundle", graph},
                                             {"engines"},
                                             {"engines", "--ops"},
                                             {"bench", "norms"},
                                             {"bench", "--list"},
                                             {"bench", "--kernels", "norms"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--device", "cuda:77"});
    expect_refused(ashlar(arguments), "'cuda:77' is not present here");
  }
  expect_refused(ashlar({"bench", "norms", "--device", "h200"}), "not present");
}

TEST(Run, ExplainsAtTheLogLevelThatAsksForIt) {
  const Outcome quiet = ashlar({"run", example("mlp_gelu")}, {"ASHLAR_LOG=off"});
  EXPECT_EQ(quiet.errors, "");
  const Outcome verbose = ashlar({"run", example("mlp_gelu")}, {"ASHLAR_LOG=explain"});
  EXPECT_THAT(verbose.errors, HasSubstr("region"));
  EXPECT_EQ(verbose.output, quiet.output);
}

TEST(Run, ReportsAFullDisk) {
  const Outcome run = ashlar({"version"}, {}, "/dev/full");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, HasSubstr("No space left on device"));
}

TEST(Run, ReportsAFolderThatCannotBeWritten) {
  const std::string file = scratch_folder("save") + "/file";
  write_text(file, "in the way");
  expect_refused(ashlar({"run", example("mlp_gelu"), "--save", file + "/below"}), "cannot be made");
  const Outcome run = ashlar({"run", example("mlp_gelu"), "--save", "/proc"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, HasSubstr("cannot be written"));
}

TEST(BadFile, IsOneSentence) {
  expect_refused(ashlar({"run", "/nowhere/graph.json"}), "No such file");
  expect_refused(ashlar({"run", scratch_folder("graphs")}), "Is a directory");
  expect_refused(ashlar({"validate", graph_file("empty", "")}), "empty.json: ");
  expect_refused(
      ashlar({"validate", graph_file("binary", std::string("\x93NUMPY\0\0\xff\xfe", 10))}),
      "binary.json: ");
  expect_refused(ashlar({"validate", graph_file("other", R"({"hello": 1})")}), "other.json: ");
}

TEST(BadFile, EveryTruncationOfAGoodGraphIsRefused) {
  const std::string text = matmul_graph("[4, 4]");
  ASSERT_EQ(ashlar({"validate", graph_file("whole", text)}).exit_code, 0);
  for (std::size_t length = 0; length < text.size(); length += 37)
    expect_refused(ashlar({"validate", graph_file("cut", text.substr(0, length))}), "cut.json: ");
}

TEST(BadGraph, NamesWhatIsWrong) {
  expect_refused(ashlar({"run", graph_file("k", matmul_graph("[4, 5]"))}), "matmul 'm'");
  expect_refused(ashlar({"run", graph_file("type", matmul_graph("\"big\""))}), "dims");
  expect_refused(ashlar({"run", graph_file("float", matmul_graph("[4.5, 4]"))}), "dims");
  expect_refused(ashlar({"run", graph_file("negative", matmul_graph("[-4, 4]"))}), "-4");
  expect_refused(ashlar({"run", graph_file("ranks", matmul_graph("[1,1,1,1,1,1,1,1,4,4]"))}),
                 "dims");
  expect_refused(
      ashlar(
          {"run", graph_file("extra", matmul_graph("[4, 4]", R"(, "attributes": {"colour": 1})"))}),
      "colour");
}

TEST(BadGraph, HugeNumbersAreRefused) {
  expect_refused(ashlar({"run", graph_file("overflow", matmul_graph("[9223372036854775807, 4]"))}),
                 "overflow.json");
  expect_refused(
      ashlar({"run", graph_file("beyond", matmul_graph("[99999999999999999999999999, 4]"))}),
      "dims");
  expect_refused(
      ashlar({"run", graph_file("large", matmul_graph("[100000000000000, 4]")), "--check"}), "GB");
}

TEST(BadGraph, DeepNestingIsRefused) {
  const std::string deep = std::string(1 << 20, '[');
  expect_refused(ashlar({"validate", graph_file("deep", deep)}), "deep.json: ");
  expect_refused(ashlar({"validate", graph_file("deep_closed", deep + std::string(1 << 20, ']'))}),
                 "deep_closed.json");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  expect_refused(ashlar({"validate", graph_file("objects", objects)}), "objects.json: ");
}

}  // namespace

}  // namespace ashlar::cli_test

// Every example graph is valid, is checked against the oracle, and can be explained.
#include <gmock/gmock.h>

#include <filesystem>

#include "cli/process.hpp"

namespace ashlar::cli_test {

namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> example_names() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(ASHLAR_SOURCE_DIR "/examples/graphs"))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class ExampleGraph : public testing::TestWithParam<std::string> {};

TEST_P(ExampleGraph, AgreesWithTheOracle) {
  const Outcome run = ashlar({"run", example(GetParam()), "--check", "--guard"});
  EXPECT_EQ(run.exit_code, 0) << run.errors << run.output;
  EXPECT_THAT(run.output, HasSubstr("check: ok, worst error "));
  EXPECT_THAT(run.output, HasSubstr("its bound "));
}

TEST_P(ExampleGraph, AgreesWithTheOracleUnfusedAndWithoutWorkspace) {
  const Outcome run = ashlar({"run", example(GetParam()), "--check", "--no-fuse",
                              "--workspace-limit", "0", "--seed", "7"});
  EXPECT_EQ(run.exit_code, 0) << run.errors << run.output;
  EXPECT_THAT(run.output, HasSubstr("check: ok"));
  EXPECT_THAT(run.output, HasSubstr("workspace 0 bytes"));
}

TEST_P(ExampleGraph, IsExplainedForEveryKnownDevice) {
  for (const char* device : {"cpu", "h200"}) {
    const Outcome run = ashlar({"explain", example(GetParam()), "--device", device});
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.output, HasSubstr("region"));
  }
}

TEST_P(ExampleGraph, PrintsAsTextAndAsTheSameGraphInJson) {
  const Outcome text = ashlar({"print", example(GetParam())});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr(GetParam()));

  const Outcome printed = ashlar({"print", example(GetParam()), "--json"});
  EXPECT_EQ(printed.exit_code, 0) << printed.errors;
  const std::string copy = scratch_folder("printed") + "/" + GetParam() + ".json";
  write_text(copy, printed.output);
  const Outcome original = ashlar({"validate", example(GetParam())});
  EXPECT_THAT(original.output, StartsWith(GetParam() + ": valid, "));
  EXPECT_EQ(ashlar({"validate", copy}).output, original.output);
}

INSTANTIATE_TEST_SUITE_P(All, ExampleGraph, testing::ValuesIn(example_names()),
                         [](const auto& example_info) { return example_info.param; });

TEST(Examples, HoldTheTenThatWerePromised) {
  const std::vector<std::string> names = example_names();
  for (const char* name :
       {"conv_bias_relu", "residual_block", "depthwise_separable_block", "mlp_gelu",
        "layer_norm_block", "attention_causal_gqa", "transposed_convolution",
        "batch_norm_training_step", "fp8_matmul_scales", "pooling_head"})
    EXPECT_THAT(names, testing::Contains(name));
}

// Both forms of the same attention give one region on the same engine.
TEST(Examples, CompositeAttentionIsRaised) {
  const Outcome direct = ashlar({"run", example("attention_causal_gqa")});
  const Outcome composite = ashlar({"run", example("attention_causal_gqa_composite")});
  EXPECT_THAT(direct.output, HasSubstr("1 nodes in 1 region,"));
  EXPECT_THAT(composite.output, HasSubstr("17 nodes in 1 region,"));
}

TEST(Examples, CompositeAttentionGivesTheSameNumbers) {
  const std::string direct = scratch_folder("direct");
  const std::string composite = scratch_folder("composite");
  ASSERT_EQ(ashlar({"run", example("attention_causal_gqa"), "--save", direct}).exit_code, 0);
  ASSERT_EQ(
      ashlar({"run", example("attention_causal_gqa_composite"), "--save", composite}).exit_code, 0);
  EXPECT_EQ(read_text(direct + "/o.npy"), read_text(composite + "/o.npy"));
}

}  // namespace

}  // namespace ashlar::cli_test

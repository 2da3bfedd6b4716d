// Engine selection with a table of mock engines: refusals, filters and ranking.
#include "plan/select.hpp"

#include <gtest/gtest.h>

#include "plan/tune.hpp"

namespace ashlar {
namespace {

class FakeEngine final : public Engine {
 public:
  FakeEngine(std::string id, std::string refusal, std::vector<Config> configs,
             EngineKind kind = EngineKind::generic_fusion)
      : id_(std::move(id)),
        refusal_(std::move(refusal)),
        configs_(std::move(configs)),
        kind_(kind) {}
  std::string_view id() const override { return id_; }
  EngineKind kind() const override { return kind_; }
  std::string_view description() const override { return "made up"; }
  Support supports(const Region&, const DeviceProps&) const override {
    return refusal_.empty() ? Support::yes() : Support::no("{}", refusal_);
  }
  std::vector<Config> configs(const Region&, const DeviceProps&) const override { return configs_; }
  std::unique_ptr<Kernel> build(const Graph&, const Region&, const Config&,
                                const DeviceProps&) const override {
    return nullptr;
  }

 private:
  std::string id_, refusal_;
  std::vector<Config> configs_;
  EngineKind kind_;
};

Config config(std::int64_t tile, double flops, std::int64_t scratch = 0, bool deterministic = true,
              bool tf32 = false) {
  Config result{{{"tile", tile}}, {.flops = flops}, scratch, {}};
  result.notes.deterministic = deterministic;
  result.notes.tf32 = tf32;
  return result;
}

class SelectTest : public testing::Test {
 protected:
  Choice choose(const CompileOptions& options) const {
    return select(region_, table_, DeviceProps{}, options);
  }

  FakeEngine picky_{"picky", "groups 1, expected more", {}};
  FakeEngine fast_{"fast",
                   "",
                   {config(8, 1e6, 4096, false), config(4, 2e6, 4096),
                    config(2, 3e6, 0, true, true), config(1, 4e6)}};
  FakeEngine reference_{"reference", "", {config(0, 1e9)}, EngineKind::reference};
  std::array<const Engine*, 3> table_ = {&picky_, &fast_, &reference_};
  Region region_;
};

TEST_F(SelectTest, SelectsTheCheapestAndKeepsEveryReason) {
  const Choice choice = choose({});
  EXPECT_EQ(choice.engine->id(), "fast");
  EXPECT_EQ(choice.config.knob("tile"), 8);
  ASSERT_EQ(choice.attempts.size(), 3u);
  EXPECT_EQ(choice.attempts[0].outcome, "refused: groups 1, expected more");
  EXPECT_NE(choice.attempts[2].outcome.find("estimated"), std::string::npos);
}

TEST_F(SelectTest, HonoursDeterminism) {
  EXPECT_EQ(choose({.deterministic = true}).config.knob("tile"), 4);
}

TEST_F(SelectTest, HonoursTheWorkspaceLimit) {
  EXPECT_EQ(choose({.workspace_limit = 100}).config.knob("tile"), 2);
}

TEST_F(SelectTest, WithoutWorkspaceSelectsWithinOwnedScratch) {
  EXPECT_EQ(choose({.workspace_limit = 0}).config.knob("tile"), choose({}).config.knob("tile"));
  const std::int64_t huge = std::int64_t{1} << 30;
  const FakeEngine hungry("hungry", "", {config(8, 1e3, huge), config(2, 1e6, 0)});
  const std::array<const Engine*, 2> table = {&hungry, &reference_};
  EXPECT_EQ(select(region_, table, DeviceProps{}, {.workspace_limit = 0}).config.knob("tile"), 2);
}

TEST_F(SelectTest, PrefersOwnedScratchToTheReference) {
  const FakeEngine hungry("hungry", "", {config(8, 1e6, 4096)});
  const std::array<const Engine*, 2> table = {&hungry, &reference_};
  EXPECT_EQ(select(region_, table, DeviceProps{}, {.workspace_limit = 0}).engine->id(), "hungry");
}

TEST_F(SelectTest, HonoursTf32) {
  EXPECT_EQ(choose({.allow_tf32 = false, .workspace_limit = 100}).config.knob("tile"), 1);
}

TEST_F(SelectTest, ReferenceOnlySelectsTheReference) {
  EXPECT_EQ(choose({.reference_only = true}).engine->id(), "reference");
}

// Estimates of small problems are rough.
TEST_F(SelectTest, NeverPrefersALastResort) {
  const FakeEngine naive("naive", "", {config(0, 1)}, EngineKind::naive);
  const std::array<const Engine*, 3> table = {&naive, &fast_, &picky_};
  EXPECT_EQ(select(region_, table, DeviceProps{}, {}).engine->id(), "fast");
  EXPECT_EQ(select(region_, table, DeviceProps{}, {.engine = "naive"}).engine->id(), "naive");
}

TEST_F(SelectTest, TunesOnlyPromisingCandidates) {
  const FakeEngine slow("slow", "", {config(16, 1e9)});
  const std::array<const Engine*, 3> table = {&slow, &fast_, &reference_};
  const auto tried = [&](const CompileOptions& options) {
    const Ranking ranking = rank(region_, table, DeviceProps{}, options);
    std::vector<std::int64_t> tiles;
    for (const Candidate& one : contenders(ranking.candidates, options))
      tiles.push_back(one.config.knob("tile"));
    return tiles;
  };
  EXPECT_EQ(tried({}), (std::vector<std::int64_t>{8, 4, 2, 1})) << "not the slow ones";
  EXPECT_EQ(tried({.engine = "slow"}), std::vector<std::int64_t>{16});
  EXPECT_EQ(tried({.reference_only = true}), std::vector<std::int64_t>{0}) << "nothing else";
  EXPECT_TRUE(contenders({}, {}).empty());
}

TEST_F(SelectTest, FindsASavedChoiceOrReportsIt) {
  const Choice choice = select_saved(region_, table_, DeviceProps{}, "fast", {{"tile", 2}});
  EXPECT_EQ(choice.config.knob("tile"), 2);
  try {
    select_saved(region_, table_, DeviceProps{}, "fast", {{"tile", 99}});
    FAIL() << "an unknown configuration was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("engine 'fast'"), std::string::npos);
  }
}

TEST_F(SelectTest, AMissingKnobIsADefect) { EXPECT_THROW(choose({}).config.knob("stages"), Error); }

}  // namespace
}  // namespace ashlar

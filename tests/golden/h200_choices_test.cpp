// The engines selected for the examples and the suites on an H200, from its properties alone. A
// change of the list is a change for users and must be reviewed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "api/backends.hpp"
#include "bench/bench.hpp"
#include "cuda/driver/driver_api.hpp"

namespace ashlar {
namespace {

const std::string kFile = std::string(ASHLAR_SOURCE_DIR) + "/tests/golden/h200_choices.txt";

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// "softmax_forward: cuda.row_norm", one line per region.
std::string choices(const std::string& name, const std::string& graph_text) {
  std::string text = name + "\n";
  const auto plan =
      build_plan(Graph::from_json(graph_text), Device::named("h200").props(), {}, nullptr, false);
  for (const PlanData::Step& step : plan->steps)
    text += fmt::format("  {}: {}\n", step.region.to_text(plan->lowered.graph),
                        step.choice.engine->id());
  return text;
}

std::string all_choices() {
  std::string text;
  const auto examples = std::filesystem::path(ASHLAR_SOURCE_DIR) / "examples" / "graphs";
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(examples))
    if (entry.path().extension() == ".json") files.insert(entry.path());
  for (const auto& file : files) text += choices("examples/" + file.stem().string(), read(file));
  // Cases that differ only in size would repeat the same lines.
  std::set<std::string> seen;
  for (const bench::SuiteGraph& one : bench::suite_graphs({})) {
    std::string regions = choices("", one.graph);
    const std::string suite = one.name.substr(0, one.name.find('/'));
    if (seen.insert(suite + regions).second) text += one.name + regions;
  }
  return text;
}

TEST(Choices, ForAnH200) {
  if (cuda::driver().api != nullptr)
    GTEST_SKIP() << "with a GPU present, its libraries affect the selection";
  const std::string actual = all_choices();
  if (std::getenv("ASHLAR_UPDATE_GOLDENS") != nullptr) {
    std::ofstream(kFile, std::ios::binary) << actual;
    GTEST_SKIP() << "wrote " << kFile;
  }
  const std::vector<std::string> expected = lines_of(read(kFile)), got = lines_of(actual);
  for (std::size_t i = 0; i < std::max(expected.size(), got.size()); ++i)
    ASSERT_EQ(i < got.size() ? got[i] : "the end", i < expected.size() ? expected[i] : "the end")
        << "line " << i + 1 << " of " << kFile
        << "; where that is meant to be, run this test with ASHLAR_UPDATE_GOLDENS=1 and look at "
           "the difference";
}

}  // namespace
}  // namespace ashlar

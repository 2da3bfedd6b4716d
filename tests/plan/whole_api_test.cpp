// <ashlar/ashlar.hpp> alone reaches every part of the C++ API.
#include <gtest/gtest.h>
#include <ashlar/ashlar.hpp>

#include <filesystem>
#include <fstream>
#include <vector>

namespace al = ashlar;

namespace {

al::Graph doubled() {
  al::Graph g;
  g.output("y", g.input("x", {4}, al::f32) * 2.0);
  return g;
}

TEST(WholeApi, BuildsRunsAndChecksAGraph) {
  const al::Graph g = doubled();
  const al::Plan plan = al::compile(g, al::Device::cpu());
  al::Memory x(al::Device::cpu(), 16), y(al::Device::cpu(), 16);
  al::fill_random(g.tensor(g.find_tensor("x")), x.data(), 1);
  al::Binding binding = plan.binding();
  binding.set("x", x.data());
  binding.set("y", y.data());
  al::Timer timer(al::Device::cpu());
  timer.start();
  plan.run(binding);
  timer.stop();
  EXPECT_GE(timer.seconds(), 0.0);
  al::Device::cpu().synchronize();
  const void* inputs[] = {x.data(), y.data()};
  const std::vector<al::Expected> expected = al::evaluate_reference(g, inputs);
  ASSERT_EQ(expected.size(), 1);
  const al::Comparison comparison = expected[0].compare(g.tensor(g.find_tensor("y")), y.data());
  EXPECT_TRUE(comparison.ok) << comparison.summary;
}

TEST(WholeApi, CopiesAndExplains) {
  const al::Device cpu = al::Device::cpu();
  std::int32_t words[] = {1, 2, 3}, copy[3] = {};
  cpu.upload(copy, words, sizeof(words));
  EXPECT_EQ(copy[2], 3);
  cpu.enqueue_fill(words, std::byte{0}, sizeof(words));
  cpu.enqueue_upload(words, copy);
  std::int32_t back[3] = {};
  cpu.download(back, words, sizeof(words));
  EXPECT_EQ(back[1], 2);
  EXPECT_FALSE(al::Device::current().props().name.empty());
  EXPECT_NE(al::explain(doubled(), cpu).find("cpu.pointwise"), std::string::npos);
  EXPECT_EQ(al::inspect(doubled(), al::Device::named("h200")).regions.size(), 1);
  EXPECT_EQ(al::autotune(doubled(), cpu).size(), 1);
  EXPECT_FALSE(al::engines(al::DeviceKind::cuda).empty());
  EXPECT_GT(al::BundleBuilder("sm_90a").architecture().size(), 0);
  EXPECT_NO_THROW(al::bundle_paths());
  EXPECT_THROW(al::read_bundle("/nonexistent.bundle"), al::Error);
  EXPECT_THROW(compile(doubled(), cpu).populate_cuda_graph(words, std::vector<void*>(2)),
               al::Error);
}

// A header of include/ashlar that ashlar.hpp does not include would be a second API.
TEST(WholeApi, IncludesEveryHeader) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(ASHLAR_SOURCE_DIR) / "include" / "ashlar";
  std::ifstream file(folder / "ashlar.hpp");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path path = entry.path();
    if (path.extension() != ".hpp" || path.filename() == "ashlar.hpp") continue;
    EXPECT_NE(text.find("<ashlar/" + path.filename().string() + ">"), std::string::npos) << path;
  }
}

}  // namespace

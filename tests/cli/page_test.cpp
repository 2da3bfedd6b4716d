// Pages of `ashlar explain --html`: well-formed, complete, safe against names, loaded by a browser.
#include <gmock/gmock.h>

#include <filesystem>
#include <optional>

#include "cli/process.hpp"
#include "html/explain_page.hpp"
#include "html/markup.hpp"

namespace ashlar::cli_test {

namespace {

using testing::HasSubstr;
using testing::Not;

// What is wrong with the nesting of a document's tags, or with an ampersand; nothing when it is
// well-formed.
std::optional<std::string> flaw_of(const std::string& text) {
  std::vector<std::string> open;
  std::size_t at = text.find('>') + 1;  // past the document type
  while (at < text.size()) {
    if (text[at] == '&') {
      const std::size_t end = text.find(';', at);
      if (end == std::string::npos || end - at > 7) return "bare & at " + std::to_string(at);
    }
    if (text[at++] != '<') continue;
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return "a tag does not end";
    const std::string tag = text.substr(at, end - at);
    if (tag.find('<') != std::string::npos) return "< in a tag: " + tag;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "odd quotes: " + tag;
    const std::string name =
        tag.substr(tag[0] == '/', tag.find_first_of(" /\n", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return "</" + name + "> does not match";
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
    }
    at = end + 1;
  }
  if (!open.empty()) return "<" + open.back() + "> is not closed";
  return std::nullopt;
}

TEST(Markup, EscapesWhatMeansSomething) {
  EXPECT_EQ(cli::html::escaped("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(cli::html::escaped("\x01\xff k\xC3\xB6"), "\xEF\xBF\xBD\xEF\xBF\xBD k\xC3\xB6");
}

TEST(Markup, ShortensInTheMiddle) {
  EXPECT_EQ(cli::html::shortened("short", 5), "short");
  EXPECT_EQ(cli::html::shortened("abcdefghij", 5), "ab\xE2\x80\xA6ij");
  EXPECT_EQ(cli::html::character_count("k\xC3\xB6"), 2U);
}

TEST(Page, CheckFindsFlaws) {
  EXPECT_FALSE(flaw_of("<!DOCTYPE html><a><b/>&amp;</a>"));
  EXPECT_TRUE(flaw_of("<!DOCTYPE html><a><b></a></b>"));
  EXPECT_TRUE(flaw_of("<!DOCTYPE html><a>"));
  EXPECT_TRUE(flaw_of("<!DOCTYPE html><a> & </a>"));
}

// Every example: each region with its engine, the reasons of the others, what separates regions.
TEST(Page, TellsWhatTheExplanationHolds) {
  for (const auto& entry :
       std::filesystem::directory_iterator(ASHLAR_SOURCE_DIR "/examples/graphs"))
    for (const char* device : {"cpu", "h200"}) {
      cli::GraphReport report;
      report.given = Graph::from_json(read_text(entry.path().string()));
      report.inspection = inspect(report.given, Device::named(device));
      const Inspection& plan = report.inspection;
      const std::string page = cli::html::explain_page({&report, 1});
      const std::string name = entry.path().stem().string() + " on " + device;
      EXPECT_EQ(flaw_of(page).value_or("none"), "none") << name;
      for (std::size_t i = 0; i < plan.regions.size(); ++i) {
        EXPECT_THAT(page, HasSubstr("<tr class=\"main\" id=\"g1-r" + std::to_string(i + 1) + "\""))
            << name;
        EXPECT_THAT(page, HasSubstr(">" + plan.regions[i].engine + "</td>")) << name;
        for (const EngineAttempt& attempt : plan.regions[i].attempts) {
          if (attempt.is_other_operation) continue;
          EXPECT_THAT(page, HasSubstr(cli::html::escaped(attempt.outcome))) << name;
        }
        for (const RegionBoundary& boundary : plan.regions[i].boundaries)
          EXPECT_THAT(page, HasSubstr(cli::html::escaped(boundary.reason))) << name;
      }
      for (const Node& node : plan.graph.nodes())
        EXPECT_THAT(page, HasSubstr(op_label(node.op))) << name;
      EXPECT_THAT(page, Not(HasSubstr("http"))) << name;  // nothing is loaded from elsewhere
    }
}

TEST(Page, NamesAreText) {
  const std::string evil = "<script>alert('x')</script>\"&";
  Graph graph(evil);
  const Value x = graph.input(evil + "in", {4, 4}, f32), w = graph.input("w", {4, 4}, f32);
  graph.output(evil + "out", graph.matmul(relu(x), w, {.name = evil + "node"}));
  cli::GraphReport report;
  report.given = graph.clone();
  report.inspection = inspect(graph, Device::cpu());
  const std::string page = cli::html::explain_page({&report, 1});
  EXPECT_EQ(flaw_of(page).value_or("none"), "none");
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
}

TEST(Page, OfManyOperationsIsOnePage) {
  Graph graph("deep");
  Value x = graph.input("x", {64, 64}, f32);
  for (int i = 0; i < 50; ++i)
    x = relu(graph.matmul(x, graph.input("w" + std::to_string(i), {64, 64}, f32)));
  graph.output("y", x);
  cli::GraphReport report;
  report.given = graph.clone();
  report.inspection = inspect(graph, Device::named("h200"));
  const std::string page = cli::html::explain_page({&report, 1});
  EXPECT_EQ(flaw_of(page).value_or("none"), "none");
  EXPECT_THAT(page, HasSubstr("id=\"g1-r50\""));
}

// --- in a browser

bool has_chromium() { return std::system("command -v chromium > /dev/null 2>&1") == 0; }

struct Loaded {
  std::string dom, log;
  bool has_screenshot = false;
};
Loaded load(const std::string& page, const std::string& folder) {
  const std::string chromium = "cd '" + folder +
                               "' && timeout 120 chromium --headless --no-sandbox --disable-gpu "
                               "--user-data-dir=profile --enable-logging=stderr ";
  const auto run = [&](const std::string& option, const std::string& streams) {
    return std::system((chromium + option + " 'file://" + page + "' " + streams).c_str());
  };
  Loaded loaded;
  EXPECT_EQ(run("--dump-dom", "> dom.html 2> log.txt"), 0);
  EXPECT_EQ(run("--screenshot=page.png", "> /dev/null 2>&1"), 0);
  loaded.dom = read_text(folder + "/dom.html");
  loaded.log = read_text(folder + "/log.txt");
  loaded.has_screenshot = std::filesystem::exists(folder + "/page.png");
  return loaded;
}

TEST(Page, LoadsInChromiumWithoutErrors) {
  if (!has_chromium()) GTEST_SKIP() << "chromium is not installed (./dev test --all installs it)";
  const std::string folder = scratch_folder("chromium"), page = folder + "/demo.html";
  const Outcome run =
      ashlar({"explain", example("conv_bias_relu"), example("layer_norm_block"), "--device", "cpu",
              "--time", "--time-budget", "0.05", "--check", "--html", page});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const Loaded loaded = load(page, folder);
  EXPECT_THAT(loaded.log, Not(HasSubstr("CONSOLE")));
  EXPECT_TRUE(loaded.has_screenshot);
  for (const char* part :
       {"<h2>conv_bias_relu</h2>", "<h2>layer_norm_block</h2>", "id=\"g2-r2\"",
        "class=\"region simd\"", "this plan", "roofline", "<summary>Other engines"})
    EXPECT_THAT(loaded.dom, HasSubstr(part));
  // The same test sees what goes wrong in a page.
  write_text(page, "<!DOCTYPE html><html><body><script>missing()</script></body></html>");
  EXPECT_THAT(load(page, folder).log, HasSubstr("CONSOLE"));
}

}  // namespace

}  // namespace ashlar::cli_test

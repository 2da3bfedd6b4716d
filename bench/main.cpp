// ashlar_bench: the CPU engines against oneDNN, case by case, in one process.
#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cases.hpp"
#include "measure.hpp"
#include "report.hpp"

namespace ashlar::bench {

namespace {

constexpr double kSlowestAllowed = 20.0;  // ours / oneDNN

struct Flags {
  std::string filter;
  std::string json;
  std::string commit = "unknown";
  std::uint64_t seed = std::random_device{}();
  std::optional<double> seconds;
  int threads = 0;
  bool quick = false;
  bool oracle = false;
  bool list = false;
};

// One line on stderr, rewritten in place on a terminal.
class ProgressLine {
 public:
  void show(const std::string& text) const {
    if (terminal_)
      fmt::print(stderr, "\r\033[K{}", text);
    else
      fmt::print(stderr, "{}\n", text);
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }
  bool terminal() const { return terminal_; }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw Error(ErrorCode::io, fmt::format("{} cannot be written", path));
}

std::vector<Case> chosen_cases(const std::string& filter) {
  std::vector<Case> chosen;
  for (Case& problem : foundation_cases())
    if (problem.name.find(filter) != std::string::npos) chosen.push_back(std::move(problem));
  if (chosen.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no case has '{}' in its name; --list prints them", filter));
  return chosen;
}

int run(const Flags& flags) {
  const std::vector<Case> cases = chosen_cases(flags.filter);
  if (flags.list) {
    for (const Case& problem : cases) fmt::print("{}\n", problem.name);
    return 0;
  }
  if (flags.threads > 0) omp_set_num_threads(flags.threads);
  const MeasureOptions options{.seconds = flags.seconds.value_or(flags.quick ? 0.1 : 1.0),
                               .least = flags.quick ? 3 : 7,
                               .seed = flags.seed,
                               .oracle = flags.oracle,
                               .naive = !flags.quick};

  const Setting setting = setting_here(flags.commit, flags.seed);
  fmt::print("{}", table_head(setting));
  const ProgressLine progress;
  std::vector<Measurement> measurements;
  bool right = true;
  for (const Case& problem : cases) {
    const auto stage = [&](const std::string& what) {
      const std::string line =
          fmt::format("[{}/{}] {}: {}", measurements.size() + 1, cases.size(), problem.name, what);
      if (progress.terminal() || what == "timing") progress.show(line);
    };
    measurements.push_back(measure(problem, options, stage));
    right = right && measurements.back().ok;
    progress.clear();
    fmt::print("{}", table_row(measurements.back()));
    std::fflush(stdout);
  }

  if (!flags.json.empty()) write_file(flags.json, to_json(setting, measurements));
  const Measurement* worst = slowest(measurements);
  if (worst) fmt::print("\nslowest ratio: {:.1f}x ({})\n", *worst->ratio(), worst->name);
  return right && !(worst && *worst->ratio() > kSlowestAllowed) ? 0 : 1;
}

}  // namespace

}  // namespace ashlar::bench

int main(int argc, char** argv) {
  ashlar::bench::Flags flags;
  CLI::App app(
      "Times Ashlar's CPU engines against oneDNN. Ends 1 when an output is wrong or a case "
      "takes more than 20 times as long as oneDNN.");
  app.add_option("--filter", flags.filter, "Only cases with this text in their name");
  app.add_option("--json", flags.json, "Also write the results to a file")->type_name("FILE");
  app.add_option("--seconds", flags.seconds,
                 "Timing per case, both sides together (default 1; 0.1 with --quick)")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--threads", flags.threads, "Threads of both sides (default: OpenMP's)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--seed", flags.seed, "Seed of the random inputs (default: a new one each time)");
  app.add_option("--commit", flags.commit, "Commit to write into the record");
  app.add_flag("--quick", flags.quick, "Few samples, no naive times");
  app.add_flag("--oracle", flags.oracle,
               "Check every case in double precision (slow); by default where oneDNN disagrees");
  app.add_flag("--list", flags.list, "Print the names of the cases and stop");
  CLI11_PARSE(app, argc, argv);
  try {
    return ashlar::bench::run(flags);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ashlar_bench: {}\n", error.what());
    return 2;
  }
}

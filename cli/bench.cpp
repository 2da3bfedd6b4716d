#include "bench/bench.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <random>

#include "commands.hpp"
#include "progress.hpp"

namespace ashlar::cli {

namespace {

int run_bench(const bench::Request& request) {
  Progress progress;
  const bench::Listener listener{[&](const std::string& text) {
                                   progress.pause();
                                   fmt::print("{}", text);
                                   std::fflush(stdout);
                                 },
                                 [&](const std::string& what) { progress.stage(what); }};
  return bench::run(request, listener) ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  auto request = std::make_shared<bench::Request>();
  request->seed = std::random_device{}();
  CLI::App* command = app.add_subcommand(
      "bench", "Time the engines against oneDNN and against the machine's limits");
  command->require_subcommand(1);
  CLI::App* cpu = command->add_subcommand(
      "cpu",
      "Time the CPU engines, side by side with oneDNN where it was built in. Speeds are time of "
      "oneDNN / our time: above 1 we are faster. Ends 1 when an output is wrong.");
  cpu->add_option("SUITE", request->suites,
                  "Suites: a name (--list), the beginning of several (resnet50), or a .json file "
                  "(shapes/README.md); all when left out");
  cpu->add_flag("--list", request->list, "Print the suites and their cases and stop");
  cpu->add_option("--filter", request->filter, "Only cases with this text in their name")
      ->type_name("TEXT");
  cpu->add_flag("--quick", request->quick, "Few samples, no naive times");
  cpu->add_option("--json", request->json, "Also write the results to a file")->type_name("FILE");
  cpu->add_option("--html", request->html, "Also write one page with charts")->type_name("FILE");
  cpu->add_option("--record", request->record, "Also write one JSON file per suite into a folder")
      ->type_name("FOLDER");
  cpu->add_option("--seed", request->seed, "Seed of the random inputs (default: a new one)")
      ->type_name("N");
  cpu->add_option("--threads", request->threads, "Threads of all sides (default: OpenMP's)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  cpu->add_option("--seconds", request->seconds,
                  "Timing per case, all sides together (default 1; 0.1 with --quick)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 3600.0));
  cpu->add_flag("--oracle", request->oracle,
                "Check every case in double precision (slow); by default where oneDNN cannot");
  cpu->add_option("--layout", request->layout,
                  "What oneDNN works on: the user's layouts (user), its own (best), both (default)")
      ->type_name("WHICH");
  cpu->add_option("--commit", request->commit, "Commit to write into the records")
      ->type_name("NAME");
  cpu->callback([request, &action] { action = [request] { return run_bench(*request); }; });
}

}  // namespace ashlar::cli

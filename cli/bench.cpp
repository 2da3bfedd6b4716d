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
      "bench",
      "Time the engines of a device side by side with oneDNN (CPU, if built in) "
      "or with cuDNN and cuBLASLt (GPUs, from a path), and against the roofline. "
      "Speed is the peer's time / our time: above 1 we are faster. Exit code 1 "
      "if an output is wrong.");
  command->add_option(
      "SUITE", request->suites,
      "Suites: a name (--list), the beginning of several (resnet50), or a .json file "
      "(shapes/README.md); default: all for the device. The word cpu before them is short for "
      "--device cpu");
  command
      ->add_option("--device", request->device,
                   "Device: cpu (default), cuda:0, ...; with --kernels and --bundle any that "
                   "`explain` accepts")
      ->type_name("NAME");
  command
      ->add_option(
          "--peer", request->peers,
          "Library to time alongside, may be repeated. CPU: onednn (default), none. GPUs: "
          "cudnn:/path/to/libcudnn.so.9, cublaslt:/path/to/libcublasLt.so.13 (matmuls), naive (our "
          "one-thread-per-output engine cuda.generic), none (default)")
      ->type_name("WHICH")
      ->allow_extra_args(false);
  command->add_flag("--list", request->list, "Print the suites and their cases and stop");
  command->add_flag("--kernels", request->kernels,
                    "Print the regions and engines of our plans and stop");
  command->add_option("--filter", request->filter, "Only cases with this text in their name")
      ->type_name("TEXT");
  command->add_flag("--quick", request->quick, "Few samples, only some cases of the large suites");
  command->add_flag(
      "--tune", request->tune,
      "Tune our plans: time the candidates of every region and take the fastest; back "
      "to back if the suite sets back_to_back");
  command->add_flag(
      "--configs", request->configs,
      "Instead of comparing, time every engine configuration of every case (GPUs), for "
      "fitting the cost model; --record writes configs_SUITE.json");
  command
      ->add_option("--top", request->max_configs,
                   "With --configs or --tune: only the N candidates of each region with the lowest "
                   "estimates")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  command->add_option("--engine", request->engine, "Prefer this engine wherever it can run")
      ->type_name("ID");
  command
      ->add_option("--bundle", request->bundle,
                   "Compile all kernels that these suites need on a GPU, which may be absent, into "
                   "a kernel bundle (ASHLAR_BUNDLE) and stop")
      ->type_name("FILE");
  command->add_flag(
      "--host", request->host,
      "Instead of suites, time the host overhead of plans: a run, compiling a kernel, "
      "loading it from the cache (GPUs)");
  command->add_flag("--compile-only", request->compile_only)->group("");  // a part of --host
  command->add_option("--json", request->json, "Also write the results to a file")
      ->type_name("FILE");
  command->add_option("--html", request->html, "Also write one page with charts")
      ->type_name("FILE");
  command
      ->add_option("--record", request->record, "Also write one JSON file per suite into a folder")
      ->type_name("FOLDER");
  command->add_option("--seed", request->seed, "Seed of the random inputs (default: a new one)")
      ->type_name("N");
  command
      ->add_option("--threads", request->threads,
                   "Threads of all sides on the CPU (default: OpenMP's)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--seconds", request->seconds,
                   "Timing per case, all sides together (default 1, GPUs 0.1; with --quick less); "
                   "the search among the engines of a peer on a GPU may take 20 times as long")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 3600.0));
  command->add_flag(
      "--oracle", request->oracle,
      "Check every case with the double-precision oracle (slow); by default only if no "
      "peer can check it");
  command
      ->add_option(
          "--layout", request->layout,
          "What oneDNN works on: the user's layouts (user), its own (best), both (default)")
      ->type_name("WHICH");
  command->add_option("--commit", request->commit, "Commit to write into the records")
      ->type_name("NAME");
  command->callback([request, &action] {
    if (!request->suites.empty() && request->suites.front() == "cpu")
      request->suites.erase(request->suites.begin());
    action = [request] { return run_bench(*request); };
  });
}

}  // namespace ashlar::cli

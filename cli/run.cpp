#include <fmt/format.h>

#include <ashlar/plan.hpp>
#include <filesystem>
#include <memory>

#include "checking.hpp"
#include "commands.hpp"
#include "comparison.hpp"
#include "compile_flags.hpp"
#include "files.hpp"
#include "inputs.hpp"
#include "progress.hpp"
#include "runner.hpp"

namespace ashlar::cli {

namespace {

struct RunFlags : CompileFlags {
  std::string graph;
  std::vector<std::string> inputs;  // NAME=FILE.npy
  std::uint64_t seed = 1;
  std::string save;
  double time_budget = 1.0;
  bool check = false;
  bool time = false;
  bool explain = false;
};

InputFiles input_files(const std::vector<std::string>& pairs) {
  InputFiles files;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--input {}: expected NAME=FILE.npy", pair));
    if (!files.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--input {}: that input was given twice", pair));
  }
  return files;
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(ErrorCode::io,
                fmt::format("the folder {} cannot be made: {}", folder, error.message()));
}

// Names in graphs may hold anything; a file name may not.
std::string file_name_for(const std::string& tensor) {
  std::string name;
  for (const char c : tensor)
    name +=
        std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ? c : '_';
  return (name.front() == '.' ? "_" + name : name) + ".npy";
}

void save_outputs(const TensorMemory& memory, const std::string& folder) {
  for (std::size_t position = 0; position < memory.tensors().size(); ++position) {
    const Tensor& tensor = memory.graph().tensor(memory.tensors()[position]);
    if (tensor.kind != TensorKind::output) continue;
    const std::string path = (std::filesystem::path(folder) / file_name_for(tensor.name)).string();
    write_npy(path, to_npy(memory, position));
    const bool raw = is_floating(tensor.dtype) && npy_type_of(tensor.dtype).starts_with("u");
    fmt::print("saved {}{}\n", path,
               raw ? fmt::format(" (raw bits: NumPy has no {})", to_string(tensor.dtype)) : "");
  }
}

void print_plan(const Plan& plan) {
  const DeviceProps& device = plan.device();
  const int regions = plan.region_count();
  fmt::print("{} on {} ({}): {} nodes in {} {}, workspace {} bytes\n", plan.graph().name(),
             device.name, device.description, plan.graph().nodes().size(), regions,
             regions == 1 ? "region" : "regions", plan.workspace_size());
}

int run_graph(const RunFlags& flags) {
  const InputFiles files = input_files(flags.inputs);
  Progress progress;
  progress.stage(fmt::format("reading {}", flags.graph));
  const Graph graph = read_graph(flags.graph);
  const Device device = flags.present_device();
  require_memory(graph, flags.check);
  if (!flags.save.empty()) make_folder(flags.save);

  progress.stage(fmt::format("filling the inputs of {}", graph.name()));
  TensorMemory memory(graph);
  fill_inputs(memory, files, flags.seed);

  progress.stage(fmt::format("compiling {}", graph.name()));
  const Runner runner(compile(graph, device, flags.chosen_options()), memory);
  progress.pause();
  print_plan(runner.plan());
  if (flags.explain) fmt::print("{}\n", runner.plan().explain());

  progress.stage(fmt::format("running {}", graph.name()));
  runner.run();
  runner.download_outputs();
  if (flags.options.guard) require_intact_guards(memory);

  bool ok = true;
  if (flags.check) {
    progress.stage(fmt::format("evaluating {} in double precision", graph.name()));
    const CheckReport report = check_outputs(memory, runner.plan().notes());
    progress.pause();
    fmt::print("{}\n", report.headline);
    for (const std::string& detail : report.details) fmt::print("  {}\n", detail);
    ok = report.ok;
  }
  progress.pause();
  if (!flags.save.empty()) save_outputs(memory, flags.save);
  if (flags.time) {
    const Measured measured =
        measure_side_by_side(runner, memory, flags.chosen_options(), flags.time_budget, progress);
    progress.pause();
    fmt::print("{}", describe(measured, runner.plan()));
  }
  return ok ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand(
      "run", "Run a graph on random or given inputs; check it, time it, save its outputs");
  command
      ->add_option("GRAPH", flags->graph,
                   "Graph in JSON (docs/graph-json.md), - for standard input")
      ->required();
  command
      ->add_option("--input", flags->inputs,
                   "Read an input from a .npy file (repeatable); the others are random")
      ->type_name("NAME=FILE.npy")
      ->take_all()
      ->expected(1);
  command->add_option("--seed", flags->seed, "Seed of the random inputs (default 1)")
      ->type_name("N");
  command->add_flag("--check", flags->check,
                    "Compare with the double-precision oracle; exit 1 on a mismatch");
  command->add_flag("--time", flags->time,
                    "Time the plan, side by side with the same engines unfused, with oneDNN (where "
                    "the build has it) and with the roofline");
  command
      ->add_option("--time-budget", flags->time_budget,
                   "Seconds of timing, all sides together (default 1)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 3600.0));
  command->add_option("--save", flags->save, "Write the outputs as .npy files into a folder")
      ->type_name("FOLDER");
  command->add_flag("--explain", flags->explain, "Print the explanation of the plan");
  command->add_flag("--guard", flags->options.guard,
                    "Check guard bytes around every buffer and workspace reservation");
  add_compile_flags(*command, *flags);
  command->callback([flags, &action] { action = [flags] { return run_graph(*flags); }; });
}

}  // namespace ashlar::cli

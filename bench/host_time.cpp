#include "host_time.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <ashlar/memory.hpp>
#include <ashlar/plan.hpp>
#include <cstring>
#include <sstream>
#include <vector>

#include "clock.hpp"
#include "statistics.hpp"

namespace ashlar::bench {

namespace {

constexpr int kKernels = 5;   // compiled for the median
constexpr int kBatches = 51;  // of runs
constexpr int kRuns = 100;    // per batch; below the launch queue's depth, so that no launch blocks
constexpr std::int64_t kElements = 4096;
constexpr int kChain = 3;  // pointwise operations per kernel

// A chain of pointwise operations selected by the base-8 digits of `number`.
Graph chain(std::uint64_t number) {
  static constexpr PointwiseMode kModes[] = {PointwiseMode::tanh_fwd, PointwiseMode::sigmoid_fwd,
                                             PointwiseMode::gelu_fwd, PointwiseMode::swish_fwd,
                                             PointwiseMode::elu_fwd,  PointwiseMode::softplus_fwd,
                                             PointwiseMode::cos,      PointwiseMode::sin};
  Graph graph("chain");
  Value value = graph.input("x", {kElements}, f32);
  for (int i = 0; i < kChain; ++i, number /= std::size(kModes)) {
    const Value operands[] = {value};
    value = graph.pointwise(kModes[number % std::size(kModes)], operands);
  }
  graph.output("y", value);
  return graph;
}

// Seconds to compile kernel `number` of this seed; each seed has kKernels + 1 distinct ones.
double compile_once(const Device& device, std::uint64_t seed, int number) {
  const Graph graph = chain(seed * (kKernels + 1) + static_cast<std::uint64_t>(number));
  const Clock::time_point start = Clock::now();
  compile(graph, device);
  return seconds_since(start);
}

// Runs `program bench --compile-only` and parses the times on its stdout; its stderr is ours.
CompileTimes compile_times_elsewhere(const std::string& device, std::uint64_t seed,
                                     const std::string& program) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw Error(ErrorCode::io, "pipe() failed");
  std::string words[] = {program, "bench",  "--compile-only",    "--device",
                         device,  "--seed", std::to_string(seed)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  std::array<char, 256> some{};
  for (ssize_t got = 0; !failed && (got = read(ends[0], some.data(), some.size())) > 0;)
    text.append(some.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  if (failed || waitpid(child, &status, 0) < 0 || status != 0 || text.empty())
    throw Error(ErrorCode::device,
                fmt::format("compiling for '{}' in a second process ({}) failed{}", device, program,
                            failed ? fmt::format(": {}", std::strerror(failed))
                                   : "; see its message above"));
  CompileTimes times;
  std::istringstream(text) >> times.first >> times.others;
  return times;
}

double run_seconds(const Device& device) {
  const Plan plan = compile(chain(0), device);
  const ashlar::Memory x(device, kElements * 4), y(device, kElements * 4),
      workspace(device, plan.workspace_size());
  void* const pointers[] = {x.data(), y.data()};
  std::vector<double> times;
  for (int batch = 0; batch < kBatches; ++batch) {
    device.synchronize();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kRuns; ++i) plan.run(pointers, workspace.data());
    times.push_back(seconds_since(start) / kRuns);
  }
  device.synchronize();
  return median(times);
}

}  // namespace

CompileTimes compile_times(const std::string& device, std::uint64_t seed) {
  const Clock::time_point start = Clock::now();
  const Device found = Device::named(device);
  CompileTimes times;
  times.first = seconds_since(start) + compile_once(found, seed, kKernels);
  std::vector<double> others;
  for (int i = 0; i < kKernels; ++i) others.push_back(compile_once(found, seed, i));
  times.others = median(others);
  return times;
}

HostTimes measure_host(const std::string& device, std::uint64_t seed, const std::string& program,
                       const std::function<void(const std::string&)>& progress) {
  HostTimes times;
  progress("compiling new kernels");
  const CompileTimes fresh = compile_times_elsewhere(device, seed, program);
  times.first = fresh.first;
  times.compiled = fresh.others;
  progress("compiling them from the cache");
  const Device here = Device::named(device);
  times.cached = compile_times(device, seed).others;
  progress("running a plan of one kernel");
  times.run = run_seconds(here);
  return times;
}

std::string host_text(const HostTimes& times) {
  return fmt::format(
      "host: {:.2f} us to run a plan of one kernel; {:.0f} ms to compile a new kernel ({:.0f} ms "
      "for the first one of a process, with opening device and compiler), {:.2f} ms from the disk "
      "cache\n",
      times.run * 1e6, times.compiled * 1e3, times.first * 1e3, times.cached * 1e3);
}

}  // namespace ashlar::bench

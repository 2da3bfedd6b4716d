#include "host_time.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ashlar/memory.hpp>
#include <ashlar/plan.hpp>
#include <chrono>
#include <vector>

#include "statistics.hpp"

namespace ashlar::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kKernels = 5;   // that are compiled
constexpr int kBatches = 51;  // of runs
constexpr int kRuns = 100;    // per batch: fewer than the driver queues
constexpr std::int64_t kElements = 4096;
constexpr int kChain = 6;  // operations of a new kernel

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A chain of operations that the digits of `number` choose.
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

// Compiles kernels that are numbered from the seed on, after one that brings up device and
// compiler.
double compile_seconds(const Device& device, std::uint64_t seed) {
  compile(chain(0), device);
  std::vector<double> times;
  for (int i = 0; i < kKernels; ++i) {
    const Graph graph = chain(seed * kKernels + 1 + static_cast<std::uint64_t>(i));
    const Clock::time_point start = Clock::now();
    compile(graph, device);
    times.push_back(seconds_since(start));
  }
  return median(times);
}

// In a process of its own, so that nothing of it is left here but the files of the cache.
double compile_seconds_elsewhere(const std::string& device, std::uint64_t seed) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(ErrorCode::io, "no pipe to another process");
  const pid_t child = fork();
  if (child < 0) throw Error(ErrorCode::io, "no process can be split off");
  if (child == 0) {
    double seconds = 0;
    try {
      seconds = compile_seconds(Device::named(device), seed);
    } catch (const std::exception&) {
      _exit(1);
    }
    const bool sent = write(ends[1], &seconds, sizeof seconds) == sizeof seconds;
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  double seconds = 0;
  const bool got = read(ends[0], &seconds, sizeof seconds) == sizeof seconds;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!got)
    throw Error(ErrorCode::device, fmt::format("compiling for '{}' failed in another process; "
                                               "`ashlar doctor` may say why",
                                               device));
  return seconds;
}

double run_seconds(const Device& device) {
  const Plan plan = compile(chain(0), device);
  const ashlar::Memory x(device, kElements * 4), y(device, kElements * 4),
      workspace(device, plan.workspace_size());
  void* const pointers[] = {x.data(), y.data()};
  std::vector<double> times;
  for (int batch = 0; batch < kBatches; ++batch) {
    synchronize(device);
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kRuns; ++i) plan.run(pointers, workspace.data());
    times.push_back(seconds_since(start) / kRuns);
  }
  synchronize(device);
  return median(times);
}

}  // namespace

HostTimes measure_host(const std::string& device, std::uint64_t seed,
                       const std::function<void(const std::string&)>& progress) {
  HostTimes times;
  progress("compiling new kernels");
  times.compiled = compile_seconds_elsewhere(device, seed);
  progress("compiling them from the cache");
  const Device here = Device::named(device);
  times.cached = compile_seconds(here, seed);
  progress("running a plan of one kernel");
  times.run = run_seconds(here);
  return times;
}

std::string host_text(const HostTimes& times) {
  return fmt::format(
      "host: {:.2f} us for a run of a plan of one kernel, {:.0f} ms to compile a new kernel, "
      "{:.2f} ms "
      "when another process has compiled it before\n",
      times.run * 1e6, times.compiled * 1e3, times.cached * 1e3);
}

}  // namespace ashlar::bench

// A case on a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "checking.hpp"
#include "counts.hpp"
#include "explanation.hpp"
#include "gpu_tensors.hpp"
#include "measure.hpp"
#include "memory.hpp"
#include "peers/cudnn/cudnn_peer.hpp"
#include "sides.hpp"

namespace ashlar::bench {

namespace {

using Clock = std::chrono::steady_clock;

// The oracle does some 1e8 operations per second.
constexpr double kQuickForOracle = 2e8;
// At full size, results are compared with those of engines that round elsewhere. What differs by
// more than this many tolerances is not rounding but another element, or one that nobody wrote.
constexpr double kFar = 16;
constexpr double kLongNaive = 0.1;   // seconds; a slower one is not sampled again
constexpr std::int64_t kMost = 200;  // samples

double work(const Graph& graph) { return std::max(arithmetic(graph), traffic(graph) / 4); }

// The small form of the case, or the case where it is small itself, against the oracle; on the
// engine that runs it at full size.
Verdict check_small(const Case& problem, const std::string& engine, const MeasureOptions& options) {
  const Problem& form = problem.check ? *problem.check : problem.problem;
  const std::optional<Problem>& prepare = problem.check ? problem.check_prepare : problem.prepare;
  const Graph graph = form.build();
  if (work(graph) > kQuickForOracle && !options.oracle) return {true, "the oracle was not asked"};
  const Device& device = options.gpu->device();
  Memory memory(graph, form, options.seed, device);
  if (prepare) {
    const Graph before = prepare->build();
    Memory prepared(before, *prepare, options.seed, device);
    Runner(before, *prepare, prepared.pointers(), device).run();
    prepared.fetch_outputs(before);
    memory.take(graph, before, prepared);
  }
  const Runner ours(graph, form, memory.pointers(), device, {.engine = engine});
  ours.run();
  memory.fetch_outputs(graph);
  return ask_oracle(graph, memory, ours.plan().notes());
}

// A plan, and the tensors it runs on.
struct Running {
  Graph graph;
  GpuTensors tensors;
  Runner runner;

  Running(const Problem& problem, const MeasureOptions& options,
          const std::map<std::string, void*>& given = {})
      : graph(problem.build()),
        tensors(*options.gpu, graph, problem, options.seed, given),
        runner(graph, problem, tensors.pointers(), options.gpu->device(), {.tune = options.tune}) {}
  void run() const { runner.run(); }
};

// The same as several graphs, run one after the other: each reads what those before it wrote.
struct Apart {
  std::vector<std::unique_ptr<Running>> parts;
  double bytes = 0;

  Apart(const std::vector<Problem>& problems, const MeasureOptions& options) {
    std::map<std::string, void*> written;
    for (const Problem& problem : problems) {
      parts.push_back(std::make_unique<Running>(problem, options, written));
      written.merge(parts.back()->tensors.outputs(parts.back()->graph));
      bytes += traffic(parts.back()->graph);
    }
  }
  void run() const {
    for (const auto& part : parts) part->run();
  }
};

// The generic engine on the same inputs, with outputs of its own.
struct Naive {
  GpuTensors tensors;
  Runner runner;

  Naive(const Problem& problem, const Running& ours, const Gpu& gpu)
      : tensors(ours.tensors.with_other_outputs(gpu, ours.graph)),
        runner(ours.graph, problem, tensors.pointers(), gpu.device(), {.naive = true}) {}
  void run() const { runner.run(); }
};

struct Difference {
  double worst = 0;    // in units of the tolerance
  std::string tensor;  // where it is
};

// Between ours and what `theirs(i)` gives for bound tensor i; null: nothing.
template <class Theirs>
Difference difference(const Gpu& gpu, const Running& ours, const Theirs& theirs) {
  Difference found;
  const std::vector<TensorId> tensors = ours.graph.bound_tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = ours.graph.tensor(tensors[i]);
    if (tensor.kind != TensorKind::output || !theirs(i)) continue;
    const double worst =
        worst_difference(tensor.dtype, sample(gpu, tensor, ours.tensors.pointers()[i]),
                         sample(gpu, tensor, theirs(i)));
    if (worst >= found.worst) found = {worst, tensor.name};
  }
  return found;
}

// All sides at full size, on samples of every output.
Verdict check_samples(const Gpu& gpu, const Running& ours, const Naive* naive, Peer* peer) {
  ours.run();
  Verdict verdict{true, ""};
  if (naive) {
    naive->run();
    const Difference found =
        difference(gpu, ours, [&](std::size_t i) { return naive->tensors.pointers()[i]; });
    verdict.ok = found.worst <= kFar;
    verdict.text += fmt::format("; at full size {:.2g} tolerances from the generic engine{}",
                                found.worst, verdict.ok ? "" : " (" + found.tensor + ")");
  }
  if (peer) {
    peer->run();
    const std::vector<TensorId> tensors = ours.graph.bound_tensors();
    const Difference found = difference(
        gpu, ours, [&](std::size_t i) { return const_cast<void*>(peer->output(tensors[i])); });
    if (!found.tensor.empty())
      verdict.text += fmt::format("; the peer {:.2g}{}", found.worst,
                                  found.worst <= kFar ? "" : " (" + found.tensor + ")");
  }
  return verdict;
}

// Sample by sample in turn, forwards and backwards, so that none gains from a slow moment.
struct Timed {
  const Running& ours;
  Peer* peer;
  const Running* alone;
  const Apart* apart;
  const Naive* naive;
};
void time_all(const Timed& timed, const MeasureOptions& options, Measurement& result) {
  const auto side_of = [&](auto* runs) {
    return runs ? std::make_unique<Side>([runs] { runs->run(); }, options.gpu) : nullptr;
  };
  const auto ours = side_of(&timed.ours), alone = side_of(timed.alone);
  const auto apart = side_of(timed.apart), peer = side_of(timed.peer);
  auto naive = side_of(timed.naive);
  if (naive && naive->first_seconds() > kLongNaive) {
    result.naive = naive->first_seconds();
    naive.reset();
  }
  std::vector<Side*> turns;
  for (Side* side : {ours.get(), peer.get(), alone.get(), apart.get(), naive.get()})
    if (side) turns.push_back(side);
  const Clock::time_point start = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  while (result.samples < options.least || (spent() < options.seconds && result.samples < kMost)) {
    for (Side* side : turns) side->sample();
    std::reverse(turns.begin(), turns.end());
    ++result.samples;
  }
  result.ours = ours->median_seconds();
  result.peer = median_of(peer);
  result.alone = median_of(alone);
  result.apart = median_of(apart);
  if (naive) result.naive = naive->median_seconds();
}

std::unique_ptr<Peer> find_peer(const Running& ours, const Problem& problem,
                                const MeasureOptions& options, Measurement& result) {
  if (!options.cudnn) return nullptr;
  cudnn::Answer answer =
      cudnn::fastest_peer(*options.cudnn, {ours.graph, ours.tensors.pointers(), problem.constants},
                          {.seconds = options.search_seconds});
  result.peer_refusal = std::move(answer.refusal);
  if (answer.peer) {
    result.peer_implementation = answer.peer->description();
    result.peer_kernels = answer.peer->kernels();
  }
  return std::move(answer.peer);
}

}  // namespace

Measurement measure_on_gpu(const Case& problem, const MeasureOptions& options,
                           const std::function<void(const std::string&)>& progress) {
  Gpu& gpu = *options.gpu;
  Measurement result;
  result.name = problem.name;

  progress("filling");
  std::unique_ptr<Running> preparation;
  std::map<std::string, void*> prepared;
  if (problem.prepare) {
    preparation = std::make_unique<Running>(*problem.prepare, options);
    preparation->run();
    prepared = preparation->tensors.outputs(preparation->graph);
  }
  const Running ours(problem.problem, options, prepared);
  const Outline outline = outline_of(ours.runner.plan().explain());
  result.engine = outline.engines;
  result.config = outline.configs;
  result.kernels = outline.regions;
  result.arithmetic = arithmetic(ours.graph);
  result.traffic = traffic(ours.graph);
  result.peak = gpu.peak(ours.graph);
  result.copy_speed = gpu.copy_speed();
  if (is_slow(outline) && work(ours.graph) > kQuickForOracle) {
    result.check = fmt::format("FAILED: no kernel takes all of it ({})", outline.engines);
    return result;
  }
  auto naive = std::make_unique<Naive>(problem.problem, ours, gpu);
  if (is_slow(outline_of(naive->runner.plan().explain()))) naive.reset();

  progress("asking the oracle");
  const Verdict small = check_small(problem, main_engine(outline), options);
  progress("choosing the peer's plans");
  const std::unique_ptr<Peer> peer = find_peer(ours, problem.problem, options, result);
  progress("checking");
  const Verdict large = check_samples(gpu, ours, naive.get(), peer.get());
  result.ok = small.ok && large.ok;
  result.check = (small.ok && !large.ok ? "WRONG: " : "") + small.text + large.text;
  if (!result.ok) return result;

  progress("timing");
  std::unique_ptr<Running> alone;
  if (problem.alone) alone = std::make_unique<Running>(*problem.alone, options, prepared);
  std::unique_ptr<Apart> apart;
  if (!problem.apart.empty()) {
    apart = std::make_unique<Apart>(problem.apart, options);
    result.apart_traffic = apart->bytes;
  }
  if (!options.naive) naive.reset();
  time_all({ours, peer.get(), alone.get(), apart.get(), naive.get()}, options, result);
  return result;
}

}  // namespace ashlar::bench

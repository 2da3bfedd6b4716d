// Measures a case on a GPU: oracle on a small form, samples compared at full size, cold-L2 timing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <memory>

#include "back_to_back.hpp"
#include "checking.hpp"
#include "clock.hpp"
#include "counts.hpp"
#include "engines_used.hpp"
#include "gpu_tensors.hpp"
#include "measure.hpp"
#include "memory.hpp"
#include "peers/cublaslt/cublaslt_peer.hpp"
#include "peers/cudnn/cudnn_peer.hpp"
#include "sides.hpp"

namespace ashlar::bench {

namespace {

// Operations. The oracle computes about 1e8 per second.
constexpr double kQuickForOracle = 2e8;
constexpr std::int64_t kMaxSamples = 200;
// After kPatience seconds, kMinSamples samples are enough for a slow case.
constexpr double kPatience = 2;
constexpr std::int64_t kMinSamples = 5;
// The generic engine is far slower, so few samples suffice.
constexpr std::int64_t kNaiveSamples = 3;
constexpr double kLongNaive = 0.05;     // seconds; a slower run is not repeated
constexpr double kMaxNaiveWork = 2e12;  // operations; about two seconds of the generic engine

// Reports the current stage and records its duration.
class Stages {
 public:
  Stages(const std::function<void(const std::string&)>& progress, Measurement& result)
      : progress_(progress), result_(result) {}
  ~Stages() { end(); }
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;
  void begin(const std::string& what) {
    end();
    progress_(what);
    result_.stages.emplace_back(what, 0);
    start_ = Clock::now();
  }

 private:
  void end() {
    if (!result_.stages.empty()) result_.stages.back().second = seconds_since(start_);
  }
  const std::function<void(const std::string&)>& progress_;
  Measurement& result_;
  Clock::time_point start_ = Clock::now();
};

// Runs the small form of the case (or the case itself if it is small) on `engine`, the one that
// runs it at full size, and compares it with the oracle on another thread.
std::future<Verdict> check_small(const Case& problem, const std::string& engine,
                                 const MeasureOptions& options) {
  const Problem& form = problem.check ? *problem.check : problem.problem;
  const std::optional<Problem>& prepare = problem.check ? problem.check_prepare : problem.prepare;
  const Graph graph = form.build();
  if (work(graph) > kQuickForOracle && !options.oracle)
    return std::async(std::launch::deferred, [] {
      return Verdict{true, "not checked by the oracle"};
    });
  const Device& device = options.gpu->device();
  auto memory = std::make_shared<Memory>(graph, form, options.seed, device);
  if (prepare) {
    const Graph before = prepare->build();
    Memory prepared(before, *prepare, options.seed, device);
    Runner(before, *prepare, prepared.pointers(), device).run();
    prepared.fetch_outputs(before);
    memory->take(graph, before, prepared);
  }
  const Runner ours(graph, form, memory->pointers(), device, {.engine = engine});
  ours.run();
  memory->fetch_outputs(graph);
  return std::async(std::launch::async, [memory, plan = ours.plan()] {
    return ask_oracle(plan.graph(), *memory, plan.notes());
  });
}

// A plan and its tensors.
struct Running {
  Graph graph;
  GpuTensors tensors;
  Runner runner;

  Running(const Problem& problem, const MeasureOptions& options,
          const std::map<std::string, void*>& given = {}, bool naive = false)
      : graph(problem.build()),
        tensors(*options.gpu, graph, problem, options.seed, given),
        runner(graph, problem, tensors.pointers(), options.gpu->device(),
               naive ? PlanRequest{.naive = true} : plan_request_of(options)) {}
  void run() const { runner.run(); }
};

// The same work as several graphs run in sequence; each reads the outputs of its predecessors.
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

// cuda.generic, unfused, on the same inputs with its own outputs.
struct Naive {
  GpuTensors tensors;
  Runner runner;

  Naive(const Problem& problem, const Running& ours, const Gpu& gpu)
      : tensors(ours.tensors.with_other_outputs(gpu, ours.graph)),
        runner(ours.graph, problem, tensors.pointers(), gpu.device(), {.naive = true}) {}
  void run() const { runner.run(); }
};

// Back-to-back runs of one plan.
struct RunsBackToBack {
  const Running& ours;
  BackToBack all;
  WorkGraph graph;

  RunsBackToBack(const Gpu& gpu, const Running& running, double bytes)
      : ours(running),
        all(gpu, running.graph, running.tensors, bytes),
        graph(all.captured([&](std::span<void* const> pointers, void* stream) {
          ours.runner.run(pointers, stream);
        })) {}
  void run() const { graph.launch(); }
};

struct Difference {
  double worst = 0;    // in units of the tolerance
  std::string tensor;  // that has it
};

// Of our outputs from those of another side; theirs(i) is its memory of bound tensor i or null.
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

// Runs and synchronises; an error names the side.
template <class Runs>
void run_whole(const Gpu& gpu, Runs& side, const char* whose) {
  try {
    side.run();
    gpu.device().synchronize();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} at full size: {}", whose, error.what()));
  }
}

std::string in_tolerances(const Difference& found, const char* from, double far) {
  return fmt::format("; at full size {:.2g} tolerances from {}{}", found.worst, from,
                     found.worst <= far ? "" : " (" + found.tensor + ")");
}

// Compares samples of every output at full size. A difference above `far` tolerances is no rounding
// but a wrong or unwritten element. Without a peer that agrees, the generic engine decides (built
// on demand). If it confirms our results, a peer that differs is wrong and is dropped: its time
// would be of another computation.
template <class MakeNaive>
Verdict check_samples(const Gpu& gpu, const Running& ours, std::unique_ptr<Peer>& peer, double far,
                      const MakeNaive& make_naive) {
  run_whole(gpu, ours, "ours");
  std::string text;
  bool peer_differs = false;
  if (peer) {
    run_whole(gpu, *peer, "the peer");
    const std::vector<TensorId> tensors = ours.graph.bound_tensors();
    const Difference found = difference(
        gpu, ours, [&](std::size_t i) { return const_cast<void*>(peer->output(tensors[i])); });
    if (!found.tensor.empty()) text = in_tolerances(found, "the peer", far);
    if (!found.tensor.empty() && found.worst <= far) return {true, text};
    peer_differs = !found.tensor.empty();
  }
  const Naive* naive = make_naive();
  if (!naive) return {true, text + "; not compared at full size"};
  run_whole(gpu, *naive, "the generic engine");
  const Difference found =
      difference(gpu, ours, [&](std::size_t i) { return naive->tensors.pointers()[i]; });
  if (peer_differs && found.worst <= far) peer.reset();
  return {found.worst <= far, in_tolerances(found, "the generic engine", far) + text};
}

// Back-to-back runs must give bitwise the sampled results of a single run.
Verdict check_back_to_back(const Gpu& gpu, const RunsBackToBack& back_to_back) {
  gpu.flush();
  run_whole(gpu, back_to_back, "back to back");
  for (const GpuTensors* own :
       {&back_to_back.all.tensors.front(), &back_to_back.all.tensors.back()}) {
    const Difference found =
        difference(gpu, back_to_back.ours, [&](std::size_t i) { return own->pointers()[i]; });
    if (found.worst > 0)
      return {false, fmt::format("; WRONG back to back: {} differs by {:.2g} tolerances",
                                 found.tensor, found.worst)};
  }
  return {true, ""};
}

// Of the fastest method; absent if there is none.
std::optional<double> least_median(const std::vector<std::unique_ptr<Side>>& methods) {
  std::optional<double> least;
  for (const auto& method : methods)
    least = std::min(method->median_seconds(), least.value_or(method->median_seconds()));
  return least;
}

// Samples of all sides are interleaved, in alternating order: clock drift affects all alike.
struct Timed {
  const Running& ours;
  Peer* peer;
  const Running* alone;
  Peer* peer_alone;
  const Apart* apart;
  const GpuCopy* copy;
  const RunsBackToBack* back_to_back;
  const CopiesBackToBack* copies_back_to_back;
};
void time_all(const Timed& timed, const MeasureOptions& options, Measurement& result) {
  const auto side_of = [&](auto* runs) {
    return runs ? std::make_unique<Side>([runs] { runs->run(); }, options.gpu) : nullptr;
  };
  const auto ours = side_of(&timed.ours), alone = side_of(timed.alone);
  const auto apart = side_of(timed.apart), peer = side_of(timed.peer);
  const auto back_to_back = side_of(timed.back_to_back);
  const auto peer_alone = side_of(timed.peer_alone);
  std::vector<Side*> turns;
  const auto add_method = [&](std::vector<std::unique_ptr<Side>>& methods,
                              std::function<void()> run) {
    methods.push_back(std::make_unique<Side>(std::move(run), options.gpu));
    turns.push_back(methods.back().get());
  };
  std::vector<std::unique_ptr<Side>> copies, copies_back_to_back;
  for (int method = 0; timed.copy && method < timed.copy->methods(); ++method)
    add_method(copies, [&, method] { timed.copy->run(method); });
  for (Side* side :
       {ours.get(), peer.get(), alone.get(), peer_alone.get(), apart.get(), back_to_back.get()})
    if (side) turns.push_back(side);
  if (timed.copies_back_to_back)
    for (const WorkGraph& method : timed.copies_back_to_back->methods)
      add_method(copies_back_to_back, [&method] { method.launch(); });
  const Clock::time_point start = Clock::now();
  const auto are_enough = [&] {
    if (result.samples < options.min_samples)
      return result.samples >= kMinSamples && seconds_since(start) > kPatience;
    return result.samples >= kMaxSamples || seconds_since(start) >= options.seconds;
  };
  while (!are_enough()) {
    for (Side* side : turns) side->sample();
    std::reverse(turns.begin(), turns.end());
    ++result.samples;
  }
  result.ours = ours->median_seconds();
  result.peer = median_of(peer);
  result.alone = median_of(alone);
  result.peer_alone = median_of(peer_alone);
  result.apart = median_of(apart);
  if (back_to_back) {
    result.runs_back_to_back = static_cast<std::int64_t>(timed.back_to_back->all.tensors.size());
    result.back_to_back = timed.back_to_back->all.seconds_of_one(back_to_back->median_seconds());
  }
  result.same_copy = least_median(copies);
  if (const auto seconds = least_median(copies_back_to_back))
    result.same_copy_back_to_back = timed.copies_back_to_back->seconds_of_one(*seconds);
}

template <class Runs>
double naive_seconds(const Runs& naive, const Gpu* gpu) {
  Side side([&] { naive.run(); }, gpu);
  if (side.first_seconds() > kLongNaive) return side.first_seconds();
  for (std::int64_t i = 0; i < kNaiveSamples; ++i) side.sample();
  return side.median_seconds();
}

// Measures a smaller problem of the same kind and scales its time by the work.
double scaled_naive_seconds(const Problem& smaller, const Running& ours,
                            const MeasureOptions& options) {
  const Running naive(smaller, options, {}, true);
  return naive_seconds(naive, options.gpu) * work(ours.graph) / work(naive.graph);
}

bool has_matmul(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return std::holds_alternative<Matmul>(node.op); });
}

struct FoundPeer {
  std::string name;
  PeerAnswer answer;
};
// cuBLASLt for a graph that it runs in one call, else cuDNN.
FoundPeer find_peer(const Running& ours, const Problem& problem, const MeasureOptions& options) {
  const PeerProblem asked{ours.graph, ours.tensors.pointers(), problem.constants, problem.tf32};
  FoundPeer found;
  if (options.cublaslt && has_matmul(ours.graph)) {
    found = {"cublaslt",
             cublaslt::fastest_peer(*options.cublaslt, asked, {.seconds = options.search_seconds})};
    if (found.answer.peer || !options.cudnn) return found;
  }
  if (options.cudnn)
    found = {"cudnn",
             cudnn::fastest_peer(*options.cudnn, asked, {.seconds = options.search_seconds})};
  return found;
}

std::unique_ptr<Peer> named_peer(FoundPeer found, Measurement& result) {
  result.peer_name = found.name;
  result.peer_refusal = std::move(found.answer.refusal);
  if (found.answer.peer) {
    result.peer_implementation = found.answer.peer->description();
    result.peer_kernels = found.answer.peer->kernels();
  }
  return std::move(found.answer.peer);
}

void measure_into(Measurement& result, const Case& problem, const MeasureOptions& options,
                  Stages& stages) {
  Gpu& gpu = *options.gpu;
  stages.begin("compiling");
  std::unique_ptr<Running> preparation;
  std::map<std::string, void*> prepared;
  if (problem.prepare) {
    preparation = std::make_unique<Running>(*problem.prepare, options);
    preparation->run();
    prepared = preparation->tensors.outputs(preparation->graph);
  }
  const Running ours(problem.problem, options, prepared);
  const EnginesUsed used = engines_used(ours.runner.plan().inspect());
  result.engine = used.engines;
  result.config = used.configs;
  result.kernels = used.regions;
  result.arithmetic = arithmetic(ours.graph);
  result.traffic = traffic(ours.graph);
  result.peak = gpu.peak(ours.graph, problem.problem.tf32);
  result.copy_speed = gpu.copy_speed();
  if (used.is_slow && work(ours.graph) > kQuickForOracle) {
    result.check = fmt::format("FAILED: a region runs on a reference engine ({})", used.engines);
    return;
  }

  stages.begin("running the small form");
  std::future<Verdict> oracle = check_small(problem, used.main_engine, options);
  stages.begin("searching the peer's plans");
  std::unique_ptr<Peer> peer;
  if (problem.peer_fails.empty())
    peer = named_peer(find_peer(ours, problem.problem, options), result);
  else
    result.peer_refusal = problem.peer_fails;
  stages.begin("waiting for the oracle");
  const Verdict small = oracle.get();
  stages.begin("checking");
  std::unique_ptr<Naive> naive;
  const auto make_naive = [&] {
    if (!naive && result.arithmetic > kMaxNaiveWork) return naive.get();
    if (!naive) naive = std::make_unique<Naive>(problem.problem, ours, gpu);
    if (engines_used(naive->runner.plan().inspect()).is_slow) naive.reset();
    return naive.get();
  };
  // tf32 keeps 11 significant bits of the operands, and the sides round differently.
  const double far = problem.far * (ours.runner.plan().notes().tf32 ? 4 : 1);
  const Verdict large = check_samples(gpu, ours, peer, far, make_naive);
  result.ok = small.ok && large.ok;
  result.check = (small.ok && !large.ok ? "WRONG: " : "") + small.text + large.text;
  if (!result.ok) return;

  stages.begin("timing");
  std::unique_ptr<Running> alone;
  std::unique_ptr<Peer> peer_alone;
  if (problem.alone) {
    alone = std::make_unique<Running>(*problem.alone, options, prepared);
    if (peer) peer_alone = find_peer(*alone, *problem.alone, options).answer.peer;
  }
  std::unique_ptr<Apart> apart;
  if (!problem.apart.empty()) {
    apart = std::make_unique<Apart>(problem.apart, options);
    result.apart_traffic = apart->bytes;
  }
  if (options.naive && problem.naive)
    result.naive = scaled_naive_seconds(*problem.naive, ours, options);
  else if (options.naive && make_naive())
    result.naive = naive_seconds(*naive, options.gpu);
  naive.reset();
  std::optional<RunsBackToBack> back_to_back;
  if (problem.problem.back_to_back) {
    back_to_back.emplace(gpu, ours, result.traffic);
    const Verdict same = check_back_to_back(gpu, *back_to_back);
    result.ok = same.ok;
    result.check += same.text;
    if (!result.ok) return;
  }
  std::optional<GpuCopy> copy;
  std::optional<CopiesBackToBack> copies_back_to_back;
  if (result.arithmetic * result.copy_speed < result.traffic * result.peak) {
    copy.emplace(gpu, static_cast<std::int64_t>(result.traffic),
                 back_to_back ? static_cast<int>(back_to_back->all.tensors.size()) : 1);
    if (back_to_back) copies_back_to_back.emplace(*copy);
  }
  const auto if_there = [](const auto& side) { return side ? &*side : nullptr; };
  time_all({ours, peer.get(), alone.get(), peer_alone.get(), apart.get(), if_there(copy),
            if_there(back_to_back), if_there(copies_back_to_back)},
           options, result);
}

}  // namespace

Measurement measure_on_gpu(const Case& problem, const MeasureOptions& options,
                           const std::function<void(const std::string&)>& progress) {
  Measurement result;
  result.name = problem.name;
  {
    Stages stages(progress, result);
    measure_into(result, problem, options, stages);
  }
  return result;
}

}  // namespace ashlar::bench

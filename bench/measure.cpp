#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "calibration.hpp"
#include "checking.hpp"
#include "counts.hpp"
#include "explanation.hpp"
#include "gpu.hpp"
#include "memory.hpp"
#include "peer.hpp"
#include "peers/cudnn/cudnn_peer.hpp"
#include "sides.hpp"
#include "statistics.hpp"

namespace ashlar::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The reference does some 1e8 operations per second.
constexpr double kQuickForNaive = 1e8;
constexpr double kLongNaive = 0.1;   // seconds; a slower one on a GPU is not sampled again
constexpr std::int64_t kMost = 200;  // samples

Device device_of(const MeasureOptions& options) {
  return options.gpu ? options.gpu->device() : Device::cpu();
}

// Ours, or a variant of it, with memory and peers.
struct Contest {
  Graph graph;
  Memory memory;
  Runner ours;
  std::unique_ptr<Peer> peer, peer_best;
  std::string refusal;  // why there is no peer

  Contest(const Problem& problem, const MeasureOptions& options, const Graph* prepared_by,
          const Memory* prepared)
      : graph(problem.build()),
        memory(graph, problem, options.seed, device_of(options)),
        ours(graph, problem, taken(prepared_by, prepared).pointers(), device_of(options),
             {.tune = options.tune}) {}

  void find_peers(const Problem& problem, const MeasureOptions& options, bool best) {
    const PeerProblem asked{graph, memory.pointers(), problem.constants};
    if (options.gpu) {
      if (!options.cudnn) return;
      cudnn::Answer answer =
          cudnn::fastest_peer(*options.cudnn, asked, {.seconds = options.search_seconds});
      peer = std::move(answer.peer);
      refusal = std::move(answer.refusal);
      return;
    }
    if (options.user_layout) peer = fastest_peer(asked, PeerLayouts::user);
    if (best) peer_best = fastest_peer(asked, PeerLayouts::best);
  }

 private:
  // Constants must have their values before the plan is compiled.
  const Memory& taken(const Graph* prepared_by, const Memory* prepared) {
    if (prepared) memory.take(graph, *prepared_by, *prepared);
    return memory;
  }
};

// The same as several graphs, run one after the other: each reads what those before it wrote.
class Apart {
 public:
  Apart(const std::vector<Problem>& problems, const MeasureOptions& options) {
    std::map<std::string, void*> written;
    for (const Problem& problem : problems) {
      graphs_.push_back(problem.build());
      const Graph& graph = graphs_.back();
      memories_.push_back(
          std::make_unique<Memory>(graph, problem, options.seed, device_of(options)));
      std::vector<void*> pointers(memories_.back()->pointers().begin(),
                                  memories_.back()->pointers().end());
      const std::vector<TensorId> tensors = graph.bound_tensors();
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const Tensor& tensor = graph.tensor(tensors[i]);
        if (tensor.kind == TensorKind::output)
          written[tensor.name] = pointers[i];
        else if (const auto found = written.find(tensor.name); found != written.end())
          pointers[i] = found->second;
      }
      runners_.emplace_back(graph, problem, pointers, device_of(options),
                            PlanWishes{.tune = options.tune});
      traffic_ += traffic(graph);
    }
  }
  void run() const {
    for (const Runner& runner : runners_) runner.run();
  }
  double bytes() const { return traffic_; }

 private:
  std::vector<Graph> graphs_;
  std::vector<std::unique_ptr<Memory>> memories_;
  std::vector<Runner> runners_;
  double traffic_ = 0;
};

// Everything that is timed in a case, beside ours.
struct Others {
  const Contest* alone = nullptr;
  const Apart* apart = nullptr;
  const Runner* naive = nullptr;
};

// Sample by sample in turn, forwards and backwards, with the calibration of the processor among
// them, so that none gains from what another left in the caches or from a slow moment of the
// machine.
void time_all(const Contest& contest, const Others& others, const MeasureOptions& options,
              Measurement& result) {
  const Gpu* gpu = options.gpu;
  const auto side_of = [&](const auto* runs) {
    return runs ? std::make_unique<Side>([runs] { runs->run(); }, gpu) : nullptr;
  };
  const auto peer_side = [&](Peer* runs) {
    return runs ? std::make_unique<Side>([runs] { runs->run(); }, gpu) : nullptr;
  };
  const auto ours = side_of(&contest.ours),
             ours_alone = side_of(others.alone ? &others.alone->ours : nullptr),
             apart = side_of(others.apart);
  const auto peer = peer_side(contest.peer.get()), peer_best = peer_side(contest.peer_best.get()),
             peer_alone = peer_side(others.alone ? others.alone->peer.get() : nullptr);
  auto naive = side_of(others.naive);
  if (naive && naive->first_seconds() > kLongNaive) {
    result.naive = naive->first_seconds();
    naive.reset();
  }
  std::optional<CopyCalibration> copy;
  if (!gpu) copy.emplace(result.traffic);
  std::vector<double> peaks, copies;

  std::vector<std::function<void()>> turns;
  const std::unique_ptr<Side>* const sides[] = {&ours,      &peer,  &ours_alone, &peer_alone,
                                                &peer_best, &apart, &naive};
  for (const std::unique_ptr<Side>* side : sides)
    if (*side) turns.emplace_back([side] { (*side)->sample(); });
  if (!gpu) {
    turns.emplace_back([&] { peaks.push_back(multiply_add_rate()); });
    turns.emplace_back([&] { copies.push_back(copy->rate()); });
  }

  const Clock::time_point start = Clock::now();
  while (result.samples < options.least ||
         (seconds_since(start) < options.seconds && result.samples < kMost)) {
    for (const auto& turn : turns) turn();
    std::reverse(turns.begin(), turns.end());
    ++result.samples;
  }
  result.ours = ours->median_seconds();
  result.peer = median_of(peer);
  result.peer_best = median_of(peer_best);
  result.alone = median_of(ours_alone);
  result.peer_alone = median_of(peer_alone);
  result.apart = median_of(apart);
  if (naive) result.naive = naive->median_seconds();
  if (gpu) return;
  result.peak = median(peaks) * (on_bytes(contest.graph) ? byte_operations_per_f32() : 1);
  result.copy_speed = median(copies);
}

double work(const Graph& graph) { return std::max(arithmetic(graph), traffic(graph) / 4); }

// One run of the reference engine, on a smaller problem of the same kind where there is one; its
// time grows with the arithmetic.
std::optional<double> reference_seconds(const Case& problem, const Contest& contest,
                                        const MeasureOptions& options) {
  const Problem& form = problem.naive ? *problem.naive : problem.problem;
  const Graph graph = form.build();
  if (work(graph) > kQuickForNaive) return std::nullopt;
  const Memory memory(graph, form, options.seed);
  const Runner naive(graph, form, memory.pointers(), Device::cpu(), {.naive = true});
  const Clock::time_point start = Clock::now();
  naive.run();
  return seconds_since(start) * work(contest.graph) / work(graph);
}

Verdict checked(const Case& problem, Contest& contest, const MeasureOptions& options) {
  contest.ours.run();
  Peer* judge = contest.peer ? contest.peer.get() : contest.peer_best.get();
  if (judge) {
    judge->start();
    judge->run();
    judge->finish();
  }
  if (!options.gpu) return check(contest.graph, contest.memory, judge, options.oracle);
  contest.memory.fetch_outputs(contest.graph);
  return check_device(contest.graph, problem.problem, contest.memory, judge,
                      contest.ours.plan().notes(), options.oracle);
}

}  // namespace

std::optional<double> Measurement::overhead() const {
  return alone ? std::optional(ours / *alone - 1) : std::nullopt;
}

std::optional<double> Measurement::peer_overhead() const {
  return peer && peer_alone ? std::optional(*peer / *peer_alone - 1) : std::nullopt;
}

double Measurement::limit() const {
  return std::max(peak > 0 ? arithmetic / peak : 0, copy_speed > 0 ? traffic / copy_speed : 0);
}

Measurement measure(const Case& problem, const MeasureOptions& options,
                    const std::function<void(const std::string&)>& progress) {
  Measurement result;
  result.name = problem.name;

  progress("filling");
  std::optional<Contest> preparation;
  if (problem.prepare) {
    preparation.emplace(*problem.prepare, options, nullptr, nullptr);
    preparation->ours.run();
    preparation->memory.fetch_outputs(preparation->graph);
  }
  Contest contest(problem.problem, options, preparation ? &preparation->graph : nullptr,
                  preparation ? &preparation->memory : nullptr);
  preparation.reset();
  std::optional<Contest> alone;
  if (problem.alone) alone.emplace(*problem.alone, options, nullptr, nullptr);
  std::optional<Apart> apart;
  if (!problem.apart.empty()) apart.emplace(problem.apart, options);
  const Outline outline = outline_of(contest.ours.plan().explain());
  if (options.gpu && is_slow(outline) && work(contest.graph) > kQuickForNaive) {
    result.check = fmt::format("FAILED: no kernel takes it all ({})", outline.engines);
    return result;
  }
  std::optional<Runner> naive;
  if (options.gpu && options.naive)
    naive.emplace(contest.graph, problem.problem, contest.memory.pointers(), device_of(options),
                  PlanWishes{.naive = true});
  result.arithmetic = arithmetic(contest.graph);
  result.traffic = traffic(contest.graph);
  if (apart) result.apart_traffic = apart->bytes();
  if (naive && is_slow(outline_of(naive->plan().explain()))) naive.reset();
  result.engine = outline.engines;
  result.kernels = contest.ours.plan().region_count();
  if (options.gpu) {
    result.peak = options.gpu->peak(contest.graph);
    result.copy_speed = options.gpu->copy_speed();
  }

  progress(options.gpu ? "choosing the peer's plans" : "choosing oneDNN's algorithm and layouts");
  contest.find_peers(problem.problem, options, options.best_layout);
  if (alone) alone->find_peers(*problem.alone, options, false);
  if (contest.peer) {
    result.peer_implementation = contest.peer->description();
    result.peer_kernels = contest.peer->kernels();
  }
  if (contest.peer_best) result.peer_best_implementation = contest.peer_best->description();
  result.peer_refusal = contest.refusal;

  progress("checking");
  const Verdict verdict = checked(problem, contest, options);
  result.ok = verdict.ok;
  result.check = verdict.text;
  if (!result.ok) return result;

  progress("timing");
  time_all(contest,
           {alone ? &*alone : nullptr, apart ? &*apart : nullptr, naive ? &*naive : nullptr},
           options, result);
  if (options.naive && !options.gpu) {
    progress("timing the reference engine");
    result.naive = reference_seconds(problem, contest, options);
  }
  return result;
}

}  // namespace ashlar::bench

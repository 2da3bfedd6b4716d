#include "measure.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "calibration.hpp"
#include "checking.hpp"
#include "clock.hpp"
#include "counts.hpp"
#include "engines_used.hpp"
#include "memory.hpp"
#include "peer.hpp"
#include "sides.hpp"
#include "statistics.hpp"

namespace ashlar::bench {

PlanRequest plan_request_of(const MeasureOptions& options) {
  return {.tune = options.tune, .max_candidates = options.max_configs, .engine = options.engine};
}

namespace {

// Our plan of a problem with its tensors and peers.
struct Contest {
  Graph graph;
  Memory memory;
  Runner ours;
  std::unique_ptr<Peer> peer, peer_best;

  Contest(const Problem& problem, const MeasureOptions& options, const Graph* prepared_by,
          const Memory* prepared)
      : graph(problem.build()),
        memory(graph, problem, options.seed),
        ours(graph, problem, taken(prepared_by, prepared).pointers(), Device::cpu(),
             plan_request_of(options)) {}
  void find_peers(const Problem& problem, bool user, bool best) {
    const PeerProblem asked{graph, memory.pointers(), problem.constants};
    if (user) peer = fastest_peer(asked, PeerLayouts::user);
    if (best) peer_best = fastest_peer(asked, PeerLayouts::best);
  }

 private:
  // Constants need their values before the plan is compiled.
  const Memory& taken(const Graph* prepared_by, const Memory* prepared) {
    if (prepared) memory.take(graph, *prepared_by, *prepared);
    return memory;
  }
};

// Interleaves the samples of all sides and of the roofline calibration, in alternating order, so
// that no side gains from another's cache contents or from a change of clock frequency.
void time_all(const Contest& contest, const Contest* alone, const MeasureOptions& options,
              Measurement& result) {
  const auto side_of = [](Peer* peer) {
    return peer ? std::make_unique<Side>([peer] { peer->run(); }, nullptr) : nullptr;
  };
  const auto ours = std::make_unique<Side>([&] { contest.ours.run(); }, nullptr);
  const auto ours_alone =
      alone ? std::make_unique<Side>([alone] { alone->ours.run(); }, nullptr) : nullptr;
  const auto peer = side_of(contest.peer.get()), peer_best = side_of(contest.peer_best.get()),
             peer_alone = side_of(alone ? alone->peer.get() : nullptr);
  const CopyCalibration copy(result.traffic);
  std::vector<double> peaks, copies;

  std::vector<std::function<void()>> turns;
  for (const auto* side : {&ours, &peer, &ours_alone, &peer_alone, &peer_best})
    if (*side) turns.emplace_back([side] { (*side)->sample(); });
  turns.emplace_back([&] { peaks.push_back(multiply_add_rate()); });
  turns.emplace_back([&] { copies.push_back(copy.rate()); });

  const Clock::time_point start = Clock::now();
  while (result.samples < options.min_samples || seconds_since(start) < options.seconds) {
    for (const auto& turn : turns) turn();
    std::reverse(turns.begin(), turns.end());
    ++result.samples;
  }
  result.ours = ours->median_seconds();
  result.peer = median_of(peer);
  result.peer_best = median_of(peer_best);
  result.alone = median_of(ours_alone);
  result.peer_alone = median_of(peer_alone);
  result.peak = median(peaks) * (is_int8(contest.graph) ? int8_ops_per_f32_op() : 1);
  result.copy_speed = median(copies);
}

}  // namespace

std::optional<double> Measurement::overhead() const {
  return alone ? std::optional(ours / *alone - 1) : std::nullopt;
}

std::optional<double> Measurement::peer_overhead() const {
  return peer && peer_alone ? std::optional(*peer / *peer_alone - 1) : std::nullopt;
}

double Measurement::roofline() const {
  return std::max(peak > 0 ? arithmetic / peak : 0, copy_speed > 0 ? traffic / copy_speed : 0);
}

Measurement measure(const Case& problem, const MeasureOptions& options,
                    const std::function<void(const std::string&)>& progress) {
  if (options.gpu) return measure_on_gpu(problem, options, progress);
  Measurement result;
  result.name = problem.name;

  progress("filling");
  std::optional<Contest> preparation;
  if (problem.prepare) {
    preparation.emplace(*problem.prepare, options, nullptr, nullptr);
    preparation->ours.run();
  }
  Contest contest(problem.problem, options, preparation ? &preparation->graph : nullptr,
                  preparation ? &preparation->memory : nullptr);
  preparation.reset();
  std::optional<Contest> alone;
  if (problem.alone) alone.emplace(*problem.alone, options, nullptr, nullptr);
  result.arithmetic = arithmetic(contest.graph);
  result.traffic = traffic(contest.graph);
  const EnginesUsed used = engines_used(contest.ours.plan().inspect());
  result.engine = used.engines;
  result.config = used.configs;
  result.kernels = used.regions;

  progress("choosing oneDNN's algorithm and layouts");
  contest.find_peers(problem.problem, options.user_layout, options.best_layout);
  if (alone) alone->find_peers(*problem.alone, options.user_layout, false);
  if (contest.peer) result.peer_implementation = contest.peer->description();
  if (contest.peer_best) result.peer_best_implementation = contest.peer_best->description();

  progress("checking");
  contest.ours.run();
  Peer* judge = contest.peer ? contest.peer.get() : contest.peer_best.get();
  if (judge) {
    judge->start();
    judge->run();
    judge->finish();
  }
  const Verdict verdict = check(contest.graph, contest.memory, judge, options.oracle);
  result.ok = verdict.ok;
  result.check = verdict.text;
  if (!result.ok) return result;

  progress("timing");
  time_all(contest, alone ? &*alone : nullptr, options, result);
  return result;
}

}  // namespace ashlar::bench

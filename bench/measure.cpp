#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/check.hpp>
#include <ashlar/plan.hpp>
#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "onednn_peer.hpp"

namespace ashlar::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::align_val_t kAlignment{4096};
// A sample is at least this long, so that the clock and the call do not show in it.
constexpr double kLeastSample = 200e-6;
// The reference does some 1e8 operations per second.
constexpr double kQuickForNaive = 1e8;

struct Free {
  void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

Buffer allocate(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  return Buffer(static_cast<std::byte*>(::operator new(size, kAlignment)));
}

// The memory a graph runs on, inputs filled with seeded values.
class Memory {
 public:
  Memory(const Graph& graph, std::uint64_t seed) {
    for (const TensorId id : graph.bound_tensors()) {
      const Tensor& tensor = graph.tensor(id);
      buffers_.push_back(allocate(byte_size(tensor)));
      pointers_.push_back(buffers_.back().get());
      if (tensor.kind != TensorKind::input) continue;
      const Range range = input_range(tensor);
      fill_random(tensor, pointers_.back(), seed++, range.low, range.high);
    }
  }
  std::span<void* const> pointers() const { return pointers_; }

 private:
  std::vector<Buffer> buffers_;
  std::vector<void*> pointers_;
};

class Runner {
 public:
  Runner(const Graph& graph, const CompileOptions& options, const Memory& memory)
      : plan_(compile(graph, Device::cpu(), options)),
        memory_(memory),
        workspace_(allocate(plan_.workspace_size())) {}
  void run() const { plan_.run(memory_.pointers(), workspace_.get()); }
  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
  const Memory& memory_;
  Buffer workspace_;
};

// How far two correct results may lie apart, as a share of the value plus the typical value: a few
// roundings of the result and of sums as long as those measured here.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f32: return 1e-4;
    case DType::bf16: return 0x1p-7;
    default: return 0;
  }
}

struct Agreement {
  bool complete = true;  // oneDNN gave every output
  double worst = 0;      // largest difference, in units of the tolerance
};

// Both sides use the tensor's layout without gaps, so elements are compared as they lie.
double worst_difference(const Tensor& tensor, const void* ours, const void* theirs) {
  Tensor flat = tensor;
  const std::int64_t count = element_count(tensor.dims);
  flat.dims = {count};
  flat.strides = {1};
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = read_element(flat, theirs, i);
    squares += value * value;
  }
  const double typical = std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(count, 1)));
  double worst = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = read_element(flat, theirs, i);
    const double difference = std::abs(read_element(flat, ours, i) - value);
    if (difference == 0) continue;
    const double share = difference / (tolerance(tensor.dtype) * (std::abs(value) + typical));
    if (!(share <= worst)) worst = std::isnan(share) ? HUGE_VAL : share;
  }
  return worst;
}

Agreement agreement(const Graph& graph, const Memory& memory, const Peer& peer) {
  Agreement result;
  const std::vector<TensorId> tensors = graph.bound_tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = graph.tensor(tensors[i]);
    if (tensor.kind != TensorKind::output) continue;
    const void* theirs = peer.output(tensors[i]);
    if (!theirs) {
      result.complete = false;
      continue;
    }
    result.worst = std::max(result.worst, worst_difference(tensor, memory.pointers()[i], theirs));
  }
  return result;
}

void check_with_oracle(const Graph& graph, const Memory& memory, Measurement& result) {
  const std::vector<const void*> readable(memory.pointers().begin(), memory.pointers().end());
  const std::vector<TensorId> tensors = graph.bound_tensors();
  result.ok = true;
  double worst = 0;
  for (const Expected& expected : evaluate_reference(graph, readable)) {
    const auto position =
        std::find(tensors.begin(), tensors.end(), expected.tensor) - tensors.begin();
    const Comparison comparison =
        compare(graph.tensor(expected.tensor),
                memory.pointers()[static_cast<std::size_t>(position)], expected);
    if (comparison.worst_error > 0)
      worst = std::max(worst, comparison.worst_error / comparison.worst_bound);
    if (comparison.ok) continue;
    result.ok = false;
    result.check = "WRONG: " + comparison.summary;
    return;
  }
  result.check = fmt::format("oracle, worst error {:.2g} of its bound", worst);
}

// oneDNN's outputs serve as the check where they agree; else, and where some are missing, the
// oracle decides.
void check(const Graph& graph, const Memory& memory, const Peer* peer, bool oracle,
           Measurement& result) {
  if (peer && !oracle) {
    const Agreement found = agreement(graph, memory, *peer);
    if (found.complete && found.worst <= 1) {
      result.ok = true;
      result.check = fmt::format("oneDNN, worst difference {:.2g} of the tolerance", found.worst);
      return;
    }
  }
  check_with_oracle(graph, memory, result);
}

// Runs per sample such that a sample is long enough.
template <class Run>
std::int64_t repeats_for(Run&& run) {
  const Clock::time_point start = Clock::now();
  run();
  return std::max<std::int64_t>(1, std::llround(std::ceil(kLeastSample / seconds_since(start))));
}

template <class Run>
double sample(Run&& run, std::int64_t repeats) {
  const Clock::time_point start = Clock::now();
  for (std::int64_t i = 0; i < repeats; ++i) run();
  return seconds_since(start) / static_cast<double>(repeats);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Sample by sample in turn, and the side that goes first changes, so that neither gains from what
// the other left in the caches or from a slow moment of the machine.
void time_both(const Runner& ours, Peer* peer, const MeasureOptions& options, Measurement& result) {
  const auto run_ours = [&] { ours.run(); };
  const auto run_peer = [&] { peer->run(); };
  const std::int64_t our_repeats = repeats_for(run_ours);
  const std::int64_t peer_repeats = peer ? repeats_for(run_peer) : 0;
  std::vector<double> our_times, peer_times;
  const Clock::time_point start = Clock::now();
  while (std::cmp_less(our_times.size(), options.least) || seconds_since(start) < options.seconds) {
    const bool peer_first = our_times.size() % 2 == 1;
    if (peer && peer_first) peer_times.push_back(sample(run_peer, peer_repeats));
    our_times.push_back(sample(run_ours, our_repeats));
    if (peer && !peer_first) peer_times.push_back(sample(run_peer, peer_repeats));
  }
  result.samples = static_cast<std::int64_t>(our_times.size());
  result.ours = median(our_times);
  result.ours_least = *std::min_element(our_times.begin(), our_times.end());
  if (!peer) return;
  result.peer = median(peer_times);
  result.peer_least = *std::min_element(peer_times.begin(), peer_times.end());
}

std::string engine_of(const Plan& plan) {
  const std::string text = plan.explain();
  std::string found;
  for (const EngineInfo& engine : engines(DeviceKind::cpu)) {
    const std::size_t at = text.find(engine.id);
    if (at != std::string::npos && (found.empty() || at < text.find(found))) found = engine.id;
  }
  return found;
}

}  // namespace

Measurement measure(const Case& problem, const MeasureOptions& options,
                    const std::function<void(const std::string&)>& progress) {
  const Graph graph = problem.build();
  Measurement result;
  result.name = problem.name;
  result.arithmetic = arithmetic(graph);
  result.traffic = traffic(graph);

  progress("filling");
  const Memory memory(graph, options.seed);
  const Runner ours(graph, {}, memory);
  result.engine = engine_of(ours.plan());
  progress("choosing oneDNN's layouts");
  const std::unique_ptr<Peer> peer = fastest_peer(graph, memory.pointers());
  if (peer) {
    result.peer_implementation = peer->description();
    result.peer_reference = peer->reference();
  }

  progress("checking");
  ours.run();
  if (peer) peer->run();
  check(graph, memory, peer.get(), options.oracle, result);
  if (!result.ok) return result;

  progress("timing");
  time_both(ours, peer.get(), options, result);
  if (options.naive && std::max(result.arithmetic, result.traffic / 4) <= kQuickForNaive) {
    progress("timing the reference engine");
    const Runner naive(graph, {.reference_only = true}, memory);
    result.naive = sample([&] { naive.run(); }, 1);
  }
  return result;
}

}  // namespace ashlar::bench

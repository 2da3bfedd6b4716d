#include "plan/tune.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>

namespace ashlar {

namespace {

constexpr double kHopeless = 20;  // times the best estimate
constexpr double kSecondsPerCandidate = 0.02;
constexpr int kMostRuns = 50, kLeastRuns = 3;

struct FreeAligned {
  void operator()(std::byte* memory) const {
    ::operator delete (memory, std::align_val_t{kWorkspaceAlignment});
  }
};
using AlignedMemory = std::unique_ptr<std::byte, FreeAligned>;

// Zeros: indices and lengths of zero are valid everywhere, and no arithmetic depends on values.
AlignedMemory zeros(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(std::max(bytes, kWorkspaceAlignment));
  AlignedMemory memory(
      static_cast<std::byte*>(::operator new (size, std::align_val_t{kWorkspaceAlignment})));
  std::fill_n(memory.get(), size, std::byte{0});
  return memory;
}

// The tensors of one region, each with memory of its own.
class Bench {
 public:
  Bench(const LoweredGraph& lowered, const Region& region) : lowered_(lowered), region_(region) {
    const std::size_t count = lowered.graph.tensors().size();
    locations_.resize(count);
    for (const std::vector<TensorId>* ids : {&region.reads, &region.writes})
      for (const TensorId id : *ids) {
        Location& location = locations_[static_cast<std::size_t>(id)];
        if (location.kind != Location::Kind::none) continue;
        memory_.push_back(zeros(byte_size(lowered.graph.tensor(id))));
        location = {Location::Kind::bound, static_cast<std::int64_t>(pointers_.size()), nullptr};
        pointers_.push_back(memory_.back().get());
      }
  }

  // The least of a few runs, after one that is not counted.
  double seconds(const Candidate& candidate, const DeviceProps& device) const {
    using Clock = std::chrono::steady_clock;
    const std::unique_ptr<Kernel> kernel =
        candidate.engine->build(lowered_.graph, region_, candidate.config, device);
    const AlignedMemory scratch = zeros(kernel->scratch_book().total_bytes());
    KernelContext context(locations_, pointers_, nullptr, nullptr);
    context.set_scratch(scratch.get());
    kernel->run(context);
    double best = 1e30, total = 0;
    for (int run = 0; run < kMostRuns && (run < kLeastRuns || total < kSecondsPerCandidate);
         ++run) {
      const Clock::time_point start = Clock::now();
      kernel->run(context);
      const double took = std::chrono::duration<double>(Clock::now() - start).count();
      best = std::min(best, took);
      total += took;
    }
    return best;
  }

 private:
  const LoweredGraph& lowered_;
  const Region& region_;
  std::vector<Location> locations_;
  std::vector<AlignedMemory> memory_;
  std::vector<void*> pointers_;
};

}  // namespace

Choice tune(const LoweredGraph& lowered, const Region& region, EngineTable table,
            const DeviceProps& device, const CompileOptions& options) {
  Ranking ranking = rank(region, table, device, options);
  std::vector<Candidate>& candidates = ranking.candidates;
  if (candidates.size() < 2 || candidates[0].engine->id() == options.engine)
    return select(region, table, device, options);
  const Bench bench(lowered, region);
  Choice choice;
  choice.attempts = std::move(ranking.attempts);
  const double hopeless = kHopeless * candidates[0].seconds;
  for (Candidate& candidate : candidates) {
    const bool last_resort = is_last_resort(candidate.engine->kind());
    if (choice.engine && (last_resort || candidate.seconds > hopeless)) continue;
    const double seconds = bench.seconds(candidate, device);
    for (Attempt& attempt : choice.attempts)
      if (attempt.engine == candidate.engine)
        attempt.outcome += fmt::format(", {:.3g} us measured", seconds * 1e6);
    if (choice.engine && seconds >= choice.seconds) continue;
    choice.engine = candidate.engine;
    choice.config = std::move(candidate.config);
    choice.seconds = seconds;
  }
  return choice;
}

}  // namespace ashlar

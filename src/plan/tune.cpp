#include "plan/tune.hpp"

#include <algorithm>
#include <memory>

#include "plan/backend.hpp"

namespace ashlar {

namespace {

constexpr double kHopeless = 20;  // times the best estimate
constexpr double kSecondsPerCandidate = 0.02;
constexpr int kMostRuns = 50, kLeastRuns = 3;

// Zeros: indices and lengths of zero are valid everywhere, and no arithmetic depends on values.
OwnedMemory zeros(const DeviceProps& device, std::int64_t bytes) {
  OwnedMemory memory(device, bytes);
  backend(device.kind).fill(device, memory.data(), std::byte{0}, bytes, nullptr);
  return memory;
}

// The tensors of one region, each with memory of its own.
class Bench {
 public:
  Bench(const LoweredGraph& lowered, const Region& region, const DeviceProps& device)
      : lowered_(lowered),
        region_(region),
        device_(device),
        before_(backend(device.kind).marker(device)),
        after_(backend(device.kind).marker(device)) {
    const std::size_t count = lowered.graph.tensors().size();
    locations_.resize(count);
    for (const std::vector<TensorId>* ids : {&region.reads, &region.writes})
      for (const TensorId id : *ids) {
        Location& location = locations_[static_cast<std::size_t>(id)];
        if (location.kind != Location::Kind::none) continue;
        const Tensor& tensor = lowered.graph.tensor(id);
        memory_.push_back(zeros(home_of(tensor, device), byte_size(tensor)));
        location = {Location::Kind::bound, static_cast<std::int64_t>(pointers_.size()), nullptr};
        pointers_.push_back(memory_.back().data());
      }
  }

  // The least of a few runs, after one that is not counted.
  double seconds(const Candidate& candidate) const {
    const std::unique_ptr<Kernel> kernel =
        candidate.engine->build(lowered_.graph, region_, candidate.config, device_);
    const OwnedMemory scratch = zeros(device_, kernel->scratch_book().total_bytes());
    KernelContext context(locations_, pointers_, nullptr, nullptr);
    context.set_scratch(scratch.data());
    kernel->run(context);
    double best = 1e30, total = 0;
    for (int run = 0; run < kMostRuns && (run < kLeastRuns || total < kSecondsPerCandidate);
         ++run) {
      before_->record(nullptr);
      kernel->run(context);
      after_->record(nullptr);
      const double took = after_->seconds_since(*before_);
      best = std::min(best, took);
      total += took;
    }
    return best;
  }

 private:
  // Scalars are read by the host.
  static DeviceProps home_of(const Tensor& tensor, const DeviceProps& device) {
    return tensor.kind == TensorKind::scalar || tensor.kind == TensorKind::constant ? DeviceProps{}
                                                                                    : device;
  }

  const LoweredGraph& lowered_;
  const Region& region_;
  const DeviceProps& device_;
  std::unique_ptr<Marker> before_, after_;
  std::vector<Location> locations_;
  std::vector<OwnedMemory> memory_;
  std::vector<void*> pointers_;
};

}  // namespace

std::vector<Candidate> contenders(std::vector<Candidate> candidates,
                                  const CompileOptions& options) {
  if (candidates.empty()) return candidates;
  if (candidates[0].engine->id() == options.engine) candidates.resize(1);
  const double hopeless = kHopeless * candidates[0].seconds;
  const auto is_hopeless = [&](const Candidate& candidate) {
    return is_last_resort(candidate.engine->kind()) || candidate.seconds > hopeless;
  };
  candidates.erase(std::remove_if(candidates.begin() + 1, candidates.end(), is_hopeless),
                   candidates.end());
  return candidates;
}

Choice tune(const LoweredGraph& lowered, const Region& region, EngineTable table,
            const DeviceProps& device, const CompileOptions& options) {
  Ranking ranking = rank(region, table, device, options);
  std::vector<Candidate> candidates = contenders(std::move(ranking.candidates), options);
  if (candidates.size() < 2) return select(region, table, device, options);
  const Bench bench(lowered, region, device);
  Choice choice;
  choice.attempts = std::move(ranking.attempts);
  for (Candidate& candidate : candidates) {
    const double seconds = bench.seconds(candidate);
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

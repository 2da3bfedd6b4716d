#include "plan/tune.hpp"

#include <algorithm>
#include <memory>

#include "base/element.hpp"
#include "plan/backend.hpp"
#include "plan/tuning_record.hpp"

namespace ashlar {

namespace {

constexpr double kHopeless = 20;  // times the best estimate
constexpr double kSecondsPerCandidate = 0.02;
constexpr int kMostRuns = 50, kLeastRuns = 3;

constexpr std::int64_t kPatternBytes = 4 << 20;

// Zeros: indices and lengths of zero are valid everywhere.
OwnedMemory zeros(const DeviceProps& device, std::int64_t bytes) {
  OwnedMemory memory(device, bytes);
  backend(device.kind).fill(device, memory.data(), std::byte{0}, bytes, nullptr);
  return memory;
}

// Numbers between -1 and 1, repeated: units that multiply zeros draw less power and run faster.
void fill_with_numbers(const DeviceProps& device, DType dtype, const OwnedMemory& memory) {
  const std::int64_t bytes = std::min(kPatternBytes, memory.bytes());
  std::vector<std::byte> pattern(static_cast<std::size_t>(bytes));
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < bytes * 8 / bit_width(dtype); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    store_element(dtype, pattern.data(), i, static_cast<double>(state >> 40) / (1 << 23) - 1);
  }
  for (std::int64_t at = 0; at < memory.bytes(); at += bytes)
    backend(device.kind)
        .upload(device, memory.data() + at, pattern.data(), std::min(bytes, memory.bytes() - at),
                nullptr);
}

// The tensors of one region, each with memory of its own.
class Bench {
 public:
  Bench(const LoweredGraph& lowered, const Region& region, const DeviceProps& device)
      : lowered_(lowered),
        region_(region),
        device_(device),
        before_(backend(device.kind).marker(device)),
        after_(backend(device.kind).marker(device)),
        flushed_(device, device.kind == DeviceKind::cuda ? 2 * device.l2_bytes : 0) {
    const std::size_t count = lowered.graph.tensors().size();
    locations_.resize(count);
    for (const std::vector<TensorId>* ids : {&region.reads, &region.writes})
      for (const TensorId id : *ids) {
        Location& location = locations_[static_cast<std::size_t>(id)];
        if (location.kind != Location::Kind::none) continue;
        const Tensor& tensor = lowered.graph.tensor(id);
        const DeviceProps home = home_of(tensor, device);
        memory_.push_back(zeros(home, byte_size(tensor)));
        if (is_floating(tensor.dtype) && ids == &region.reads && byte_size(tensor) > 0)
          fill_with_numbers(home, tensor.dtype, memory_.back());
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
      flush();
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
  // Nothing of the run before is left in a GPU's cache, as for a kernel among others.
  void flush() const {
    if (flushed_.bytes() > 0)
      backend(device_.kind).fill(device_, flushed_.data(), std::byte{0}, flushed_.bytes(), nullptr);
  }
  // Scalars are read by the host.
  static DeviceProps home_of(const Tensor& tensor, const DeviceProps& device) {
    return tensor.kind == TensorKind::scalar || tensor.kind == TensorKind::constant ? DeviceProps{}
                                                                                    : device;
  }

  const LoweredGraph& lowered_;
  const Region& region_;
  const DeviceProps& device_;
  std::unique_ptr<Marker> before_, after_;
  OwnedMemory flushed_;
  std::vector<Location> locations_;
  std::vector<OwnedMemory> memory_;
  std::vector<void*> pointers_;
};

}  // namespace

std::string Trial::config_text() const { return Config{knobs, {}, 0, {}}.to_text(); }

std::vector<Candidate> contenders(std::vector<Candidate> candidates,
                                  const CompileOptions& options) {
  if (candidates.empty()) return candidates;
  const bool wished = candidates[0].engine->id() == options.engine;
  const double hopeless = kHopeless * candidates[0].seconds;
  const auto is_hopeless = [&](const Candidate& candidate) {
    if (wished) return candidate.engine->id() != options.engine;
    return is_last_resort(candidate.engine->kind()) || candidate.seconds > hopeless;
  };
  candidates.erase(std::remove_if(candidates.begin() + 1, candidates.end(), is_hopeless),
                   candidates.end());
  return candidates;
}

RegionTrials trials_of(const LoweredGraph& lowered, const Region& region,
                       const std::vector<Candidate>& contenders) {
  RegionTrials result;
  result.region = region.to_text(lowered.graph);
  for (const Candidate& one : contenders)
    result.trials.push_back({std::string(one.engine->id()), one.config.knobs, one.seconds});
  return result;
}

RegionTrials time_contenders(const LoweredGraph& lowered, const Region& region,
                             const std::vector<Candidate>& contenders, const DeviceProps& device,
                             const TuneRequest& request) {
  RegionTrials result = trials_of(lowered, region, contenders);
  std::vector<Trial>& trials = result.trials;
  const std::string key = tuning_key(lowered, region, device, result);
  if (const auto found = recall(key, trials.size()); found && !request.again) {
    result.best = found->best;
    result.remembered = true;
    trials[found->best].measured = found->seconds;
    return result;
  }
  const std::size_t count = request.most > 0
                                ? std::min(trials.size(), static_cast<std::size_t>(request.most))
                                : trials.size();
  const Bench bench(lowered, region, device);
  for (std::size_t i = 0; i < count; ++i) {
    if (request.progress)
      request.progress(fmt::format("{}, {} of {}: {} {}", result.region, i + 1, count,
                                   trials[i].engine, trials[i].config_text()));
    try {
      trials[i].measured = bench.seconds(contenders[i]);
    } catch (const Error& error) {
      // One that cannot be built must not keep the others from being chosen.
      trials[i].failure = error.what();
      continue;
    }
    const std::optional<double>& least = trials[result.best].measured;
    if (!least || *trials[i].measured < *least) result.best = i;
  }
  // Not worth a record: nothing was compared, or not all that could be.
  if (trials[result.best].measured && count == trials.size())
    remember(key, {result.best, *trials[result.best].measured});
  return result;
}

Choice tune(const LoweredGraph& lowered, const Region& region, EngineTable table,
            const DeviceProps& device, const CompileOptions& options) {
  Ranking ranking = rank(region, table, device, options);
  std::vector<Candidate> candidates = contenders(std::move(ranking.candidates), options);
  if (candidates.size() < 2) return select(region, table, device, options);
  const RegionTrials timed = time_contenders(lowered, region, candidates, device, {options});
  Choice choice;
  choice.attempts = std::move(ranking.attempts);
  for (Attempt& attempt : choice.attempts) {
    // Of all its configurations the fastest.
    std::optional<double> least;
    for (const Trial& trial : timed.trials)
      if (attempt.engine->id() == trial.engine && trial.measured)
        least = std::min(*trial.measured, least.value_or(*trial.measured));
    if (least)
      attempt.outcome +=
          fmt::format(", {:.3g} us measured{}", *least * 1e6, timed.remembered ? " earlier" : "");
  }
  Candidate& best = candidates[timed.best];
  choice.engine = best.engine;
  choice.config = std::move(best.config);
  choice.seconds = timed.trials[timed.best].measured.value_or(best.seconds);
  return choice;
}

}  // namespace ashlar

// RegionTimer: timing of candidates with cold caches or back to back.
#include "plan/region_timer.hpp"

#include <algorithm>

#include "base/element.hpp"

namespace ashlar {

namespace {

constexpr double kSecondsPerCandidate = 0.02;
constexpr int kMaxRuns = 50, kMinRuns = 3;

constexpr std::int64_t kPatternBytes = 4 << 20;

// Number of back-to-back runs on distinct tensors: enough to evict a run's tensors from all caches
// before they are used again, within a memory budget.
constexpr std::int64_t kRowBytes = 256 << 20, kMaxRowBytes = std::int64_t{4} << 30;
constexpr std::int64_t kMinBackToBack = 8, kMaxBackToBack = 32;
std::int64_t runs_back_to_back(std::int64_t bytes_of_one) {
  const std::int64_t bytes = std::max<std::int64_t>(bytes_of_one, 1);
  return std::clamp<std::int64_t>(
      std::clamp((kRowBytes + bytes - 1) / bytes, kMinBackToBack, kMaxBackToBack), 1,
      std::max<std::int64_t>(kMaxRowBytes / bytes, 1));
}

// Values between -1 and 1: with zeros the device would draw less power and clock higher.
std::vector<std::byte> numbers(DType dtype, std::int64_t bytes) {
  std::vector<std::byte> pattern(static_cast<std::size_t>(bytes));
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < bytes * 8 / bit_width(dtype); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    store_element(dtype, pattern.data(), i, static_cast<double>(state >> 40) / (1 << 23) - 1);
  }
  return pattern;
}

}  // namespace

RegionTimer::RegionTimer(const LoweredGraph& lowered, const Region& region, const Backend& backend,
                         const DeviceProps& device, const CompileOptions& options)
    : lowered_(lowered),
      region_(region),
      backend_(backend),
      device_(device),
      back_to_back_(options.tune_back_to_back),
      before_(backend.marker(device)),
      after_(backend.marker(device)),
      flushed_(backend, device, device.kind == DeviceKind::cuda ? 2 * device.l2_bytes : 0) {
  place_tensors();
  std::int64_t bytes = 0;
  for (const TensorId id : tensors_) bytes += byte_size(lowered.graph.tensor(id));
  pointers_.resize(static_cast<std::size_t>(back_to_back_ ? runs_back_to_back(bytes) : 1));
  for (const TensorId id : tensors_) add_memory(id);
  for (const auto& [name, given] : options.constants) note_constant(name);
}

double RegionTimer::seconds(const Candidate& candidate) const {
  const std::unique_ptr<Kernel> kernel =
      candidate.engine->build(lowered_.graph, region_, candidate.config, device_);
  if (!constants_.empty())
    kernel->keep_constants(KernelContext(locations_, constants_, nullptr, nullptr));
  const OwnedMemory scratch = zeros(kernel->scratch_layout().total_bytes());
  const auto run_all = [&](void* stream) {
    for (const std::vector<void*>& pointers : pointers_) {
      KernelContext context(locations_, pointers, nullptr, stream);
      context.set_scratch(scratch.data());
      kernel->run(context);
    }
  };
  run_all(nullptr);
  const auto recording = back_to_back_ ? backend_.recording(device_, run_all) : nullptr;
  double best = 1e30, total = 0;
  for (int run = 0; run < kMaxRuns && (run < kMinRuns || total < kSecondsPerCandidate); ++run) {
    flush();
    before_->record(nullptr);
    if (recording)
      recording->replay(nullptr);
    else
      run_all(nullptr);
    after_->record(nullptr);
    const double took = after_->seconds_since(*before_);
    best = std::min(best, took);
    total += took;
  }
  return best / static_cast<double>(pointers_.size());
}

// Binds the tensors the region reads, then those it writes.
void RegionTimer::place_tensors() {
  locations_.resize(lowered_.graph.tensors().size());
  for (const std::vector<TensorId>* ids : {&region_.reads, &region_.writes})
    for (const TensorId id : *ids) {
      Location& location = locations_[static_cast<std::size_t>(id)];
      if (location.kind != Location::Kind::none) continue;
      location = {Location::Kind::bound, static_cast<std::int64_t>(tensors_.size()), nullptr};
      tensors_.push_back(id);
    }
}
// Zero-filled memory: indices and lengths of zero are always valid.
OwnedMemory RegionTimer::zeros(std::int64_t bytes) const {
  OwnedMemory memory(backend_, device_, bytes);
  backend_.fill(device_, memory.data(), std::byte{0}, bytes, nullptr);
  return memory;
}
void RegionTimer::add_memory(TensorId id) {
  const Tensor& tensor = lowered_.graph.tensor(id);
  if (tensor.kind == TensorKind::scalar || tensor.kind == TensorKind::constant) {
    for (std::vector<void*>& pointers : pointers_) {
      scalars_.push_back(std::make_unique<std::uint64_t>(0));
      if (is_floating(tensor.dtype)) store_element(tensor.dtype, scalars_.back().get(), 0, 0.5);
      pointers.push_back(scalars_.back().get());
    }
    return;
  }
  const bool is_read =
      std::find(region_.reads.begin(), region_.reads.end(), id) != region_.reads.end();
  const std::int64_t bytes = byte_size(tensor);
  const std::vector<std::byte> pattern = is_floating(tensor.dtype) && is_read && bytes > 0
                                             ? numbers(tensor.dtype, std::min(kPatternBytes, bytes))
                                             : std::vector<std::byte>();
  const auto step = static_cast<std::int64_t>(pattern.size());
  for (std::vector<void*>& pointers : pointers_) {
    memory_.push_back(zeros(bytes));
    std::byte* const memory = memory_.back().data();
    if (step > 0)
      for (std::int64_t at = 0; at < bytes; at += step)
        backend_.upload(device_, memory + at, pattern.data(), std::min(step, bytes - at), nullptr);
    pointers.push_back(memory);
  }
}
// Registers a constant input if the region reads it: all runs share the same memory contents.
void RegionTimer::note_constant(const std::string& name) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (lowered_.graph.tensor(tensors_[i]).name != name) continue;
    constants_.resize(tensors_.size(), nullptr);
    constants_[i] = pointers_[0][i];
  }
}
// Evicts the previous run from the GPU's L2 cache.
void RegionTimer::flush() const {
  if (flushed_.bytes() > 0)
    backend_.fill(device_, flushed_.data(), std::byte{0}, flushed_.bytes(), nullptr);
}

}  // namespace ashlar

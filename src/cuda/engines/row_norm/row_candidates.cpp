#include "cuda/engines/row_norm/row_layout.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cuda/engines/row_norm/row_text.hpp"
#include "cuda/engines/row_norm/tuned_row_layouts.hpp"

namespace ashlar::cuda {

namespace {

using Kind = RowProblem::Kind;

constexpr int kLanes = 32, kMaxThreads = 1024;

// Registers per thread at `warps` resident warps per SM, which its four sub-partitions share.
int register_limit(int warps) {
  constexpr int kOfPart = 16384, kMost = 240;
  const int per_part = (warps + 3) / 4;
  return std::min(kOfPart / (per_part * kLanes) / 8 * 8, kMost);
}
int resident_threads(const DeviceProps& device) {
  switch (device.compute_capability) {
    case 75: return 1024;
    case 80:
    case 90:
    case 100:
    case 103: return 2048;
    default: return 1536;
  }
}

// Registers that hold `elements` of an operand in a thread: raw as in memory where the prologue is
// cheap.
double held_registers(const RowProblem& problem, const PointwiseProgram& program,
                      std::int64_t elements) {
  if (program.empty()) return 0;
  std::int64_t bytes = staged_bytes(problem, program);
  if (bytes == 0) bytes = problem.register_bytes();
  return static_cast<double>(elements * bytes) / 4.0;
}

// Estimated register use; tests check that no configuration spills.
double registers_of(const RowProblem& problem, const RowLayout& layout) {
  constexpr double kAddresses = 8, kPerRow = 6, kPerNextRow = 2, kForMeans = 8, kForPipeline = 6;
  constexpr double kForCluster = 2, kForUneven = 8, kForBias = 0.35;
  constexpr double kPerChunk = 4;  // for operands loaded just in time
  // Loads in flight while earlier ones are consumed: per warp-wide row, else per element.
  constexpr double kForLoads = 18, kPerLoad = 0.6;
  const std::int64_t elements = std::int64_t{layout.chunks} * layout.vector;
  const double words = static_cast<double>(problem.register_bytes()) / 4.0;
  const bool in_pipeline = layout.ahead == RowLayout::kPipeline;
  const double row = in_pipeline ? held_registers(problem, problem.first, layout.vector) +
                                       held_registers(problem, problem.second, layout.vector)
                                 : held_registers(problem, problem.first, elements) +
                                       held_registers(problem, problem.second, elements);
  double total = kAddresses + layout.vector * words + (problem.is_centred ? kForMeans : 0);
  total += layout.unroll * (kPerRow + row);
  if (layout.ahead == 1) total += layout.unroll * (kPerNextRow + row);
  if (in_pipeline) total += layout.unroll * kPerNextRow + kForPipeline;
  if (layout.slices > 1) total += kForCluster;
  if (layout.row_threads * layout.slices * elements != problem.length) total += kForUneven;
  if (in_pipeline && layout.parameters_in_registers && !problem.bias.empty())
    total += kForBias * static_cast<double>(elements);
  if (layout.parameters_in_registers)
    total += held_registers(problem, problem.scale, elements) +
             held_registers(problem, problem.bias, elements);
  else if (!problem.scale.empty())
    total += kPerChunk;
  // The compiler keeps some common subexpressions of long rows in registers.
  constexpr double kForExponents = 8, kForProducts = 0.5;
  constexpr std::int64_t kFewElements = 32;
  if (problem.kind == Kind::softmax_forward && (layout.ahead > 0 || layout.slices > 1))
    total += kForExponents;
  if (problem.kind == Kind::softmax_backward && elements > kFewElements)
    total += kForProducts * static_cast<double>(elements);
  if (problem.materialises_prologue)
    total += layout.row_threads == kLanes ? kForLoads : kPerLoad * static_cast<double>(elements);
  if (layout.shared_sums)
    total += kPerChunk;
  else
    total += static_cast<double>(elements) * words * problem.column_sums();
  return total;
}

// Bytes read per row.
double row_bytes(const RowProblem& problem) {
  double bits = 0;
  for (const PointwiseProgram* program : {&problem.first, &problem.second})
    for (const auto& step : program->steps)
      if (step.kind == PointwiseProgram::Step::Kind::load) bits += bit_width(step.view.dtype);
  return bits / 8.0 * static_cast<double>(problem.length);
}

// The fewest threads that hold `length` elements in `chunks` vectors each; 0: more than a CTA has.
int threads_for(std::int64_t length, int vector, int chunks) {
  const std::int64_t needed =
      (length + std::int64_t{vector} * chunks - 1) / (std::int64_t{vector} * chunks);
  if (needed > kMaxThreads) return 0;
  if (needed <= kLanes) return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(needed)));
  return static_cast<int>((needed + kLanes - 1) / kLanes * kLanes);
}

// Time of the instructions where a large epilogue is fused, from instruction counts of compiled
// kernels.
double work_seconds(const RowProblem& problem, const DeviceProps& device) {
  constexpr double kPerOperation = 1.2, kOfNorm = 9;  // instructions per element
  constexpr double kBusy = 0.6;                       // fraction of the peak issue rate
  const double per_element = kPerOperation * problem.result.flops_per_element() + kOfNorm;
  return static_cast<double>(problem.rows * problem.length) * per_element /
         (device.flops_f32 / 2 * kBusy);
}

// Expected time: grows with the distance from the layout that was fastest for similar rows.
double expected_seconds(const RowProblem& problem, const RowLayout& layout,
                        const DeviceProps& device, double bytes) {
  constexpr double kReached = 0.92, kPerStep = 0.02;
  const RowGrid grid = grid_of(problem, layout, device);
  const double blocks = static_cast<double>(grid.pieces * problem.sets * layout.slices);
  const double used = std::min(blocks / device.compute_units, 1.0);
  double seconds = bytes / (device.bytes_per_second * kReached * used);
  if (is_compute_bound(problem)) seconds = std::max(seconds, work_seconds(problem, device) / used);
  return seconds * (1.0 + kPerStep * distance(problem, layout, tuned_layout_for(problem)));
}

bool by_seconds(const RowCandidate& a, const RowCandidate& b) { return a.seconds < b.seconds; }

// The best `of_each` layouts of every kind, so that tuning has diverse candidates.
template <class IsAlike>
std::vector<RowCandidate> best_of_each_kind(std::vector<RowCandidate> found, std::size_t most,
                                            std::ptrdiff_t of_each, IsAlike is_alike) {
  std::stable_sort(found.begin(), found.end(), by_seconds);
  std::vector<RowCandidate> kept;
  for (const RowCandidate& candidate : found) {
    const auto is_like = [&](const RowCandidate& other) {
      return is_alike(other.layout, candidate.layout);
    };
    if (kept.size() < most && std::count_if(kept.begin(), kept.end(), is_like) < of_each)
      kept.push_back(candidate);
  }
  return kept;
}

// Enumerates the layouts of a problem that fit the device.
class LayoutSearch {
 public:
  LayoutSearch(const RowProblem& problem, const DeviceProps& device, double bytes)
      : problem_(problem), device_(device), bytes_(bytes) {
    layout_.vector = vector_of(problem);
    // Prologues that are computed at load time stall on the loads: prefetching does not help them.
    const auto only_loads = [&](const PointwiseProgram& program) {
      return program.empty() || staged_bytes(problem, program) > 0;
    };
    can_prefetch_ = only_loads(problem.first) && only_loads(problem.second);
    // cp.async copies at least 4 bytes.
    const auto can_copy = [&](const PointwiseProgram& program) {
      constexpr int kLeastBits = 32;
      for (const int i : raw_loads(program))
        if (bit_width(program.steps[static_cast<std::size_t>(i)].view.dtype) * layout_.vector <
            kLeastBits)
          return false;
      return true;
    };
    constexpr int kAmpere = 80;
    can_pipeline_ = can_prefetch_ && device.compute_capability >= kAmpere &&
                    can_copy(problem.first) && can_copy(problem.second);
  }

  std::vector<RowCandidate> all() {
    for (const int slices : {1, 2, 4, 8}) {
      if (slices > 1 && !can_share(slices)) continue;
      layout_.slices = slices;
      for (const int chunks : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32}) try_chunks(chunks);
    }
    if (found_.empty()) {
      const RowLayout again{.threads = 512,
                            .row_threads = 512,
                            .blocks = 2,
                            .persistent = has_sums_,
                            .vector = layout_.vector};
      found_.push_back({again, 2 * bytes_ / device_.bytes_per_second});
    }
    return std::move(found_);
  }

 private:
  // Whether a cluster may split a row: long rows that divide evenly.
  bool can_share(int slices) const {
    constexpr std::int64_t kLeastLength = 8192;  // elements per CTA
    constexpr int kHopper = 90, kBlackwell = 100;
    const int generation = device_.compute_capability / 10 * 10;
    return (generation == kHopper || generation == kBlackwell) &&
           problem_.length % (slices * layout_.vector) == 0 &&
           problem_.length / slices >= kLeastLength;
  }
  void try_chunks(int chunks) {
    // Elements of a row per thread.
    const int max_elements = problem_.kind == Kind::norm_backward ? 64 : 128;
    if (chunks * layout_.vector > max_elements) return;
    layout_.chunks = chunks;
    const std::int64_t length = problem_.length / layout_.slices;
    layout_.row_threads = threads_for(length, layout_.vector, chunks);
    constexpr int kWholeLine = 8;  // threads that cover a 128-byte line
    if (chunks > 1 && layout_.row_threads < kWholeLine) return;
    if (layout_.row_threads == 0 ||
        (chunks - 1) * std::int64_t{layout_.row_threads} * layout_.vector >= length)
      return;
    const bool is_narrow = layout_.row_threads <= kLanes, is_shared = layout_.slices > 1;
    // One warp reduces the partials of all warps of a row.
    if (is_shared && (is_narrow || layout_.row_threads * layout_.slices > kLanes * kLanes)) return;
    for (int groups = 1; groups * layout_.row_threads <= kMaxThreads; groups *= 2) {
      if (is_shared && groups > 1) break;
      layout_.threads = groups * layout_.row_threads;
      constexpr int kMaxGroups = 8;  // named barriers per CTA
      if (is_narrow ? layout_.threads < 128 || layout_.threads > 512 : groups > kMaxGroups)
        continue;
      for (const int ahead : {0, 1, 2, RowLayout::kPipeline}) {
        // Several groups per CTA pay only where they merge column sums or hide pipeline latency;
        // otherwise more CTAs do the same.
        if (!is_narrow && groups > (has_sums_ ? kMaxGroups : ahead == RowLayout::kPipeline ? 2 : 1))
          continue;
        layout_.ahead = ahead;
        layout_.persistent = has_sums_ || ahead > 0;
        if (ahead > 0 && !(ahead == RowLayout::kPipeline ? can_pipeline_ : can_prefetch_)) continue;
        for (const int unroll : {1, 2, 4}) {
          layout_.unroll = unroll;
          if (unroll == 1 || is_narrow) try_operand_storage();
        }
      }
    }
  }
  // Storage of column sums and parameters. The backward pass needs scale in both passes over a row,
  // so it stays in registers where it fits.
  void try_operand_storage() {
    const bool is_backward = problem_.kind == Kind::norm_backward;
    for (const bool shared_sums : {false, true}) {
      if (shared_sums && (!has_sums_ || layout_.groups() > 1)) continue;
      layout_.shared_sums = shared_sums;
      layout_.parameters_in_registers = true;
      const bool is_found = try_stages();
      layout_.parameters_in_registers = false;
      if (has_parameters_ && !(is_backward && is_found)) try_stages();
    }
  }
  bool try_stages() {
    layout_.stages = 0;
    if (layout_.ahead != RowLayout::kPipeline) return try_blocks();
    bool is_found = false;
    for (const int stages : {2, 3, 4, 6}) {
      layout_.stages = stages;
      is_found = try_blocks() || is_found;
    }
    return is_found;
  }
  // Column sums favour few CTAs per SM, everything else many.
  bool try_blocks() {
    constexpr int kMaxBlocks = 16;
    bool is_found = false;
    for (layout_.blocks = kMaxBlocks; layout_.blocks > 0; --layout_.blocks) {
      if ((is_found && !layout_.persistent) || !fits()) continue;
      is_found = true;
      found_.push_back({layout_, expected_seconds(problem_, layout_, device_, bytes_)});
    }
    return is_found;
  }
  bool fits() const {
    // Static shared memory of block reductions, and the fixed cost per CTA.
    constexpr std::int64_t kOfWarp = 64, kOfBlock = 1 << 10;
    const std::int64_t reductions = kOfBlock + layout_.threads / kLanes * layout_.unroll * kOfWarp;
    if (layout_.threads * layout_.blocks > resident_threads(device_)) return false;
    if ((shared_bytes(problem_, layout_).all + reductions) * layout_.blocks > device_.shared_bytes)
      return false;
    return registers_of(problem_, layout_) <=
           register_limit(layout_.threads / kLanes * layout_.blocks);
  }

  const RowProblem& problem_;
  const DeviceProps& device_;
  double bytes_;
  bool has_sums_ = problem_.column_sums() > 0;
  bool has_parameters_ = !problem_.scale.empty() || !problem_.bias.empty();
  bool can_prefetch_, can_pipeline_;
  RowLayout layout_;
  std::vector<RowCandidate> found_;
};

}  // namespace

std::vector<RowLayout> all_row_layouts(const RowProblem& problem, const DeviceProps& device) {
  constexpr std::size_t kMost = 60;
  constexpr int kOfEach = 2;
  const double bytes = static_cast<double>(problem.rows) * row_bytes(problem);
  const auto is_alike = [](const RowLayout& a, const RowLayout& b) {
    return a.row_threads == b.row_threads && a.threads == b.threads && a.slices == b.slices &&
           a.ahead == b.ahead && a.shared_sums == b.shared_sums &&
           a.parameters_in_registers == b.parameters_in_registers && a.unroll == b.unroll;
  };
  std::vector<RowLayout> layouts;
  for (const RowCandidate& candidate :
       best_of_each_kind(LayoutSearch(problem, device, bytes).all(), kMost, kOfEach, is_alike))
    layouts.push_back(candidate.layout);
  return layouts;
}

std::vector<RowCandidate> row_candidates(const RowProblem& problem, const DeviceProps& device,
                                         double bytes) {
  constexpr std::size_t kMaxCandidates = 8, kFewCandidates = 2;
  constexpr double kSmall = 1 << 20;  // bytes; smaller problems are not tuned
  const auto is_alike = [](const RowLayout& a, const RowLayout& b) {
    return a.chunks == b.chunks && a.slices == b.slices && a.ahead == b.ahead &&
           a.persistent == b.persistent && a.shared_sums == b.shared_sums &&
           a.parameters_in_registers == b.parameters_in_registers;
  };
  return best_of_each_kind(LayoutSearch(problem, device, bytes).all(),
                           bytes < kSmall ? kFewCandidates : kMaxCandidates, 1, is_alike);
}

}  // namespace ashlar::cuda

#include "cuda/engines/row_norm/row_layout.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cuda/engines/row_norm/row_text.hpp"
#include "cuda/text/program_text.hpp"

namespace ashlar::cuda {

namespace {

using Kind = RowProblem::Kind;

constexpr int kLanes = 32, kMostThreads = 1024;

// Registers a thread may have where so many warps share the four parts of a multiprocessor.
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

// 16 bytes of the narrowest type that lies along the rows, at most 8 elements.
int vector_of(const RowProblem& problem) {
  int narrowest = 64;
  const int last = problem.space.rank() - 1;
  const auto look = [&](const PointwiseProgram& program) {
    for (const auto& step : program.steps)
      if (step.kind == PointwiseProgram::Step::Kind::load && step.view.strides[last] == 1)
        narrowest = std::min(narrowest, std::max(bit_width(step.view.dtype), 8));
    for (const auto& store : program.stores)
      if (store.view.strides[last] == 1)
        narrowest = std::min(narrowest, std::max(bit_width(store.view.dtype), 8));
  };
  look(problem.first);
  look(problem.second);
  look(problem.result);
  int vector = std::min(128 / narrowest, problem.precision == f64 ? 4 : 8);
  for (const PointwiseProgram* program :
       {&problem.first, &problem.second, &problem.scale, &problem.bias, &problem.result})
    if (!program->empty()) vector = vector_length(*program, vector);
  while (problem.length % vector != 0) vector /= 2;
  return vector;
}

// Registers in which a thread holds `elements` of an operand: as memory has them where little is
// fused before.
double held_registers(const RowProblem& problem, const PointwiseProgram& program,
                      std::int64_t elements) {
  if (program.empty()) return 0;
  double bits = 0;
  for (const int i : loads_to_hold(program))
    bits += bit_width(program.steps[static_cast<std::size_t>(i)].view.dtype);
  if (bits == 0) bits = 8.0 * static_cast<double>(problem.register_bytes());
  return static_cast<double>(elements) * bits / 32.0;
}

// What the compiler needs, about: checked by tests, which want no spills.
double registers_of(const RowProblem& problem, const RowLayout& layout) {
  constexpr double kAddresses = 8, kPerRow = 6, kPerNextRow = 2, kForMeans = 8;
  constexpr double kPerChunk = 4;  // of parameters that come when they are needed
  const std::int64_t elements = std::int64_t{layout.chunks} * layout.vector;
  const double words = static_cast<double>(problem.register_bytes()) / 4.0;
  const double row = held_registers(problem, problem.first, elements) +
                     held_registers(problem, problem.second, elements);
  double total = kAddresses + layout.vector * words + (problem.is_centred ? kForMeans : 0);
  total += layout.unroll * (kPerRow + row);
  if (layout.ahead == 1) total += layout.unroll * (kPerNextRow + row);
  if (layout.hold_parameters)
    total += held_registers(problem, problem.scale, elements) +
             held_registers(problem, problem.bias, elements);
  else if (!problem.scale.empty())
    total += kPerChunk;
  if (!layout.shared_sums) total += static_cast<double>(elements) * words * problem.column_sums();
  return total;
}

// Bytes of a row that are read.
double row_bytes(const RowProblem& problem) {
  double bits = 0;
  for (const PointwiseProgram* program : {&problem.first, &problem.second})
    for (const auto& step : program->steps)
      if (step.kind == PointwiseProgram::Step::Kind::load) bits += bit_width(step.view.dtype);
  return bits / 8.0 * static_cast<double>(problem.length);
}

// The fewest threads that hold a row in `chunks` vectors each; 0: too many.
int threads_for(const RowProblem& problem, int vector, int chunks) {
  const std::int64_t needed =
      (problem.length + std::int64_t{vector} * chunks - 1) / (std::int64_t{vector} * chunks);
  if (needed > kMostThreads) return 0;
  if (needed <= kLanes) return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(needed)));
  return static_cast<int>((needed + kLanes - 1) / kLanes * kLanes);
}

// A model of a multiprocessor: how much of the memory's speed is reached with so many bytes on
// their way and so many warps to work on them, what the sums over rows add, and what is lost where
// the last blocks have the device for themselves.
double expected_seconds(const RowProblem& problem, const RowLayout& layout,
                        const DeviceProps& device, double bytes) {
  constexpr double kEnoughBytes = 20e3;  // on their way, per multiprocessor: 63 % of the speed
  constexpr double kWaiting = 0.5;  // share of the time in which a block that works reads nothing
  constexpr double kToL2 = 1.2;     // tiles on their way to registers or L2 at a time
  constexpr double kEnoughWarps = 1;
  // Blocks that would have to do for the waits at barriers and for L2 to cost half the time.
  const double waits = layout.ahead == 1 ? 0.08 : 0.15;
  constexpr double kTail = 0.25;  // of a round of blocks
  const double units = device.compute_units;
  const double threads = layout.threads;
  double resident = layout.blocks;
  const RowGrid grid = grid_of(problem, layout, device);
  const double blocks = static_cast<double>(grid.blocks * problem.sets);
  resident = std::min(resident, std::max(blocks / units, 1.0));
  const double tile = layout.tile_rows() * row_bytes(problem);
  const double under_way = resident * tile *
                           (layout.ahead == 0   ? kWaiting
                            : layout.ahead == 1 ? 1.0
                                                : kToL2);
  const double warps = resident * threads / kLanes;
  const double busy = std::min(blocks / units, 1.0);
  const double rounds = layout.persistent ? 1.0 : blocks / (resident * units);
  const double tail = rounds > 1 ? kTail * (std::ceil(rounds) / rounds - 1.0) : 0.0;
  double total = bytes;
  if (problem.column_sums() > 0)
    total += 2 * blocks *
             static_cast<double>(problem.length * problem.register_bytes() * problem.column_sums());
  const double speed = device.bytes_per_second * busy *
                       (1.0 - std::exp(-under_way / kEnoughBytes)) *
                       (warps / (warps + kEnoughWarps)) * (resident / (resident + waits));
  constexpr double kUneven = 0.04;   // threads whose last vector is past the end of the row
  constexpr double kReading = 0.01;  // parameters again and again from L1
  const bool is_even =
      std::int64_t{layout.row_threads} * layout.chunks * layout.vector == problem.length;
  const double reading = layout.hold_parameters ? 0.0 : kReading;
  return total / speed * (1.0 + tail + reading + (is_even ? 0.0 : kUneven));
}

// The best of every kind, so that tuning has different ones to try.
std::vector<RowCandidate> best_of_kinds(std::vector<RowCandidate> found, std::size_t most) {
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  std::vector<RowCandidate> kept;
  for (const RowCandidate& candidate : found) {
    const auto is_alike = [&](const RowCandidate& other) {
      return other.layout.chunks == candidate.layout.chunks &&
             other.layout.ahead == candidate.layout.ahead &&
             other.layout.persistent == candidate.layout.persistent &&
             other.layout.shared_sums == candidate.layout.shared_sums &&
             other.layout.hold_parameters == candidate.layout.hold_parameters;
    };
    if (kept.size() < most && std::none_of(kept.begin(), kept.end(), is_alike))
      kept.push_back(candidate);
  }
  return kept;
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> RowLayout::knobs() const {
  return {{"threads", threads},
          {"row_threads", row_threads},
          {"unroll", unroll},
          {"blocks", blocks},
          {"persistent", persistent ? 1 : 0},
          {"ahead", ahead},
          {"shared_sums", shared_sums ? 1 : 0},
          {"hold_parameters", hold_parameters ? 1 : 0},
          {"held", chunks > 0 ? 1 : 0}};
}

RowLayout RowLayout::from(const RowProblem& problem, const Config& config) {
  RowLayout layout;
  const auto knob = [&](const char* name) { return static_cast<int>(config.knob(name)); };
  layout.threads = knob("threads");
  layout.row_threads = knob("row_threads");
  layout.unroll = knob("unroll");
  layout.blocks = knob("blocks");
  layout.persistent = knob("persistent") != 0;
  layout.ahead = knob("ahead");
  layout.shared_sums = knob("shared_sums") != 0;
  layout.hold_parameters = knob("hold_parameters") != 0;
  layout.vector = vector_of(problem);
  const std::int64_t per_chunk = std::int64_t{layout.row_threads} * layout.vector;
  if (knob("held") != 0)
    layout.chunks = static_cast<int>((problem.length + per_chunk - 1) / per_chunk);
  return layout;
}

RowGrid grid_of(const RowProblem& problem, const RowLayout& layout, const DeviceProps& device) {
  const std::int64_t rows =
      problem.kind == Kind::norm_backward ? problem.rows / problem.sets : problem.rows;
  const std::int64_t sets = problem.kind == Kind::norm_backward ? problem.sets : 1;
  const std::int64_t tile = layout.tile_rows(), tiles = (rows + tile - 1) / tile;
  RowGrid grid;
  if (!layout.persistent) {
    grid = {tiles, tile, 0, tile == 1 || rows % tile == 0};
    return grid;
  }
  const std::int64_t wanted = std::int64_t{layout.blocks} * device.compute_units;
  grid.blocks = std::clamp<std::int64_t>((wanted + sets - 1) / sets, 1, tiles);
  grid.rows_per_block = rows / grid.blocks;
  grid.blocks_with_more = rows % grid.blocks;
  grid.whole_tiles = tile == 1 || (grid.blocks_with_more == 0 && grid.rows_per_block % tile == 0);
  return grid;
}

std::int64_t shared_sums(const RowProblem& problem, const RowLayout& layout) {
  if (layout.shared_sums) return std::int64_t{layout.threads} * layout.chunks * layout.vector;
  return layout.groups() > 1 ? layout.groups() * problem.length : 0;
}
std::int64_t shared_bytes(const RowProblem& problem, const RowLayout& layout) {
  return shared_sums(problem, layout) * problem.column_sums() * problem.register_bytes();
}

std::vector<RowCandidate> row_candidates(const RowProblem& problem, const DeviceProps& device,
                                         double bytes) {
  constexpr std::size_t kMostCandidates = 8, kFewCandidates = 2;
  constexpr double kSmall = 1 << 20;  // bytes: nothing to tune
  constexpr int kMostElements = 64;   // of a row in a thread
  const bool has_sums = problem.column_sums() > 0;
  const bool has_parameters = !problem.scale.empty() || !problem.bias.empty();
  const bool is_backward = problem.kind == Kind::norm_backward;  // needs the scale in both passes
  // Work fused before that is not left to later waits for the loads.
  const auto only_loads = [](const PointwiseProgram& program) {
    return program.empty() || !loads_to_hold(program).empty();
  };
  const bool can_prefetch = only_loads(problem.first) && only_loads(problem.second);
  std::vector<RowCandidate> found;
  RowLayout layout;
  layout.vector = vector_of(problem);

  const auto fits = [&] {
    constexpr std::int64_t kReductions = 4 << 10;  // shared memory of reductions over the block
    if (layout.threads * layout.blocks > resident_threads(device)) return false;
    if ((shared_bytes(problem, layout) + kReductions) * layout.blocks > device.shared_bytes)
      return false;
    return registers_of(problem, layout) <= register_limit(layout.threads / kLanes * layout.blocks);
  };
  // Sums over rows want few blocks, everything else many.
  const auto consider = [&] {
    constexpr int kMostBlocks = 16;
    bool is_found = false;
    for (layout.blocks = kMostBlocks; layout.blocks > 0; --layout.blocks) {
      if ((is_found && !has_sums) || !fits()) continue;
      is_found = true;
      found.push_back({layout, expected_seconds(problem, layout, device, bytes)});
    }
  };
  for (const int chunks : {1, 2, 3, 4, 6, 8, 12, 16}) {
    if (chunks * layout.vector > kMostElements) continue;
    layout.chunks = chunks;
    layout.row_threads = threads_for(problem, layout.vector, chunks);
    constexpr int kWholeLine = 8;  // threads that read 128 bytes at once
    const bool is_narrow = layout.row_threads <= kLanes;
    if (chunks > 1 && layout.row_threads < kWholeLine) continue;
    if (layout.row_threads == 0 ||
        (chunks - 1) * std::int64_t{layout.row_threads} * layout.vector >= problem.length)
      continue;
    for (int groups = 1; groups * layout.row_threads <= kMostThreads; groups *= 2) {
      layout.threads = groups * layout.row_threads;
      if (is_narrow ? layout.threads < 128 || layout.threads > 512 : groups > (has_sums ? 4 : 1))
        continue;
      for (const int unroll : {1, 2, 4})
        for (const int ahead : {0, 1, 2})
          for (const bool shared_sums : {false, true})
            for (const bool hold_parameters : {false, true}) {
              if (unroll > 1 && !is_narrow) continue;
              if (shared_sums && (!has_sums || groups > 1)) continue;
              if (ahead > 0 && !can_prefetch) continue;
              if (!hold_parameters && (!has_parameters || is_backward)) continue;
              layout.unroll = unroll;
              layout.ahead = ahead;
              layout.persistent = has_sums || ahead > 0;
              layout.shared_sums = shared_sums;
              layout.hold_parameters = hold_parameters;
              consider();
            }
    }
  }
  if (found.empty()) {
    const RowLayout again{.threads = 512,
                          .row_threads = 512,
                          .blocks = 2,
                          .persistent = has_sums,
                          .vector = layout.vector};
    found.push_back({again, 2 * bytes / device.bytes_per_second});
  }
  return best_of_kinds(std::move(found), bytes < kSmall ? kFewCandidates : kMostCandidates);
}

}  // namespace ashlar::cuda

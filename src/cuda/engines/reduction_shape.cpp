#include "cuda/engines/reduction_shape.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/memory_bound.hpp"

namespace ashlar::cuda {

namespace {

// The largest load decides the loop order; null: none.
const View* largest_load(const PointwiseProgram& program) {
  const View* largest = nullptr;
  double most = 0;
  for (const PointwiseProgram::Step& step : program.steps) {
    if (step.kind != PointwiseProgram::Step::Kind::load) continue;
    double bits = bit_width(step.view.dtype);
    for (int axis = 0; axis < step.view.dims.rank(); ++axis)
      if (step.view.strides[axis] != 0) bits *= static_cast<double>(step.view.dims[axis]);
    if (bits > most) largest = &step.view;
    most = std::max(most, bits);
  }
  return largest;
}

// Stride of an axis; broadcast axes come first.
std::int64_t distance(const View* memory, int axis) {
  if (memory == nullptr) return 0;
  const std::int64_t stride = std::abs(memory->strides[axis]);
  return stride == 0 ? std::numeric_limits<std::int64_t>::max() : stride;
}

// Merges axes `first`, ..., `first` + count - 1 of all programs where their strides allow it.
void join_all(const std::vector<PointwiseProgram*>& programs, int first, int& count) {
  for (int axis = first + count - 2; axis >= first; --axis)
    if (join_axes(programs, axis)) --count;
}

}  // namespace

ReductionShape::ReductionShape(const Region& region) : x(region.prologues[0]) {
  static_assert(Reduction::x == 0 && GenStats::x == 0);
  constexpr int kSquares = 9;  // kSquares of kernels/reduction_modes.cuh
  results = {region.epilogue};
  if (const auto* op = region.anchor_as<Reduction>()) {
    modes = {static_cast<int>(op->mode)};
  } else {
    modes = {static_cast<int>(ReductionMode::add)};
    if (const View squares = output_view(region, GenStats::sq_sum); squares.present()) {
      modes.push_back(kSquares);
      results.push_back(plain_store(squares));
    }
  }

  const Dims space = x.space, y = region.epilogue.space;
  const View* memory = largest_load(x);
  std::vector<int> kept_axes, reduced_axes;
  for (int axis = 0; axis < space.rank(); ++axis)
    if (space[axis] != 1) (y[axis] == 1 ? reduced_axes : kept_axes).push_back(axis);
  const auto is_farther = [&](int a, int b) { return distance(memory, a) > distance(memory, b); };
  for (std::vector<int>* axes : {&kept_axes, &reduced_axes})
    std::stable_sort(axes->begin(), axes->end(), is_farther);
  columns = !kept_axes.empty() &&
            (reduced_axes.empty() || is_farther(reduced_axes.back(), kept_axes.back()));
  for (std::vector<int>* axes : {&kept_axes, &reduced_axes})
    if (axes->empty()) axes->push_back(space.rank());  // of extent 1

  std::vector<int> order = kept_axes;
  order.insert(order.end(), reduced_axes.begin(), reduced_axes.end());
  std::vector<PointwiseProgram*> all = {&x};
  for (PointwiseProgram& result : results) all.push_back(&result);
  for (PointwiseProgram* program : all) *program = reordered(*program, order);
  kept = static_cast<int>(kept_axes.size());
  reduced = static_cast<int>(reduced_axes.size());
  join_all(all, kept, reduced);
  join_all(all, 0, kept);

  for (int axis = 0; axis < kept + reduced; ++axis) (axis < kept ? cells : terms) *= x.space[axis];
  order.clear();
  for (int axis = 0; axis < kept; ++axis) order.push_back(axis);
  for (PointwiseProgram& result : results) result = reordered(result, order);
  if (columns) order.pop_back();
  for (int axis = kept; axis < kept + reduced; ++axis) order.push_back(axis);
  if (columns) order.push_back(kept - 1);
  x = reordered(x, order);

  const int last = kept + reduced - 1, most = region.precision() == f64 ? 4 : 16;
  std::vector<const PointwiseProgram*> walked = {&x};
  PointwiseProgram whole_packets = x;
  if (columns) {
    width = x.space[last];
    outers = width == 0 ? 0 : cells / width;
    for (const PointwiseProgram& result : results) walked.push_back(&result);
  } else {
    line = x.space[last];
    // A single line may end with a partial packet.
    if (reduced == 1 && line >= most) whole_packets.space[last] = line / most * most;
    walked = {&whole_packets};
  }
  vector = packet_length(walked, most);
  loads = 0;
  for (const PointwiseProgram::Step& step : x.steps) {
    if (!loads_per_result(step, x)) continue;
    ++loads;
    is_strided = is_strided || (x.space[last] > 1 && std::abs(step.view.strides[last]) != 1);
  }
}

std::vector<const PointwiseProgram*> ReductionShape::programs() const {
  std::vector<const PointwiseProgram*> all = {&x};
  for (const PointwiseProgram& result : results) all.push_back(&result);
  return all;
}

ReductionTiling::ReductionTiling(const ReductionShape& shape, std::int64_t unroll_packets,
                                 std::int64_t blocks, bool split, const DeviceProps& device)
    : unroll(unroll_packets) {
  const std::int64_t at_once = blocks * device.compute_units;
  if (shape.columns)
    partition_columns(shape, at_once, split);
  else
    partition_rows(shape, at_once, split);
}

void ReductionTiling::split_terms(std::int64_t packets, std::int64_t blocks_of_slice,
                                  std::int64_t at_once) {
  constexpr std::int64_t kMaxSlices = 4096;
  const std::int64_t most = std::clamp<std::int64_t>(packets / (team * unroll), 1, kMaxSlices);
  slices = balanced_slices(blocks_of_slice, most, at_once, at_once);
}

void ReductionTiling::partition_rows(const ReductionShape& shape, std::int64_t at_once,
                                     bool split) {
  constexpr std::int64_t kLanes = 32;
  const std::int64_t packets = std::max<std::int64_t>(shape.packets(), 1);
  // Two packets per thread, a few chunks where there are many; more threads per row where there are
  // few rows.
  constexpr std::int64_t kFewChunks = 4;
  const auto pairs = static_cast<std::uint64_t>(std::max<std::int64_t>(packets / 2, 1));
  team = std::min(static_cast<std::int64_t>(std::bit_floor(pairs)), kLanes);
  while (team < kThreads && packets > kFewChunks * unroll * team) team *= 2;
  while (team < kThreads && shape.cells * team < at_once * kThreads && packets >= 2 * team)
    team *= 2;
  if (split && team == kThreads) split_terms(packets, shape.cells, at_once);
  slice_packets = ceil_div(packets, slices);
  slices = ceil_div(packets, slice_packets);
  grid.x = static_cast<unsigned>(ceil_div(shape.cells * slices, kThreads / team));
  single_grid = grid;
}

void ReductionTiling::partition_columns(const ReductionShape& shape, std::int64_t at_once,
                                        bool split) {
  constexpr std::int64_t kMaxLanes = 64;  // 1 KB of a row per CTA
  const std::int64_t packets = std::max<std::int64_t>(shape.width / shape.vector, 1);
  tiles = ceil_div(packets, kMaxLanes);
  lanes = ceil_div(packets, tiles);
  // One thread per packet of a row, with several rows of threads where that fills the GPU.
  const std::int64_t most = std::clamp<std::int64_t>(shape.terms, 1, kThreads / lanes);
  while (team < most && shape.outers * tiles * lanes * team < at_once * kThreads)
    team = std::min(team * 2, most);
  single_tiles = ceil_div(packets * shape.vector, kThreads / team);
  single_lanes = ceil_div(packets * shape.vector, single_tiles);
  const std::int64_t of_block = kThreads / (team * lanes);
  if (split && of_block == 1) split_terms(shape.terms, shape.outers * tiles, at_once);
  const std::int64_t terms = std::max<std::int64_t>(shape.terms, 1);
  slice_packets = ceil_div(terms, slices);
  slices = ceil_div(terms, slice_packets);
  grid.x = static_cast<unsigned>(ceil_div(shape.outers * tiles * slices, of_block));
  single_grid.x = static_cast<unsigned>(
      ceil_div(shape.outers * single_tiles * slices, kThreads / (team * single_lanes)));
}

}  // namespace ashlar::cuda

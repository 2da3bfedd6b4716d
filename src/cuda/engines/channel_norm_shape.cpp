#include "cuda/engines/channel_norm_shape.hpp"

#include <algorithm>
#include <numeric>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/memory_bound.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kMaxRowLanes = 64;  // threads along a row: 1 KB
constexpr std::int64_t kMaxSlices = 4096;
constexpr std::int64_t kLeastChunks = 2;  // chunks per thread, where there is enough work

}  // namespace

ChannelNormShape::ChannelNormShape(const Region& region)
    : forward(region.anchor_as<NormForward>()),
      backward(region.anchor_as<NormBackward>()),
      given(forward != nullptr
                ? forward->mode == NormMode::batch && forward->phase == NormPhase::inference
                : !input_program(region, NormBackward::inv_variance).empty()),
      x(region.prologues[0]),
      result(region.epilogue) {
  static_assert(NormForward::x == 0 && NormBackward::x == 0);
  if (backward != nullptr) dy = region.prologues[NormBackward::dy];
  const Dims space = x.space;
  const NormMode mode = forward != nullptr ? forward->mode : backward->mode;
  const std::int64_t all_groups = forward != nullptr ? forward->groups : backward->groups;
  channels = space[1];
  outers = mode == NormMode::batch ? 1 : space[0];
  groups = mode == NormMode::group ? all_groups : channels;
  width = groups == 0 ? 0 : channels / groups;
  pixels = 1;
  for (int axis = 0; axis < space.rank(); ++axis)
    if (axis != 1) pixels *= space[axis];
  if (outers > 0) pixels /= outers;

  std::vector<const PointwiseProgram*> parts = {&x, &result};
  if (backward != nullptr) parts.push_back(&dy);
  columns = channels_are_contiguous(parts);
  // [rows..., channels], or [N, channels, pixels] with the spatial axes in the memory order of x.
  std::vector<int> order(static_cast<std::size_t>(space.rank()));
  std::iota(order.begin(), order.end(), 0);
  const View* memory = nullptr;
  for (const auto& step : x.steps)
    if (step.kind == PointwiseProgram::Step::Kind::load && memory == nullptr) memory = &step.view;
  if (memory != nullptr)
    std::stable_sort(order.begin() + 2, order.end(),
                     [&](int a, int b) { return memory->strides[a] > memory->strides[b]; });
  if (columns) {
    order.erase(order.begin() + 1);
    order.push_back(1);
  }
  if (!columns && space.rank() == 2) order.push_back(2);  // an axis of extent 1
  for (PointwiseProgram* program : programs()) *program = reordered(*program, order);
  for (int axis = x.space.rank() - 2; axis >= 0; --axis) {
    const int first = columns ? axis - 1 : axis;  // first axis of the pair to merge
    if (first < (columns ? 0 : 2)) continue;
    if (!join_axes(programs(), first) && !columns) simple = false;
  }
  max_vector = region.precision() == f64 ? 4 : 8;
  vector = packet_length(static_cast<const ChannelNormShape&>(*this).programs(), max_vector);
}

std::optional<ChannelNormShape> ChannelNormShape::joined() const {
  ChannelNormShape joint = *this;
  if (columns || !simple || outers != 1 || !join_axes(joint.programs(), 1)) return std::nullopt;
  joint.columns = true;
  joint.spread = x.space[2];
  joint.vector = packet_length(static_cast<const ChannelNormShape&>(joint).programs(), max_vector);
  return joint;
}

std::vector<PointwiseProgram*> ChannelNormShape::programs() {
  std::vector<PointwiseProgram*> result_programs = {&x, &result};
  if (backward != nullptr) result_programs.push_back(&dy);
  return result_programs;
}
std::vector<const PointwiseProgram*> ChannelNormShape::programs() const {
  std::vector<const PointwiseProgram*> result_programs = {&x, &result};
  if (backward != nullptr) result_programs.push_back(&dy);
  return result_programs;
}

std::int64_t ChannelNormShape::persistent_packets() const {
  constexpr std::int64_t kMaxNumbers = 64, kLeastPackets = 96;
  if (forward == nullptr || columns || forward->mode == NormMode::batch) return 0;
  const std::int64_t packets = pixels * width / vector;
  const std::int64_t per_thread = ceil_div(packets, ChannelNormTiling::kThreads);
  return packets < kLeastPackets || per_thread * vector > kMaxNumbers ? 0 : per_thread;
}

ChannelNormTiling::ChannelNormTiling(const ChannelNormShape& shape, int unroll_packets,
                                     std::int64_t blocks, std::int64_t waves,
                                     const DeviceProps& device)
    : unroll(unroll_packets) {
  // A wave: all CTAs that are resident at the same time.
  const std::int64_t at_once = blocks * device.compute_units, wanted = at_once * waves;
  const auto slices_of = [&](std::int64_t blocks_of_slice, std::int64_t pixels_of_chunk) {
    const std::int64_t most =
        std::clamp<std::int64_t>(shape.pixels / (kLeastChunks * pixels_of_chunk), 1, kMaxSlices);
    return balanced_slices(blocks_of_slice, most, wanted, at_once);
  };
  if (shape.columns) {
    const auto lanes_of = [&](std::int64_t packets, std::int64_t& tiles) {
      tiles = ceil_div(packets, kMaxRowLanes);
      return ceil_div(packets, tiles);
    };
    std::int64_t tiles = 0, single_tiles = 0;
    lanes = lanes_of(shape.channels / shape.vector, tiles);
    single_lanes = lanes_of(shape.channels, single_tiles);
    slices = slices_of(tiles * shape.outers, kThreads / lanes * unroll);
    team = 0;
    slice_pixels = ceil_div(shape.pixels, slices);
    slices = ceil_div(shape.pixels, slice_pixels);
    grid = {static_cast<unsigned>(tiles), static_cast<unsigned>(slices),
            static_cast<unsigned>(shape.outers)};
    single_grid = grid;
    single_grid.x = static_cast<unsigned>(single_tiles);
    return;
  }
  constexpr std::int64_t kLane = 32;
  const std::int64_t cells = shape.outers * shape.channels;
  lanes = single_lanes = 1;
  const bool small = shape.pixels <= kLane * shape.vector * unroll * 2;
  team = small ? kLane : kThreads;
  slices = slices_of(ceil_div(cells * team, kThreads), team * shape.vector * unroll);
  slice_pixels = ceil_div(ceil_div(shape.pixels, slices), shape.vector) * shape.vector;
  slices = ceil_div(shape.pixels, slice_pixels);
  grid.x = static_cast<unsigned>(ceil_div(cells * slices, kThreads / team));
  single_grid = grid;
}

}  // namespace ashlar::cuda

#include "cuda/engines/channel_norm_kept.hpp"

#include <algorithm>
#include <string_view>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_norm_text.hpp"
#include "cuda/engines/memory_bound.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kLeastPackets = 2;      // of a thread, where blocks could be fewer
constexpr std::int64_t kMostDirect = 1 << 11;  // sums of a group that all its blocks read
constexpr std::int64_t kReserved = 1 << 10;    // of shared memory per block, by the system
constexpr std::int64_t kCounterBytes = 128;    // a line each
constexpr std::int64_t kMostTaken = 512;
constexpr std::size_t kMostChoices = 4;
constexpr std::int64_t kLeastBusy = 216;  // threads of a block that have packets

std::int64_t bytes_of(DType dtype) { return bit_width(dtype) / 8; }

}  // namespace

DType kept_type(const PointwiseProgram& program, DType precision) {
  using Kind = PointwiseProgram::Step::Kind;
  const auto loaded = [&](int value) {
    const auto& step = program.steps[static_cast<std::size_t>(value)];
    const bool whole = step.kind == Kind::load && bit_width(step.view.dtype) >= 8;
    return whole && !step.round_to ? step.view.dtype : precision;
  };
  if (program.result < 0) return precision;
  const auto& step = program.steps[static_cast<std::size_t>(program.result)];
  // What relu lets through is the gradient itself, or 0.
  if (step.kind == Kind::compute && step.op.mode == PointwiseMode::relu_bwd && !step.round_to &&
      step.op.relu_lower_slope == 0.0)
    return loaded(step.args[0]);
  return loaded(program.result);
}

ChannelNormShape ChannelNormKept::walked(const ChannelNormShape& shape) {
  const std::optional<ChannelNormShape> joint = shape.joined();
  return joint && joint->vector > shape.vector ? *joint : shape;
}

ChannelNormKept::ChannelNormKept(const ChannelNormShape& walked_shape, DType precision,
                                 std::int64_t taken_channels, const DeviceProps& device)
    : shape(walked_shape),
      x_type(kept_type(shape.x, precision)),
      dy_type(shape.backward != nullptr ? kept_type(shape.dy, precision) : precision),
      taken(taken_channels),
      chunks(shape.channels / taken),
      rows(shape.pixels / (shape.columns ? shape.spread : shape.vector)) {
  const std::int64_t across = shape.columns ? taken * shape.spread / shape.vector : 1;
  const std::int64_t down = kThreads / across, number = bytes_of(precision);
  // Numbers that blocks merge through: two of every thread, the channels, the columns.
  const std::int64_t sums = (shape.backward != nullptr ? 2 : 3) * number;
  const std::int64_t merging =
      (2 * kThreads + (shape.spread > 1 ? taken * shape.spread : 0)) * sums + taken * 2 * number +
      512;
  const std::int64_t shared = (device.shared_bytes + kReserved) / kBlocks - kReserved - merging;
  const std::int64_t packet =
      shape.vector * (bytes_of(x_type) + (shape.backward != nullptr ? bytes_of(dy_type) : 0));
  const std::int64_t most_held = std::max<std::int64_t>(shared / (kThreads * packet), 0);

  const std::int64_t at_once = kBlocks * device.compute_units;
  const std::int64_t needed = ceil_div(rows, std::max<std::int64_t>(most_held, 1) * down);
  groups = std::clamp<std::int64_t>(at_once / std::min(needed, at_once), 1, chunks);
  groups = ceil_div(chunks, ceil_div(chunks, groups));  // as many turns, all of them full
  members = std::clamp<std::int64_t>(rows / (kLeastPackets * down), 1, at_once / groups);
  packets = ceil_div(rows, members * down);
  held = std::min(packets, most_held);
  relay = members > 1 && taken * members > kMostDirect;

  // As few steps as the registers allow, all of them full.
  const std::int64_t most = std::min<std::int64_t>((shape.backward != nullptr ? 32
                                                    : shape.columns           ? 48
                                                                              : 56) /
                                                       shape.vector,
                                                   shape.vector == 1 ? 16 : 14);
  unroll = ceil_div(packets, ceil_div(packets, most));
}

unsigned ChannelNormKept::shared_bytes() const {
  const std::int64_t element =
      bytes_of(x_type) + (shape.backward != nullptr ? bytes_of(dy_type) : 0);
  return static_cast<unsigned>(held * kThreads * shape.vector * element);
}

std::vector<std::pair<std::string, std::int64_t>> ChannelNormKept::scratch(DType precision) const {
  if (members == 1) return {};
  const std::int64_t pair = 2 * bytes_of(precision);
  return {{"partial", 2 * groups * taken * members * pair},
          {"finished", relay ? groups * taken * pair : 0},
          {"counters", groups * kCounterBytes}};
}

KernelDesign ChannelNormKept::design(const Graph& graph, const Region& region,
                                     const Ways& ways) const {
  KernelDesign result;
  Arguments arguments;
  add_extents(arguments, shape.x.space);
  const std::int64_t line_packets = shape.columns ? 1 : shape.x.space[2] / shape.vector;
  arguments.number("line_packets", line_packets);
  arguments.number("magic_line_packets", divider_word(line_packets));
  arguments.number("pixels", shape.pixels);
  arguments.number("rows", rows);
  arguments.number("chunks", chunks);
  arguments.number("groups_at_once", groups);
  for (const char* name : {"partial", "finished", "counters"})
    if (members == 1) arguments.number(name, 0);  // named, but not used
  for (const auto& [name, bytes] : scratch(region.precision()))
    arguments.scratch(name, result.scratch.add(name, bytes));
  const bool forward = shape.forward != nullptr;
  const std::string programs = print_channel_norm(graph, region, shape, arguments) +
                               print_prefetches(graph, shape, arguments) +
                               print_addresses(shape, arguments);
  const auto held_type = [](const char* name, DType dtype) {
    const std::string object = tag(dtype);  // "bf16()"
    return "typedef " + object.substr(0, object.size() - 2) + " " + name + ";\n";
  };
  const std::string head =
      register_types(region.precision(), shape.programs()) +
      constant("kRank", shape.x.space.rank()) + constant("kVector", shape.vector) +
      constant("kThreads", kThreads) + constant("kBlocks", kBlocks) + constant("kUnroll", unroll) +
      constant("kColumns", shape.columns ? 1 : 0) + constant("kSpread", shape.spread) +
      constant("kTaken", taken) + constant("kMembers", members) +
      constant("kRelay", relay ? 1 : 0) + constant("kHeld", held) +
      constant("kAllHeld", held == packets ? 1 : 0) + constant("kAhead", ways.ahead) +
      constant("kStaggers", ways.staggers ? 1 : 0) + constant("kAsync", ways.async ? 1 : 0) +
      held_type("HeldX", x_type) + held_type("HeldDy", dy_type) + arguments.struct_text() +
      programs;
  const std::vector<std::string_view> files = {
      "channel_norm_kept.cuh",
      forward ? "channel_norm_kept_forward.cuh" : "channel_norm_kept_backward.cuh"};
  const KernelSource source = {"channel_norm_kept", assemble(files, head)};
  if (members > 1) {
    Grid grid;
    grid.x = static_cast<unsigned>(ceil_div(groups, kThreads));
    result.launches.push_back({source, "channel_reset_counters", grid, kThreads, 0, arguments});
  }
  LaunchDesign launch{source,
                      forward ? "channel_normalise_kept" : "channel_gradient_kept",
                      {},
                      kThreads,
                      shared_bytes(),
                      arguments};
  launch.grid.x = static_cast<unsigned>(groups * members);
  launch.unaligned_function = launch.function + "_elements";
  launch.unaligned_grid = launch.grid;
  launch.together = members > 1;
  result.launches.push_back(std::move(launch));
  return result;
}

bool ChannelNormKept::can_copy_async() const {
  constexpr std::int64_t kCopyBytes = 16;
  const auto fits = [&](const PointwiseProgram& program, DType dtype) {
    return program.is_plain_load() && program.stores.empty() &&
           shape.vector * bytes_of(dtype) == kCopyBytes;
  };
  return held == packets && fits(shape.x, x_type) &&
         (shape.backward == nullptr || fits(shape.dy, dy_type));
}

std::vector<ChannelNormKept::Ways> ChannelNormKept::ways(bool has_other_tensors) const {
  // Measured on an H200: large groups of lines do better with packets in registers, and with what
  // comes next on its way to L2 unless other tensors are read meanwhile.
  const bool forward_short = shape.backward == nullptr && bytes_of(x_type) < 4;
  const bool prefers_async = shape.columns || members <= 16 || forward_short;
  const bool has_next = groups < chunks, staggers = can_stagger();
  const std::int64_t ahead =
      !shape.columns && has_next && groups > 1 && !has_other_tensors ? held / 2 : 0;
  std::vector<Ways> result;
  if (can_copy_async() && prefers_async) result.push_back({0, staggers, true});
  result.push_back({ahead, staggers && !shape.columns, false});
  if (has_next) result.push_back({ahead == 0 ? held / 2 : 0, false, false});
  if (can_copy_async()) result.push_back({0, prefers_async ? false : staggers, true});
  return result;
}

double ChannelNormKept::traffic(const DeviceProps& device) const {
  const double tensors = shape.backward != nullptr ? 2 : 1;
  const double kept_share = static_cast<double>(held) / static_cast<double>(packets);
  double again = tensors * (1 - kept_share);
  // What the groups have on the way and do not keep is found in L2 if it is less than half of it.
  const double chunk = static_cast<double>(taken * shape.pixels * bytes_of(x_type));
  const double of_l2 =
      again * chunk * static_cast<double>(groups) / static_cast<double>(device.l2_bytes);
  if (of_l2 < 0.45) again *= 0.3;
  return (tensors + again + 1) / (tensors + 1);
}

// As measured on an H200: shares of the speed that the driver names, seconds per chunk in which
// memory has nothing to do.
double ChannelNormKept::fraction(double bytes, bool async, const DeviceProps& device) const {
  const bool backward = shape.backward != nullptr, is_short = bytes_of(x_type) < 4;
  double share = backward ? (is_short ? 0.875 : 0.862) : 0.855;
  // Of rows in pieces, memory gives less the shorter they are.
  if (shape.columns && chunks > 1) {
    const std::int64_t piece = taken * shape.spread * bytes_of(x_type);
    share *= piece >= 512   ? 1.0
             : piece >= 256 ? 0.98
             : piece >= 128 ? 0.85
             : piece >= 64  ? 0.45
                            : 0.2;
  }
  double of_chunk = (!is_short  ? 3.3e-6
                     : backward ? 4e-6
                                : 7e-6) +
                    (shape.columns ? 3e-6 : 0) + 0.018e-6 * static_cast<double>(members);
  if (async) of_chunk *= shape.columns ? 0.8 : 0.65;
  const double reset = members > 1 ? 3e-6 : 0;  // the launch before
  const auto turns = static_cast<double>(ceil_div(chunks, groups));
  return share_of_speed(share, bytes * traffic(device), turns * of_chunk + reset, device);
}

std::vector<std::int64_t> ChannelNormKept::choices(const ChannelNormShape& norm, DType precision,
                                                   const DeviceProps& device) {
  const bool trains = norm.forward != nullptr ? !norm.given : norm.given;
  if (norm.outers != 1 || norm.width != 1 || !trains || !norm.simple) return {};
  const ChannelNormShape shape = walked(norm);
  if (!shape.columns) {
    const ChannelNormKept kept(shape, precision, 1, device);
    return kept.held > 0 ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{};
  }
  // All of a row, or pieces of it that are short enough for the chip and L2.
  std::vector<std::pair<double, std::int64_t>> found;
  for (std::int64_t parts = 1; parts <= shape.channels; ++parts) {
    const std::int64_t taken = shape.channels / parts, columns = taken * shape.spread;
    const std::int64_t across = columns / shape.vector;
    if (shape.channels % parts != 0 || columns % shape.vector != 0 || across > kThreads) continue;
    if (kThreads / across * across < kLeastBusy || taken > kMostTaken) continue;
    const ChannelNormKept kept(shape, precision, taken, device);
    const auto bytes = static_cast<double>(shape.channels * shape.pixels * bytes_of(kept.x_type) *
                                           (shape.backward != nullptr ? 3 : 2));
    if (kept.held > 0)
      found.emplace_back(kept.traffic(device) / kept.fraction(bytes, kept.can_copy_async(), device),
                         taken);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::int64_t> result;
  for (const auto& [cost, taken] : found)
    if (result.size() < kMostChoices) result.push_back(taken);
  return result;
}

}  // namespace ashlar::cuda

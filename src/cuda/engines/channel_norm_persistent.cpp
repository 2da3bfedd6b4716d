#include "cuda/engines/channel_norm_persistent.hpp"

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

constexpr std::int64_t kLeastPackets = 2;     // packets per thread below which groups get fewer
                                              // CTAs
constexpr std::int64_t kMaxDirect = 1 << 11;  // partials up to which every CTA of a group reduces
                                              // all of them
constexpr std::int64_t kReserved = 1 << 10;   // shared memory per CTA reserved by the system
constexpr std::int64_t kCounterBytes = 128;   // one cache line per counter
constexpr std::int64_t kMaxTaken = 512;
constexpr std::size_t kMaxChoices = 4;
constexpr std::int64_t kLeastBusy = 216;  // threads of a CTA that must have packets

std::int64_t bytes_of(DType dtype) { return bit_width(dtype) / 8; }

}  // namespace

DType persistent_type(const PointwiseProgram& program, DType precision) {
  using Kind = PointwiseProgram::Step::Kind;
  const auto loaded = [&](int value) {
    const auto& step = program.steps[static_cast<std::size_t>(value)];
    const bool whole = step.kind == Kind::load && bit_width(step.view.dtype) >= 8;
    return whole && !step.round_to ? step.view.dtype : precision;
  };
  if (program.result < 0) return precision;
  const auto& step = program.steps[static_cast<std::size_t>(program.result)];
  // relu_bwd passes the gradient unchanged, or 0: the type of memory is exact.
  if (step.kind == Kind::compute && step.op.mode == PointwiseMode::relu_bwd && !step.round_to &&
      step.op.relu_lower_slope == 0.0)
    return loaded(step.args[0]);
  return loaded(program.result);
}

ChannelNormShape ChannelNormPersistent::traversed(const ChannelNormShape& shape) {
  const std::optional<ChannelNormShape> joint = shape.joined();
  return joint && joint->vector > shape.vector ? *joint : shape;
}

ChannelNormPersistent::ChannelNormPersistent(const ChannelNormShape& traversed_shape,
                                             DType precision, std::int64_t channels_per_chunk,
                                             const DeviceProps& device)
    : shape(traversed_shape),
      x_type(persistent_type(shape.x, precision)),
      dy_type(shape.backward != nullptr ? persistent_type(shape.dy, precision) : precision),
      chunk_channels(channels_per_chunk),
      chunks(shape.channels / chunk_channels),
      rows(shape.pixels / (shape.columns ? shape.spread : shape.vector)) {
  const std::int64_t across = shape.columns ? chunk_channels * shape.spread / shape.vector : 1;
  const std::int64_t down = kThreads / across, number = bytes_of(precision);
  // Static shared memory of the reductions: two slots per thread, the channels, the columns.
  const std::int64_t sums = (shape.backward != nullptr ? 2 : 3) * number;
  const std::int64_t merging =
      (2 * kThreads + (shape.spread > 1 ? chunk_channels * shape.spread : 0)) * sums +
      chunk_channels * 2 * number + 512;
  const std::int64_t shared = (device.shared_bytes + kReserved) / kBlocks - kReserved - merging;
  const std::int64_t packet =
      shape.vector * (bytes_of(x_type) + (shape.backward != nullptr ? bytes_of(dy_type) : 0));
  const std::int64_t max_held = std::max<std::int64_t>(shared / (kThreads * packet), 0);

  const std::int64_t at_once = kBlocks * device.compute_units;
  const std::int64_t needed = ceil_div(rows, std::max<std::int64_t>(max_held, 1) * down);
  groups = std::clamp<std::int64_t>(at_once / std::min(needed, at_once), 1, chunks);
  groups = ceil_div(chunks, ceil_div(chunks, groups));  // same number of waves, all of them full
  group_blocks = std::clamp<std::int64_t>(rows / (kLeastPackets * down), 1, at_once / groups);
  packets = ceil_div(rows, group_blocks * down);
  persistent_packets = std::min(packets, max_held);
  distributed_reduce = group_blocks > 1 && chunk_channels * group_blocks > kMaxDirect;

  // The largest unroll that fits registers, evened out over the steps.
  const std::int64_t most = std::min<std::int64_t>((shape.backward != nullptr ? 32
                                                    : shape.columns           ? 48
                                                                              : 56) /
                                                       shape.vector,
                                                   shape.vector == 1 ? 16 : 14);
  unroll = ceil_div(packets, ceil_div(packets, most));
}

unsigned ChannelNormPersistent::shared_bytes() const {
  const std::int64_t element =
      bytes_of(x_type) + (shape.backward != nullptr ? bytes_of(dy_type) : 0);
  return static_cast<unsigned>(persistent_packets * kThreads * shape.vector * element);
}

std::vector<std::pair<std::string, std::int64_t>> ChannelNormPersistent::scratch(
    DType precision) const {
  if (group_blocks == 1) return {};
  const std::int64_t pair = 2 * bytes_of(precision);
  return {{"partial", 2 * groups * chunk_channels * group_blocks * pair},
          {"finished", distributed_reduce ? groups * chunk_channels * pair : 0},
          {"counters", groups * kCounterBytes}};
}

KernelDesign ChannelNormPersistent::design(const Graph& graph, const Region& region,
                                           const Schedule& schedule) const {
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
    if (group_blocks == 1)
      arguments.number(name, 0);  // referenced by the kernel text, but not read
  for (const auto& [name, bytes] : scratch(region.precision()))
    arguments.scratch(name, result.scratch.add(name, bytes));
  const bool forward = shape.forward != nullptr;
  const std::string programs = print_channel_norm(graph, region, shape, arguments) +
                               print_prefetches(graph, shape, arguments) +
                               print_addresses(shape, arguments);
  const auto persistent_typedef = [](const char* name, DType dtype) {
    const std::string object = tag(dtype);  // "bf16()"
    return "typedef " + object.substr(0, object.size() - 2) + " " + name + ";\n";
  };
  const std::string head =
      register_types(region.precision(), shape.programs()) +
      constant("kRank", shape.x.space.rank()) + constant("kVector", shape.vector) +
      constant("kThreads", kThreads) + constant("kBlocks", kBlocks) + constant("kUnroll", unroll) +
      constant("kColumns", shape.columns ? 1 : 0) + constant("kSpread", shape.spread) +
      constant("kTaken", chunk_channels) + constant("kGroupBlocks", group_blocks) +
      constant("kDistributedReduce", distributed_reduce ? 1 : 0) +
      constant("kHeld", persistent_packets) +
      constant("kAllPersistent", persistent_packets == packets ? 1 : 0) +
      constant("kAhead", schedule.ahead) + constant("kStaggers", schedule.staggers ? 1 : 0) +
      constant("kAsync", schedule.async ? 1 : 0) + persistent_typedef("PersistentX", x_type) +
      persistent_typedef("PersistentDy", dy_type) + arguments.struct_text() + programs;
  const std::vector<std::string_view> files = {
      "channel_norm_persistent.cuh",
      forward ? "channel_norm_persistent_forward.cuh" : "channel_norm_persistent_backward.cuh"};
  const KernelSource source = {"channel_norm_persistent", assemble(files, head)};
  if (group_blocks > 1) {
    Grid grid;
    grid.x = static_cast<unsigned>(ceil_div(groups, kThreads));
    result.launches.push_back({source, "channel_reset_counters", grid, kThreads, 0, arguments});
  }
  LaunchDesign launch{source,
                      forward ? "channel_normalise_persistent" : "channel_gradient_persistent",
                      {},
                      kThreads,
                      shared_bytes(),
                      arguments};
  launch.grid.x = static_cast<unsigned>(groups * group_blocks);
  launch.unaligned_function = launch.function + "_elements";
  launch.unaligned_grid = launch.grid;
  launch.cooperative = group_blocks > 1;
  result.launches.push_back(std::move(launch));
  return result;
}

bool ChannelNormPersistent::can_copy_async() const {
  constexpr std::int64_t kCopyBytes = 16;
  const auto fits = [&](const PointwiseProgram& program, DType dtype) {
    return program.is_plain_load() && program.stores.empty() &&
           shape.vector * bytes_of(dtype) == kCopyBytes;
  };
  return persistent_packets == packets && fits(shape.x, x_type) &&
         (shape.backward == nullptr || fits(shape.dy, dy_type));
}

std::vector<ChannelNormPersistent::Schedule> ChannelNormPersistent::schedule(
    bool has_other_tensors) const {
  // Measured on an H200: large NCHW groups are faster with packets loaded through registers, and
  // with the next chunk prefetched to L2 unless other tensors are read as well.
  const bool forward_short = shape.backward == nullptr && bytes_of(x_type) < 4;
  const bool prefers_async = shape.columns || group_blocks <= 16 || forward_short;
  const bool has_next = groups < chunks, staggers = can_stagger();
  const std::int64_t ahead =
      !shape.columns && has_next && groups > 1 && !has_other_tensors ? persistent_packets / 2 : 0;
  std::vector<Schedule> result;
  if (can_copy_async() && prefers_async) result.push_back({0, staggers, true});
  result.push_back({ahead, staggers && !shape.columns, false});
  if (has_next) result.push_back({ahead == 0 ? persistent_packets / 2 : 0, false, false});
  if (can_copy_async()) result.push_back({0, prefers_async ? false : staggers, true});
  return result;
}

double ChannelNormPersistent::traffic(const DeviceProps& device) const {
  const double tensors = shape.backward != nullptr ? 2 : 1;
  const double persistent_share =
      static_cast<double>(persistent_packets) / static_cast<double>(packets);
  double again = tensors * (1 - persistent_share);
  // Packets that are not persistent hit L2 if all groups' working sets take less than half of it.
  const double chunk = static_cast<double>(chunk_channels * shape.pixels * bytes_of(x_type));
  const double of_l2 =
      again * chunk * static_cast<double>(groups) / static_cast<double>(device.l2_bytes);
  if (of_l2 < 0.45) again *= 0.3;
  return (tensors + again + 1) / (tensors + 1);
}

// Measured on an H200: fractions of the nominal bandwidth, and seconds per chunk in which memory
// idles.
double ChannelNormPersistent::fraction(double bytes, bool async, const DeviceProps& device) const {
  const bool backward = shape.backward != nullptr, is_short = bytes_of(x_type) < 4;
  double share = backward ? (is_short ? 0.875 : 0.862) : 0.855;
  // Short row segments waste DRAM bandwidth.
  if (shape.columns && chunks > 1) {
    const std::int64_t piece = chunk_channels * shape.spread * bytes_of(x_type);
    share *= piece >= 512   ? 1.0
             : piece >= 256 ? 0.98
             : piece >= 128 ? 0.85
             : piece >= 64  ? 0.45
                            : 0.2;
  }
  double of_chunk = (!is_short  ? 3.3e-6
                     : backward ? 4e-6
                                : 7e-6) +
                    (shape.columns ? 3e-6 : 0) + 0.018e-6 * static_cast<double>(group_blocks);
  if (async) of_chunk *= shape.columns ? 0.8 : 0.65;
  const double reset = group_blocks > 1 ? 3e-6 : 0;  // the counter-reset launch
  const auto turns = static_cast<double>(ceil_div(chunks, groups));
  return bandwidth_fraction(share, bytes * traffic(device), turns * of_chunk + reset, device);
}

std::vector<std::int64_t> ChannelNormPersistent::choices(const ChannelNormShape& norm,
                                                         DType precision,
                                                         const DeviceProps& device) {
  const bool trains = norm.forward != nullptr ? !norm.given : norm.given;
  if (norm.outers != 1 || norm.width != 1 || !trains || !norm.simple) return {};
  const ChannelNormShape shape = traversed(norm);
  if (!shape.columns) {
    const ChannelNormPersistent persistent(shape, precision, 1, device);
    return persistent.persistent_packets > 0 ? std::vector<std::int64_t>{1}
                                             : std::vector<std::int64_t>{};
  }
  // The whole row, or segments short enough for shared memory and L2.
  std::vector<std::pair<double, std::int64_t>> found;
  for (std::int64_t parts = 1; parts <= shape.channels; ++parts) {
    const std::int64_t chunk_channels = shape.channels / parts,
                       columns = chunk_channels * shape.spread;
    const std::int64_t across = columns / shape.vector;
    if (shape.channels % parts != 0 || columns % shape.vector != 0 || across > kThreads) continue;
    if (kThreads / across * across < kLeastBusy || chunk_channels > kMaxTaken) continue;
    const ChannelNormPersistent persistent(shape, precision, chunk_channels, device);
    const auto bytes =
        static_cast<double>(shape.channels * shape.pixels * bytes_of(persistent.x_type) *
                            (shape.backward != nullptr ? 3 : 2));
    if (persistent.persistent_packets > 0)
      found.emplace_back(persistent.traffic(device) /
                             persistent.fraction(bytes, persistent.can_copy_async(), device),
                         chunk_channels);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::int64_t> result;
  for (const auto& [cost, chunk_channels] : found)
    if (result.size() < kMaxChoices) result.push_back(chunk_channels);
  return result;
}

}  // namespace ashlar::cuda

// Engine for batch, instance and group norm, forward and backward: persistent in shared memory or
// registers, or multi-launch with slices.
#include <fmt/format.h>

#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/channel_norm_persistent.hpp"
#include "cuda/engines/channel_norm_shape.hpp"
#include "cuda/engines/channel_norm_text.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/memory_bound.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

using Persistent = ChannelNormPersistent;

// Origin of the statistics; value of kStatistics.
enum class Source : std::uint8_t { scratch, operands };

std::int64_t register_bytes(const Region& region) { return region.precision() == f64 ? 8 : 4; }

// Workspace arguments: names, and sizes in elements.
struct Reserved {
  const char* name;
  std::int64_t count;
};
std::vector<Reserved> scratch_of(const ChannelNormShape& shape, const ChannelNormTiling& tiling,
                                 std::int64_t persistent_packets) {
  if (persistent_packets > 0) return {};
  const std::int64_t cells = shape.outers * shape.channels;
  const bool sums = !shape.given || shape.backward != nullptr;
  std::vector<Reserved> result = {{"partial", sums ? 2 * cells * tiling.slices : 0},
                                  {"mean", shape.given ? 0 : cells},
                                  {"inv_variance", shape.given ? 0 : cells}};
  if (shape.backward != nullptr)
    for (const char* name : {"cell_gradient", "cell_product", "mean_gradient", "mean_product"})
      result.push_back({name, cells});
  return result;
}

class ChannelNormDesigner {
 public:
  ChannelNormDesigner(const Graph& graph, const Region& region, const ChannelNormShape& shape,
                      const ChannelNormTiling& tiling)
      : graph_(graph), region_(region), shape_(shape), tiling_(tiling) {}

  KernelDesign design(std::int64_t blocks_at_once, std::int64_t persistent_packets) {
    persistent_packets_ = persistent_packets;
    if (shape_.outers * shape_.channels == 0) return {};
    add_numbers();
    const std::string programs = print_channel_norm(graph_, region_, shape_, arguments_);
    const std::string head =
        register_types(region_.precision(), shape_.programs()) +
        constant("kRank", shape_.x.space.rank()) + constant("kVector", shape_.vector) +
        constant("kThreads", ChannelNormTiling::kThreads) + constant("kBlocks", blocks_at_once) +
        constant("kUnroll", tiling_.unroll) + constant("kHeld", persistent_packets) +
        constant("kColumns", shape_.columns ? 1 : 0) +
        constant("kTeam", shape_.columns ? 1 : tiling_.team) +
        constant("kStatistics",
                 static_cast<int>(shape_.given ? Source::operands : Source::scratch)) +
        arguments_.struct_text() + programs;
    const bool forward = shape_.forward != nullptr;
    std::vector<std::string_view> files = {"channel_norm.cuh"};
    if (persistent_packets > 0)
      files = {"channel_norm_registers.cuh"};
    else
      files.push_back(forward ? "channel_norm_forward.cuh" : "channel_norm_backward.cuh");
    source_ = {"channel_norm", assemble(files, head)};
    if (persistent_packets > 0) {
      Grid grid;
      grid.x = static_cast<unsigned>(shape_.outers * shape_.groups);
      add_launch("channel_normalise_registers", grid, grid);
      return std::move(design_);
    }
    if (!shape_.given) {
      add_pass("channel_statistics");
      add_warps("channel_finish_statistics", shape_.outers * shape_.groups);
    }
    if (forward) {
      add_pass("channel_normalise");
      return std::move(design_);
    }
    add_pass("channel_gradients");
    add_warps("channel_finish_cells", shape_.outers * shape_.channels);
    if (shape_.width != 1) add_warps("channel_finish_groups", shape_.outers * shape_.groups);
    if (shape_.outers != 1 && (output_view(region_, NormBackward::dscale).present() ||
                               output_view(region_, NormBackward::dbias).present()))
      add_warps("channel_finish_parameters", shape_.channels);
    add_pass("channel_input_gradient");
    return std::move(design_);
  }

 private:
  void add_numbers() {
    add_extents(arguments_, shape_.x.space);
    const auto divisor = [&](const std::string& name, std::int64_t value) {
      arguments_.number(name, value);
      arguments_.number("magic_" + name, divider_word(value));
    };
    divisor("channels", shape_.channels);
    divisor("groups", shape_.groups);
    divisor("width", shape_.width);
    divisor("slices", tiling_.slices);
    const std::int64_t line = shape_.columns ? 1 : shape_.x.space[2];
    divisor("line_pixels", line);
    divisor("line_packets", line / (shape_.columns ? 1 : shape_.vector));
    arguments_.number("outers", shape_.outers);
    arguments_.number("pixels", shape_.pixels);
    arguments_.number("slice_pixels", tiling_.slice_pixels);
    arguments_.number("lanes", tiling_.lanes);
    arguments_.number("single_lanes", tiling_.single_lanes);
    arguments_.number("cells", shape_.outers * shape_.channels);
    arguments_.number("boxes", shape_.outers * shape_.groups);
    arguments_.number("units", shape_.outers * shape_.channels * tiling_.slices);
    for (const Reserved& reserved : scratch_of(shape_, tiling_, persistent_packets_)) {
      const int reservation =
          design_.scratch.add(reserved.name, reserved.count * register_bytes(region_));
      arguments_.scratch(reserved.name, reservation);
    }
  }

  void add_pass(const std::string& function) {
    add_launch(function, tiling_.grid, tiling_.single_grid);
  }
  void add_launch(const std::string& function, const Grid& grid, const Grid& unaligned) {
    LaunchDesign launch{source_, function, grid, ChannelNormTiling::kThreads, 0, arguments_};
    launch.unaligned_function = function + "_elements";
    launch.unaligned_grid = unaligned;
    design_.launches.push_back(std::move(launch));
  }
  void add_warps(const std::string& function, std::int64_t warps) {
    constexpr std::int64_t kWarps = ChannelNormTiling::kThreads / 32;
    Grid grid;
    grid.x = static_cast<unsigned>((warps + kWarps - 1) / kWarps);
    design_.launches.push_back(
        {source_, function, grid, ChannelNormTiling::kThreads, 0, arguments_});
  }

  const Graph& graph_;
  const Region& region_;
  const ChannelNormShape& shape_;
  const ChannelNormTiling& tiling_;
  Arguments arguments_;
  KernelSource source_;
  KernelDesign design_;
  std::int64_t persistent_packets_ = 0;
};

class ChannelNormEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.channel_norm"; }
  std::string_view description() const override {
    return "batch, instance and group norm, persistent or in slices merged in fixed order";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    const auto* forward = region.anchor_as<NormForward>();
    const auto* backward = region.anchor_as<NormBackward>();
    if (!forward && !backward) return Support::other_operation("the anchor is not a norm");
    const NormMode mode = forward ? forward->mode : backward->mode;
    if (mode != NormMode::batch && mode != NormMode::instance && mode != NormMode::group)
      return Support::no("the norm is per row");
    if (touches_unsupported(region))
      return Support::no("a ragged or complex tensor, or random numbers");
    const ChannelNormShape shape(region);
    for (const PointwiseProgram* program : shape.programs())
      if (reads_coordinates(*program)) return Support::no("a fused operation reads coordinates");
    if (shape.pixels == 0) return Support::no("the statistics are over 0 elements");
    if (!shape.simple) return Support::no("the spatial axes do not merge into one axis");
    if (shape.columns && shape.outers > kMaxGridY)
      return Support::no("{} images, at most {} are supported", shape.outers, kMaxGridY);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const ChannelNormShape shape(region);
    std::vector<Config> result;
    const auto add = [&](std::int64_t unroll, std::int64_t blocks, std::int64_t waves,
                         double fraction, std::int64_t persistent_packets = 0) {
      const ChannelNormTiling tiling(shape, static_cast<int>(unroll), blocks, waves, device);
      Config config;
      config.knobs = {{"unroll", unroll},
                      {"blocks", blocks},
                      {"waves", waves},
                      {"held", persistent_packets},
                      {"chunk_channels", 0}};
      config.cost = {.flops = region.flops(), .bytes = region.bytes(), .bytes_fraction = fraction};
      // The multi-launch reduction reads its input twice.
      if (persistent_packets == 0 && (!shape.given || shape.backward != nullptr)) {
        constexpr double kLaunches = 10e-6;
        const bool backward = shape.backward != nullptr;
        const int access =
            shape.vector * bit_width(persistent_type(shape.x, region.precision())) / 8;
        if (access < 16) fraction *= access == 8 ? 0.8 : access == 4 ? 0.75 : 0.5;
        config.cost.bytes *= backward ? 5.0 / 3.0 : 1.5;
        config.cost.bytes_fraction = bandwidth_fraction(fraction * (backward ? 1.03 : 0.98),
                                                        config.cost.bytes, kLaunches, device);
      }
      for (const Reserved& reserved : scratch_of(shape, tiling, persistent_packets))
        config.scratch_bytes += reserved.count * register_bytes(region);
      config.notes.runtime_compiled = true;
      result.push_back(std::move(config));
    };
    add_persistent(region, shape, device, result);
    // Registers for packets in flight: half as many packets backward, which streams two tensors.
    const std::int64_t most = shape.backward != nullptr ? 16 : 32;
    const std::int64_t unroll = std::min<std::int64_t>(most / shape.vector, 16);
    if (shape.persistent_packets() > 0) add(unroll, 2, 1, 0.8, shape.persistent_packets());
    add(unroll * 2, 2, 1, 0.85);
    add(unroll, 3, 1, 0.84);
    add(unroll * 2, 2, 4, 0.83);
    add(unroll, 3, 4, 0.82);
    add(unroll, 2, 1, 0.81);
    add(std::max<std::int64_t>(unroll / 2, 1), 4, 2, 0.80);
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    const ChannelNormShape shape(region);
    if (const std::int64_t chunk_channels = config.knob("chunk_channels"); chunk_channels > 0)
      return Persistent(Persistent::traversed(shape), region.precision(), chunk_channels, device)
          .design(graph, region,
                  {.ahead = config.knob("ahead"),
                   .staggers = config.knob("staggers") != 0,
                   .async = config.knob("async") != 0});
    const std::int64_t blocks = config.knob("blocks");
    const ChannelNormTiling tiling(shape, static_cast<int>(config.knob("unroll")), blocks,
                                   config.knob("waves"), device);
    return ChannelNormDesigner(graph, region, shape, tiling).design(blocks, config.knob("held"));
  }

 private:
  static void add_persistent(const Region& region, const ChannelNormShape& shape,
                             const DeviceProps& device, std::vector<Config>& result) {
    for (const std::int64_t chunk_channels :
         Persistent::choices(shape, region.precision(), device)) {
      const Persistent persistent(Persistent::traversed(shape), region.precision(), chunk_channels,
                                  device);
      const double own_bytes = static_cast<double>(shape.channels * shape.pixels) *
                               (shape.backward != nullptr ? 3 : 2) * bit_width(persistent.x_type) /
                               8;
      double order = 1;
      for (const Persistent::Schedule& schedule :
           persistent.schedule(region.bytes() > 1.1 * own_bytes)) {
        Config config;
        config.knobs = {{"chunk_channels", chunk_channels},
                        {"ahead", schedule.ahead},
                        {"staggers", schedule.staggers ? 1 : 0},
                        {"async", schedule.async ? 1 : 0}};
        config.cost = {
            .flops = region.flops(),
            .bytes = region.bytes() * persistent.traffic(device),
            .bytes_fraction =
                order * persistent.fraction(region.bytes(), persistent.can_copy_async(), device)};
        for (const auto& [name, bytes] : persistent.scratch(region.precision()))
          config.scratch_bytes += bytes;
        config.notes.runtime_compiled = true;
        result.push_back(std::move(config));
        order *= 0.98;
      }
    }
  }
};

}  // namespace

const CudaEngine& channel_norm_engine() {
  static const ChannelNormEngine engine;
  return engine;
}

}  // namespace ashlar::cuda

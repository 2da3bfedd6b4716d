// Backward-filter convolutions (wgrad) on Hopper: TMA loads, wgmma, and a split-K reduction in a
// second launch.
#include <algorithm>
#include <array>

#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/engines/sm90/wgrad_shape.hpp"
#include "cuda/engines/split_k_reduce.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/engines/unaligned_fallback.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "cuda/text/wgmma_text.hpp"

namespace ashlar::cuda {

namespace {

using Tiling = WgradTiling;

// Of the TMA producer warpgroup, and of one that also transposes dy.
constexpr int kProducerRegisters = 40, kTransposingRegisters = 56;

std::string constants(const WgradShape& shape, const WgradTile& tile, const Tiling& tiling) {
  std::string text;
  constexpr std::array<char, 3> kAxes = {'D', 'H', 'W'};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto add = [&](const char* name, std::int64_t value) {
      text += constant(std::string(name) + kAxes[axis], value);
    };
    add("kWindow", shape.window[axis]);
    add("kStride", shape.stride[axis]);
    add("kDilation", shape.dilation[axis]);
    add("kPadding", shape.padding[axis]);
  }
  const DType operands = tile.transposed ? f32 : shape.x.view.dtype == f16 ? f16 : bf16;
  text += print_wgmma("Mma", {.a = operands,
                              .b = operands,
                              .n = tile.transposed ? 64 * tile.dy_boxes : tile.columns(),
                              .transpose_a = !tile.transposed,
                              .transpose_b = !tile.transposed});
  text +=
      constant("kConsumers", tile.consumers()) + constant("kBlocks", tile.blocks) +
      constant("kRank", shape.rank()) + constant("kFlip", shape.flips ? 1 : 0) +
      constant("kDyBoxes", tile.dy_boxes) + constant("kXBoxes", tile.x_boxes) +
      constant("kTapRows", tile.tap_rows) + constant("kTapsAcross", tile.taps_across) +
      constant("kRowBlocks", tile.row_blocks) + constant("kRows", tile.rows) +
      constant("kDyWidth", tile.width) + constant("kSegments", tile.segments) +
      constant("kStages", tile.stages) + constant("kXWidth", tiling.x_width) +
      constant("kXRows", tiling.x_rows) + constant("kSegmentGroups", tiling.segment_groups) +
      constant("kXPitch", tiling.x_pitch) + constant("kParts", tile.parts) +
      constant("kProducerRegisters", tile.transposed ? kTransposingRegisters : kProducerRegisters) +
      constant("kGroupsPerTile", shape.side) +
      constant("kGroupFilters", shape.filters / shape.side) +
      constant("kGroupChannels", shape.channels / shape.side);
  if (tile.parts > 1)
    text += constant("kDyPieceRows", tiling.dy_piece_rows) +
            constant("kXPieceRows", tiling.x_piece_rows) + constant("kRawSlots", tiling.raw_slots);
  return text;
}

std::vector<WgradTile> tiles_of(const WgradShape& shape, const DeviceProps& device) {
  if (!shape.is_f32()) return wgrad_tiles(shape, 1, false, device);
  std::vector<WgradTile> result = wgrad_tiles(shape, 1, true, device);
  for (const int parts : {2, 3})
    for (const WgradTile& tile : wgrad_tiles(shape, parts, false, device)) result.push_back(tile);
  return result;
}

// Of the calibration: kernels with transposed stages are calibrated apart from those by segments.
int variant_of(const WgradTile& tile) {
  constexpr int kTransposed = 16;
  return tile.transposed ? kTransposed : tile.segments;
}

class ConvWgradSm90Engine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.conv_wgrad_sm90"; }
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  std::string_view description() const override {
    return "backward-filter convolutions with TMA and wgmma (sm_90a)";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    WgradShape shape;
    if (Support support = describe(region, shape); !support) return support;
    if (Support support = requires_hopper(device); !support) return support;
    if (tiles_of(shape, device).empty()) return Support::no("no tile fits into shared memory");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    WgradShape shape;
    describe(region, shape);
    std::vector<Config> result;
    for (const WgradTile& tile : tiles_of(shape, device)) {
      const Tiling tiling(shape, tile);
      Config& config = result.emplace_back();
      config.knobs = knobs_of(tile);
      const std::int64_t sum_bytes = SplitKReduction{shape.epilogue, tile.splits}.bytes();
      config.scratch_bytes = sum_bytes + shape.x.scratch_bytes + shape.dy.scratch_bytes;
      const auto blocks = static_cast<double>(tiling.blocks);
      const double stages = static_cast<double>(tiling.tiles * tiling.stage_count) / blocks;
      // Tiles that a CTA has a part of.
      const double ends = tile.blocks > 0 ? static_cast<double>(tiling.tiles) / blocks + 1 : 1;
      const double sums = 64.0 * tile.dy_boxes * tile.tap_rows * tile.columns();
      const double pixels = stages * static_cast<double>(tile.segments * tiling.segment_groups * 8);
      config.cost =
          tile_cost({.engine = id(),
                     .operands = shape.x.view.dtype,
                     .tile_m = tile.dy_boxes * 64,
                     .tile_n = tile.tap_rows * tile.columns(),
                     .variant = variant_of(tile),
                     .tiles = blocks,
                     .flops = 2 * sums * pixels,
                     .load_bytes = stages * static_cast<double>(tiling.loaded_bytes) *
                                   (tile.blocks > 0 ? kApartBytes : 1),
                     .store_bytes = ends * sums * sizeof(float),
                     .memory_bytes = region.bytes() + 2.0 * static_cast<double>(sum_bytes) +
                                     shape.x.moved_bytes + shape.dy.moved_bytes,
                     .launches = 2 + (shape.x.pack ? 1 : 0) + (shape.dy.pack ? 1 : 0),
                     // Products of bf16 instead of one of tf32, at twice its rate.
                     .efficiency = (tile.parts > 1 ? 2.0 / tile.products() : 1.0) *
                                   wgrad_efficiency(tile, tiling)},
                    device, region.precision());
      config.notes.runtime_compiled = true;
      config.notes.tf32 = shape.is_f32() && tile.parts < 3;
      config.notes.truncating_accumulation = tile.parts < 3;
    }
    sort_by_cost(result, device, region.precision());
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    WgradShape shape;
    describe(region, shape);
    const WgradTile tile = wgrad_tile_of(config, shape);
    const Tiling tiling(shape, tile);

    KernelDesign result;
    result.unaligned = unaligned_fallback(graph, region, config, device);
    SplitKReduction sum{
        .epilogue = shape.epilogue, .parts = tile.splits, .is_dependent_launch = true};
    sum.reservation = result.scratch.add("split-K partials", sum.bytes());
    LaunchDesign launch;
    Arguments& arguments = launch.arguments;
    const auto map = [&](const std::string& name, const RepackedOperand& operand,
                         const TensorMapForm& form) {
      if (!operand.pack) {
        arguments.tensor_map(name, operand.view, form);
        return;
      }
      const int reservation = result.scratch.add(name, operand.scratch_bytes);
      result.launches.push_back(repack(graph, *operand.pack, reservation));
      arguments.tensor_map_of_scratch(name, reservation, form);
    };
    map("map_x", shape.x, tiling.map_x(shape, tile));
    map("map_dy", shape.dy, tiling.map_dy(shape, tile));
    arguments.scratch("partial", sum.reservation);
    arguments.number("filters", shape.filters);
    arguments.number("all_filters", shape.all_filters);
    arguments.number("channels", shape.channels);
    arguments.number("tiles", tiling.tiles);
    arguments.number("tiles_k", tiling.tiles_k);
    arguments.number("tiles_c", tiling.tiles_c);
    arguments.number("tap_blocks_h", tiling.tap_blocks_h);
    arguments.number("tap_blocks_w", tiling.tap_blocks_w);
    arguments.number("splits", tile.splits);
    arguments.number("stage_count", tiling.stage_count);
    arguments.number("segments_w", tiling.segments_w);
    arguments.number("segments_h", tiling.segments_h);
    arguments.number("to_d", shape.to[0]);
    arguments.number("to_h", shape.to[1]);
    arguments.number("to_w", shape.to[2]);
    std::vector<std::string_view> files = {"sm90/wgrad.cuh"};
    if (tile.transposed) {
      files.push_back("sm90/wgrad_transposed.cuh");
    } else {
      files.push_back("sm90/wgrad_mma.cuh");
      files.push_back(tile.parts > 1 ? "sm90/wgrad_bf16_split.cuh" : "sm90/wgrad_direct.cuh");
    }
    launch.source = {"wgrad",
                     assemble(files, constants(shape, tile, tiling) + arguments.struct_text())};
    launch.function = "wgrad";
    launch.threads = static_cast<unsigned>((tile.consumers() + 1) * 128);
    launch.shared_bytes = static_cast<unsigned>(tiling.shared_bytes);
    launch.grid.x = static_cast<unsigned>(tiling.blocks);
    result.launches.push_back(std::move(launch));
    result.launches.push_back(split_k_reduce(graph, sum, region.precision()));
    return result;
  }
};

}  // namespace

const CudaEngine& conv_wgrad_sm90_engine() {
  static const ConvWgradSm90Engine engine;
  return engine;
}

}  // namespace ashlar::cuda

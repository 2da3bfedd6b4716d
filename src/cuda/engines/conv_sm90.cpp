// Forward and backward-data convolutions on Hopper: implicit GEMM with TMA im2col loads and wgmma.
#include <algorithm>
#include <array>

#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/computed_pixels.hpp"
#include "cuda/engines/sm90/gemm_kernel.hpp"
#include "cuda/engines/sm90/packed_groups.hpp"
#include "cuda/engines/sm90/pixel_tails.hpp"
#include "cuda/engines/sm90/pixel_tiling.hpp"
#include "cuda/engines/sm90/residual_prefetch.hpp"
#include "cuda/engines/sm90/stream_k_tiles.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/engines/unaligned_fallback.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

using Phase = ImplicitGemm::Phase;

// Variants for the cost model besides those of GemmTile: packed groups, and a single group.
constexpr int kPackedGroupsVariant = 32, kSingleVariant = 33;
constexpr int kDeepVariant = 128;  // added: TMA stores behind a long mainloop

// How pixels get to shared memory: the knob "windows".
enum Windows : std::int64_t {
  kForEachTap,    // im2col load per tap
  kOnce,          // a halo window for all taps
  kPackedGroups,  // the same for packed groups
};

// The phase table of kernels/sm90/tile_scheduler_conv.cuh, and its taps.
void add_phases(Arguments& arguments, const PixelTiling& tiling, const std::vector<int>& maps) {
  const PixelShape& shape = tiling.shape;
  std::vector<std::int64_t> words, taps;
  std::int64_t tiles = 0;
  for (std::size_t i = 0; i < shape.product.phases.size(); ++i) {
    const Phase& phase = shape.product.phases[i];
    const auto count = static_cast<std::int64_t>(phase.taps.size());
    words.insert(words.end(), {tiles, tiling.tiles_m(phase), shape.pixel_count(phase), maps[i],
                               static_cast<std::int64_t>(taps.size()), count, divider_word(count)});
    const auto add = [&](const ImplicitGemm::Axes& axes) {
      words.insert(words.end(), {axes[2], axes[1], axes[0]});
    };
    add(phase.extent);
    add({divider_word(phase.extent[0]), divider_word(phase.extent[1]),
         divider_word(phase.extent[2])});
    add(phase.lower);
    add(phase.first);
    add(phase.result);
    words.push_back(phase.planes());
    for (const ImplicitGemm::Tap& tap : phase.taps)
      taps.push_back(tap.filter | tap.offset[2] << 16 | tap.offset[1] << 32 | tap.offset[0] << 48);
    tiles += tiling.count(phase);
  }
  arguments.numbers("phases", words);
  arguments.numbers("taps", taps);
  arguments.number("tile_count", tiles);
  constexpr std::array<char, 3> kAxes = {'d', 'h', 'w'};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    arguments.number(fmt::format("step_{}", kAxes[axis]), shape.product.step[axis]);
    arguments.number(fmt::format("spread_{}", kAxes[axis]), shape.product.phases[0].step[axis]);
  }
}

// Bits per result of operands that have the shape of the result.
double added_bits(const PointwiseProgram& program) {
  double bits = 0;
  for (const PointwiseProgram::Step& step : program.steps)
    if (loads_per_result(step, program)) bits += bit_width(step.view.dtype);
  return bits;
}

// The im2col maps; phases with the same bounding box share one. Returns the map index of each
// phase.
std::vector<int> add_pixel_maps(Arguments& arguments, const PixelShape& shape, int reservation,
                                int depth_bytes, std::int64_t pixels) {
  if (shape.computed) return std::vector<int>(shape.product.phases.size(), 0);
  std::vector<int> result;
  std::vector<const Phase*> distinct;
  for (const Phase& phase : shape.product.phases) {
    const auto same = std::find_if(distinct.begin(), distinct.end(), [&](const Phase* other) {
      return phase.taps.empty() || (phase.lower == other->lower && phase.upper == other->upper);
    });
    result.push_back(static_cast<int>(same - distinct.begin()));
    if (same != distinct.end()) continue;
    const TensorMapForm form = shape.pixel_map(phase, static_cast<int>(pixels), depth_bytes);
    const std::string name = fmt::format("map_pixels{}", distinct.size());
    if (reservation < 0)
      arguments.tensor_map(name, shape.pixels.view, form);
    else
      arguments.tensor_map_of_scratch(name, reservation, form);
    distinct.push_back(&phase);
  }
  return result;
}

class ConvSm90Engine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.conv_sm90"; }
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  std::string_view description() const override {
    return "implicit-GEMM convolutions with TMA im2col and wgmma (sm_90a)";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    if (Support support = is_pixel_shape(region); !support) return support;
    return requires_hopper(device);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const PixelShape shape(region);
    const auto windows = shape.with_windows();
    std::vector<Config> result;
    const bool has_windows = windows.has_value() && !promotes(shape.pixel_type);
    const auto may_take = [&](const GemmTile& tile) {
      return region.reductions.empty() ||
             has_room_for_tails(tile, region.reductions.size(), shape.computed.has_value());
    };
    const auto add_windows = [&](const PixelShape& with, const GemmTile& tile) {
      const WindowStages stages = window_stages(with, tile, device);
      if (stages.rows > 0 && may_take(tile))
        result.push_back(config_of(region, with, tile, &stages, device));
    };
    bool is_narrow = false;
    if (!shape.computed && (windows || shape.pointwise)) {
      const PixelShape& whole = windows ? *windows : shape;
      for (const GemmTile& tile : PackedGroups::tiles(whole))
        if (const auto group_pack = PackedGroups::of(whole, tile, device)) {
          const WindowStages stages = window_stages(*group_pack, tile);
          result.push_back(
              config_of(region, group_pack->packed_shape(whole), tile, &stages, device));
          // Kernels for packed groups exclude all others, which took 2 to 5 times as long.
          is_narrow = group_pack->side > 1;
        }
    }
    const auto stored = [](const View& view) {
      return element_count(view.dims) * bit_width(view.dtype) / 8;
    };
    OperandBytes factors{.row_bytes = stored(region.anchor->inputs[0]),
                         .column_bytes = stored(region.anchor->inputs[1]),
                         .columns = shape.product.columns};
    if (shape.swap) std::swap(factors.row_bytes, factors.column_bytes);
    if (!is_narrow) {
      // Ties go to the first: resident filters, which need no multicast, with TMA stores.
      for (const GemmTile& tile : pixel_tiles(shape)) {
        const auto boxes =
            region.reductions.empty() ? with_boxes(shape, tile) : std::optional<GemmTile>();
        // Producers that compute pixels leave no registers for the largest tile and its addresses.
        const bool has_room = !shape.computed || tile.m * tile.n <= 128 * 128;
        // Nor do resident filters with a residual, for wide tiles with TMA stores.
        const bool is_full = boxes && tile.n > 128 && added_bits(shape.epilogue) > 0;
        if (has_windows && shape.has_one_tap() && tile.cluster == 1 && tile.producers == 1 &&
            has_room && !is_full)
          add_windows(shape, boxes.value_or(tile));
        const bool ends_soon = boxes && is_short(shape, tile);
        if (ends_soon) result.push_back(config_of(region, shape, *boxes, nullptr, device));
        // 16-bit results: with TMA stores 2 % slower at worst, up to a fifth faster (H200).
        if ((ends_soon && shape.pixel_type != f32) || !may_take(tile)) continue;
        const PixelTiling tiling{shape, tile};
        add_configs(
            tile, tiling.count(), region.reductions.empty() ? tiling.split_k_blocks() : 0, factors,
            [&](const GemmTile& one) { return config_of(region, shape, one, nullptr, device); },
            device, region.precision(), result);
        if (boxes && !ends_soon)
          result.push_back(config_of(region, shape, *boxes, nullptr, device));
      }
      if (has_windows && !shape.has_one_tap())
        for (const GemmTile& tile : pixel_tiles(*windows))
          if (tile.producers == 1) add_windows(*windows, tile);
    }
    sort_by_cost(result, device, region.precision());
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    const std::int64_t way = config.knob("windows");
    const PixelShape plain(region),
        of_groups = way == kForEachTap || plain.pointwise ? plain : *plain.with_windows();
    GemmTile tile = tile_of(config);
    tile.boxes = static_cast<int>(config.knob("boxes"));
    const PackedGroups group_pack =
        way == kPackedGroups ? *PackedGroups::of(of_groups, tile, device) : PackedGroups{};
    const PixelShape shape = way == kPackedGroups ? group_pack.packed_shape(of_groups) : of_groups;
    const ImplicitGemm& product = shape.product;
    const View result_view = shape.epilogue.stores[0].view;
    const PixelTiling tiling{shape, tile};
    const TileWaves waves(tile, tiling.count(), device);
    WindowStages windows;
    if (way == kOnce) windows = window_stages(shape, tile, device);
    if (way == kPackedGroups) windows = window_stages(group_pack, tile);

    KernelDesign result;
    const auto bring = [&](const RepackedOperand& operand, const char* name) {
      if (!operand.pack) return -1;
      const int reservation = result.scratch.add(name, operand.scratch_bytes);
      result.launches.push_back(repack(graph, *operand.pack, reservation));
      return reservation;
    };
    const int pixel_reservation = bring(shape.pixels, "pixels"),
              filter_reservation = bring(shape.filters, "filters");
    const std::int64_t blocks = tile.splits > 1 || tile.streams
                                    ? waves.grid
                                    : tiling.clusters(device, windows.resident) * tile.cluster;
    GemmTails tails = pixel_tails(region, tiling, blocks);
    tails.scratch_layout(result.scratch);
    result.unaligned = tails.empty() ? unaligned_fallback(graph, region, config, device)
                                     : tails.unaligned(graph, region, device);

    LaunchDesign& launch = result.launches.emplace_back();
    Arguments& arguments = launch.arguments;
    const std::vector<int> maps =
        add_pixel_maps(arguments, shape, pixel_reservation, tile.depth_bytes,
                       way != kForEachTap ? windows.rows
                       : shape.swap       ? tile.n
                                          : tile.m);
    const TensorMapForm filter_map =
        way == kPackedGroups
            ? group_pack.filter_map(shape)
            : shape.filter_map((shape.swap ? tile.m : tile.n) / tile.cluster, tile.depth_bytes);
    if (filter_reservation < 0)
      arguments.tensor_map("map_filters", shape.filters.view, filter_map);
    else
      arguments.tensor_map_of_scratch("map_filters", filter_reservation, filter_map);
    add_phases(arguments, tiling, maps);
    arguments.number("whole_tiles", waves.whole);
    const StreamKTiles stream_k{tile, waves, tiling.split_k_blocks()};
    stream_k.add_arguments(result.scratch, arguments);
    arguments.number("tiles_n", tiling.tiles_n(product.phases[0]));
    arguments.number("group_m", windows.resident ? 1 : tiling.band(device));
    arguments.number("k_blocks", tiling.k_blocks());
    arguments.number("depth", product.depth);
    arguments.number("columns", product.columns);
    arguments.number("all_columns", of_groups.product.columns * of_groups.product.groups);
    const std::int64_t image_pixels = product.phases[0].pixels_of_image();
    arguments.number("image_pixels", image_pixels);
    arguments.number("magic_image_pixels", divider_word(image_pixels));
    add_extents(arguments, shape.epilogue.space);
    tails.add_arguments(arguments);
    if (!tails.empty())
      arguments.number("tail_across", product.groups * tiling.tiles_n(product.phases[0]));
    PointwiseProgram epilogue = shape.epilogue;
    std::string of_results;
    if (tile.boxes > 0) {
      epilogue.result = epilogue.stores[0].value;
      epilogue.stores.erase(epilogue.stores.begin());
      of_results = fmt::format("typedef {} Result;\n", to_string(result_view.dtype));
    }
    if (tile.boxes > 0) arguments.tensor_map("map_results", result_view, *shape.result_map());
    // Producers that compute pixels leave no registers for it.
    const std::optional<View> residual = tile.boxes > 0 && !shape.computed
                                             ? residual_view(shape.epilogue, shape.vector, graph)
                                             : std::optional<View>();
    const bool has_residual = residual.has_value();
    // To pipeline stages, where pixels have no pipeline of their own.
    ResidualStages in_pipeline;
    if (has_residual && way == kForEachTap) {
      const auto map = shape.row_map(*residual, kResidualBoxRows);
      if (map) in_pipeline = residual_stages(tile, result_view.dtype, device);
      if (in_pipeline.stages > 0) arguments.tensor_map("map_residual", *residual, *map);
    }
    std::string printed =
        tile.boxes > 0 && !has_residual
            ? print_empty_prefetch(epilogue.space.rank()) +
                  print_program(epilogue, graph, "epilogue", arguments, result_view.dtype)
            : print_program_with_prefetch(epilogue, graph, "epilogue", arguments,
                                          tile.boxes > 0 ? result_view.dtype : f32);
    printed += print_residual_prefetch(in_pipeline.stages > 0 ? PointwiseProgram() : shape.epilogue,
                                       tile.n, graph, arguments) +
               print_pixels(shape, graph, arguments);
    GemmKernel kernel{.name = "conv_sm90",
                      .precision = region.precision(),
                      .programs = {&shape.epilogue},
                      .tile = tile,
                      .stages = way != kForEachTap ? windows.filters : stage_count(tile, device),
                      .printed = printed,
                      .mainloop = way == kPackedGroups ? GemmMainloop::packed_groups
                                  : way == kOnce       ? GemmMainloop::halo_windows
                                                       : GemmMainloop::k_blocks,
                      .tails = &tails,
                      .tail_place = "sm90/tails_pixels.cuh"};
    if (shape.computed) kernel.programs.push_back(&shape.computed->program);
    kernel.form = {.a = shape.swap ? shape.filter_type : shape.pixel_type,
                   .b = shape.swap ? shape.pixel_type : shape.filter_type,
                   .transpose_a = shape.swap && shape.columns_contiguous,
                   .transpose_b = !shape.swap && shape.columns_contiguous,
                   .vector = shape.vector,
                   .rank = shape.epilogue.space.rank(),
                   .computes_a = shape.computed && !shape.swap,
                   .computes_b = shape.computed && shape.swap,
                   .columns = group_pack.columns,
                   .has_whole_tiles = waves.whole > 0,
                   .has_tails = !tails.empty(),
                   .residual = in_pipeline,
                   .results = in_pipeline.stages > 0 ? result_view.dtype : bf16};
    kernel.constants =
        of_results + constant("kHasResidual", has_residual) +
        constant("kPhases", static_cast<std::int64_t>(product.phases.size())) +
        constant("kInterleavesPhases", tiling.phases_are_equal() && product.phases.size() > 1) +
        constant("kPixelAxes", shape.pointwise ? 0 : product.spatial) +
        constant("kSwap", shape.swap) + constant("kColumnsContiguous", shape.columns_contiguous) +
        constant("kWhole", shape.whole) + constant("kWindowRows", windows.rows) +
        constant("kInPlanes", product.phases[0].planes() > 1) +
        constant("kPaddedLines", way != kForEachTap && !shape.has_one_tap()) +
        constant("kWindowStages", windows.windows) + constant("kResident", windows.resident) +
        (way == kPackedGroups ? group_pack.constants(shape) : constant("kGroupsPerTile", 0)) +
        constant("kUsedColumns", std::min<std::int64_t>(tile.n, product.columns));
    kernel.files = {tile.boxes > 0 ? "lib/epilogue_tma_store.cuh" : "lib/epilogue_rows.cuh",
                    tile.streams ? "sm90/stream_k.cuh" : "sm90/split_k.cuh",
                    "sm90/tile_scheduler_conv.cuh", "sm90/load_im2col.cuh"};
    if (shape.computed)
      kernel.files.insert(kernel.files.end(),
                          {"sm90/prologue_pieces.cuh", "sm90/prologue_pixels.cuh"});
    kernel.set(launch);
    if (way != kForEachTap) launch.shared_bytes = windows.bytes;
    launch.cluster = waves.cluster;
    launch.grid.x = static_cast<unsigned>(blocks);
    stream_k.add_reset(result.launches);
    if (!tails.empty()) result.launches.push_back(tails.sum(graph));
    return result;
  }

 private:
  // `windows`: null where pixels are loaded for each tap.
  Config config_of(const Region& region, const PixelShape& shape, const GemmTile& tile,
                   const WindowStages* windows, const DeviceProps& device) const {
    const ImplicitGemm& product = shape.product;
    const PixelTiling tiling{shape, tile};
    const TileWaves waves(tile, tiling.count(), device);
    const bool keeps_columns = windows != nullptr && windows->resident;
    const GemmTails tails =
        pixel_tails(region, tiling, tiling.clusters(device, keeps_columns) * tile.cluster);
    const double element = bit_width(shape.pixel_type) / 8.0;
    double pixels = 0, taps = 0;  // average taps per pixel
    for (const Phase& phase : product.phases) {
      const auto count = static_cast<double>(shape.pixel_count(phase));
      pixels += count;
      taps += count * static_cast<double>(phase.taps.size());
    }
    taps /= pixels;
    // A halo window is loaded once for every plane of taps.
    const auto planes = static_cast<double>(product.phases[0].planes());
    double result_bytes = region.bytes();
    for (const View& input : {region.anchor->inputs[0], region.anchor->inputs[1]})
      result_bytes -= static_cast<double>(element_count(input.dims)) * bit_width(input.dtype) / 8;
    const auto area = static_cast<double>(tile.m) * tile.n;
    const double depth_bytes =
        static_cast<double>(tiling.k_blocks()) * static_cast<double>(tile.depth_bytes);
    const double pixel_rows = windows != nullptr ? planes * static_cast<double>(windows->rows)
                              : shape.swap       ? taps * tile.n
                                                 : taps * tile.m;
    const double filter_rows = windows != nullptr && windows->resident
                                   ? 0.0
                                   : taps * (shape.swap ? tile.m : tile.n) / tile.cluster;
    // A narrow stage has a fixed cost, whatever it holds, with two TMA loads or one (16 to 64
    // channels, 16 to 64 filters on an H200).
    constexpr double kStageClocks = 420, kTapClocks = 350;
    constexpr double kProductsPerClock = 4096;  // bytes x rows x columns
    const double stage_clocks = area * tile.depth_bytes / kProductsPerClock,
                 least_clocks = windows == nullptr ? kStageClocks : kTapClocks;
    const bool is_narrow = tile.n < 64 || tile.depth_bytes < 128;
    const double stage_share = is_narrow ? std::min(stage_clocks / least_clocks, 1.0) : 1.0;
    const bool is_deep = tile.boxes > 0 && !is_short(shape, tile);
    const double results = pixels * static_cast<double>(product.columns * product.groups);
    // Ping-pong tiles with a long mainloop load faster than the L2 bandwidth of the model (H200: 50
    // bytes per clock and SM, the model has 41). Then TMA is the limit, which takes three times as
    // long for a pixel outside of the image (256 channels on images of 33, 128 x 128, dilation 6,
    // 12 and 18 with 23, 43 and 60 % outside: 218, 276 and 311 us).
    const double load_share =
        is_deep && tile.ping_pong ? std::max(0.82, 0.68 * (1 + 1.05 * product.outside())) : 1.0;
    // Behind a long mainloop the residual is loaded through the pipeline, not when the tile ends.
    const double added_bytes =
        is_deep ? std::min(added_bits(shape.epilogue) / 8 * results, result_bytes) : 0.0;
    const double computed_share =
        producer_share(shape, tile, windows != nullptr ? windows->rows : 0, taps);
    Config config;
    config.knobs = knobs_of(tile);
    const int side = windows != nullptr ? std::max(windows->side, 1) : 1;
    const bool has_packed_groups = windows != nullptr && windows->side > 0;
    config.knobs.emplace_back("windows", has_packed_groups    ? kPackedGroups
                                         : windows != nullptr ? kOnce
                                                              : kForEachTap);
    config.knobs.emplace_back("boxes", tile.boxes);
    config.cost = tile_cost(
        {.engine = id(),
         .operands = shape.pixel_type,
         .tile_m = tile.m,
         .tile_n = tile.n,
         .variant = has_packed_groups ? (product.groups > 1 ? kPackedGroupsVariant : kSingleVariant)
                                      : tile.variant() + (windows != nullptr ? 4 : 0) +
                                            (is_deep ? kDeepVariant : 0),
         .tiles = static_cast<double>(waves.whole * tile.cluster),
         .flops = 2 * area * taps * depth_bytes / element / side,
         .load_bytes = depth_bytes * (pixel_rows + filter_rows) * load_share,
         .store_bytes = std::max(result_bytes - added_bytes, 0.0) * area / results,
         .memory_bytes =
             region.bytes() + shape.moved_bytes() + static_cast<double>(tails.scratch_bytes()),
         .cluster = tile.cluster,
         .split_tiles = static_cast<double>(waves.split * tile.cluster),
         .splits = tile.splits,
         .streams = tile.streams,
         .persistent = tile.ping_pong,
         .launches = 1 + (shape.pixels.pack ? 1 : 0) + (shape.filters.pack ? 1 : 0) +
                     (tails.empty() ? 0 : 1) + (tile.streams ? 1 : 0),
         .efficiency =
             has_packed_groups ? windows->efficiency : std::min(stage_share, computed_share)},
        device, region.precision());
    config.scratch_bytes = shape.scratch_bytes() + tails.scratch_bytes() +
                           StreamKTiles{tile, waves, tiling.split_k_blocks()}.scratch_bytes();
    note_precision(shape.pixel_type, shape.pixel_type == f32, config);
    return config;
  }
};

}  // namespace

const CudaEngine& conv_sm90_engine() {
  static const ConvSm90Engine engine;
  return engine;
}

}  // namespace ashlar::cuda

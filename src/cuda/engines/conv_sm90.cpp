// Convolutions on Hopper, forward and backward-data: the copy engine gathers pixels tap by tap,
// warpgroups multiply them by the filters.
#include <algorithm>
#include <array>

#include "base/ceil_div.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/group_bundle.hpp"
#include "cuda/engines/sm90/pixel_shape.hpp"
#include "cuda/engines/sm90/product_tile.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

using Phase = PixelProduct::Phase;

constexpr int kBoxBytes = 128;  // of a box with contiguous columns
// Pixels of a tile whose windows stay in shared memory: fewer need too many more around them.
constexpr int kLeastWindow = 128;
// For the cost model, past those of ProductTile: groups side by side, and no groups.
constexpr int kBundleVariant = 32, kSingleVariant = 33;

// How pixels come to shared memory: the knob "windows".
enum Windows : std::int64_t {
  kForEachTap,  // loaded anew
  kOnce,        // stay for all taps
  kBundles,     // the same for groups side by side
};

// The tiles of a shape.
struct Tiling {
  const PixelShape& shape;
  const ProductTile& tile;

  std::int64_t rows(const Phase& phase) const {
    return shape.swap ? shape.product.columns : shape.pixel_count(phase);
  }
  // In units of a cluster's blocks.
  std::int64_t tiles_m(const Phase& phase) const {
    return ceil_div(rows(phase), static_cast<std::int64_t>(tile.m) * tile.cluster);
  }
  std::int64_t tiles_n(const Phase& phase) const {
    return ceil_div(shape.swap ? shape.pixel_count(phase) : shape.product.columns, tile.n);
  }
  std::int64_t count(const Phase& phase) const {
    return shape.product.groups * tiles_m(phase) * tiles_n(phase);
  }
  std::int64_t count() const {
    std::int64_t sum = 0;
    for (const Phase& phase : shape.product.phases) sum += count(phase);
    return sum;
  }
  bool phases_are_equal() const {
    const std::vector<Phase>& phases = shape.product.phases;
    return std::all_of(phases.begin(), phases.end(),
                       [&](const Phase& phase) { return count(phase) == count(phases[0]); });
  }
  std::int64_t depth_blocks() const {
    return ceil_div(shape.product.depth * (bit_width(shape.pixel_type) / 8), tile.depth_bytes);
  }
  // Clusters of blocks that walk through them. `keeps_columns`: each has tiles of the same columns,
  // whose number then divides the clusters' (with group_m = 1).
  std::int64_t clusters(const DeviceProps& device, bool keeps_columns) const {
    const std::int64_t all = std::min<std::int64_t>(count(), device.compute_units / tile.cluster);
    return keeps_columns ? all - all % tiles_n(shape.product.phases[0]) : all;
  }
  // Whether few enough multiprocessors are left over.
  bool can_keep_columns(const DeviceProps& device) const {
    const std::int64_t all = clusters(device, false);
    return clusters(device, true) * 8 >= all * 7;
  }
  // Rows of tiles that run side by side with all their columns, or with kSwap all rows: the pixels
  // are then read from memory once.
  std::int64_t band(const DeviceProps& device) const {
    const Phase& phase = shape.product.phases[0];
    if (shape.swap) return tiles_m(phase);
    const auto phases =
        phases_are_equal() ? static_cast<std::int64_t>(shape.product.phases.size()) : 1;
    return std::max<std::int64_t>(1, device.compute_units / tile.cluster / tiles_n(phase) / phases);
  }
};

// `blocks` of the grid.
ProductTails tails_of(const Region& region, const Tiling& tiling, std::int64_t blocks) {
  const ProductTile& tile = tiling.tile;
  TailParts parts{.warps = blocks * tile.consumers * 4};
  for (const Phase& phase : tiling.shape.product.phases) {
    parts.rows += tiling.tiles_m(phase) * tile.cluster * tile.sharers();
    parts.columns += tiling.tiles_n(phase);
  }
  return {region, tiling.shape.axes(region.epilogue.space.rank()), parts};
}

// Whether the loader can cut its boxes so.
bool fits(const PixelShape& shape, const ProductTile& tile) {
  if (shape.swap) return tile.cluster == 1;
  if (!shape.columns_lie) return true;
  const int columns = tile.n / tile.cluster;
  return columns * (bit_width(shape.filter_type) / 8) % kBoxBytes == 0;
}

std::vector<ProductTile> tiles_for(const PixelShape& shape) {
  const std::int64_t pixels = shape.pixel_count(shape.product.phases[0]);
  // Contiguous columns come in whole boxes.
  const std::int64_t box = shape.columns_lie ? kBoxBytes * 8 / bit_width(shape.filter_type) : 1;
  const std::int64_t columns = std::max(shape.product.columns, box);
  std::vector<ProductTile> result;
  for (const int depth : shape.depths())
    for (ProductTile tile : product_tiles(shape.filter_type, shape.swap ? columns : pixels,
                                          shape.swap ? pixels : columns)) {
      tile.depth_bytes = depth;
      if (fits(shape, tile)) result.push_back(tile);
    }
  return result;
}

// Bytes of depth up to which the end of a tile counts beside its products: boxes are offered.
constexpr std::int64_t kMostDepthForBoxes = 2048;

// The tile with results that leave by the copy engine, where they can and its end matters.
std::optional<ProductTile> with_boxes(const PixelShape& shape, ProductTile tile) {
  const PixelProduct& product = shape.product;
  if (!shape.has_result_lines()) return {};
  std::int64_t taps = 0;
  for (const Phase& phase : product.phases) taps += static_cast<std::int64_t>(phase.taps.size());
  taps = ceil_div(taps, static_cast<std::int64_t>(product.phases.size()));
  if (taps * Tiling{shape, tile}.depth_blocks() * tile.depth_bytes > kMostDepthForBoxes) return {};
  const DType results = shape.epilogue.stores[0].view.dtype;
  // The end of a group's columns is not that of the tensor.
  if (shape.result_map() && (product.groups == 1 || product.columns % tile.n == 0))
    tile.boxes = boxes_of(tile, results);
  else if (product.phases.size() > 1)
    tile.lines = lines_of(tile);
  tile.result_bytes = bit_width(results) / 8;
  if (tile.boxes + tile.lines == 0) return {};
  return tile;
}

// How shared memory is used where windows stay in it.
struct WindowStages {
  std::int64_t rows = 0;  // of a window; 0: there are none
  int windows = 0, filters = 0;
  bool resident = false;  // all filters stay where they are
  unsigned bytes = 0;
  int side = 0;           // groups side by side; 0: kOnce, not kBundles
  double efficiency = 1;  // of the products
};

WindowStages window_stages(const GroupBundle& bundle, const ProductTile& tile) {
  return {.rows = bundle.window_rows,
          .windows = bundle.windows,
          .filters = bundle.filters,
          .resident = true,
          .bytes = bundle.shared_bytes,
          .side = bundle.side,
          .efficiency = bundle.efficiency(tile)};
}

WindowStages window_stages(const PixelShape& shape, const ProductTile& tile,
                           const DeviceProps& device) {
  constexpr std::int64_t kPatternBytes = 1024, kMostRows = 1024, kMostFilters = 12;
  constexpr std::int64_t kLeastFilters = 4, kBarrierBytes = 8;
  // One tap: windows are ordinary stages, and only filters that stay are worth it.
  constexpr std::int64_t kLeastStages = 4, kMostStages = 8;
  const Tiling tiling{shape, tile};
  WindowStages stages;
  const std::int64_t pattern = kPatternBytes / tile.depth_bytes;  // rows of a swizzle, or several
  const std::int64_t rows = ceil_div(tile.m + shape.product.reach(), pattern) * pattern;
  if (rows > kMostRows) return stages;
  const std::int64_t window = rows * tile.depth_bytes + 2 * kBarrierBytes,
                     filter =
                         static_cast<std::int64_t>(tile.n) * tile.depth_bytes + 2 * kBarrierBytes;
  const PixelProduct& product = shape.product;
  const Phase& phase = product.phases[0];
  const std::int64_t all = static_cast<std::int64_t>(phase.taps.size()) * tiling.depth_blocks();
  // What is left when everything else has its place.
  const std::int64_t free = device.shared_bytes - shared_bytes(tile, 0);
  const auto left = [&](std::int64_t windows) { return (free - windows * window) / filter; };
  if (shape.has_one_tap()) {
    if (!tiling.can_keep_columns(device) || left(kLeastStages) < all) return stages;
    stages.resident = true;
    stages.filters = static_cast<int>(all);
    stages.windows = static_cast<int>(std::min(kMostStages, (free - all * filter) / window));
  } else {
    stages.resident = product.phases.size() == 1 && product.groups == 1 &&
                      tiling.tiles_n(phase) == 1 && left(2) >= all;
    const std::int64_t needed =
        stages.resident ? all : std::min(kMostFilters, std::max(left(2), left(3)));
    if (left(2) < std::max(kLeastFilters, stages.resident ? all : 0)) return stages;
    stages.windows = left(3) >= (stages.resident ? all : kLeastFilters + 2) ? 3 : 2;
    stages.filters = static_cast<int>(std::min(needed, left(stages.windows)));
  }
  stages.rows = rows;
  stages.bytes = static_cast<unsigned>(shared_bytes(tile, 0) + stages.windows * window +
                                       stages.filters * filter);
  return stages;
}

// The words of kernels/sm90/schedule_pixels.cuh, and the taps they speak of.
void add_phases(Arguments& arguments, const Tiling& tiling, const std::vector<int>& maps) {
  const PixelShape& shape = tiling.shape;
  std::vector<std::int64_t> words, taps;
  std::int64_t work = 0;
  for (std::size_t i = 0; i < shape.product.phases.size(); ++i) {
    const Phase& phase = shape.product.phases[i];
    const auto count = static_cast<std::int64_t>(phase.taps.size());
    words.insert(words.end(), {work, tiling.tiles_m(phase), shape.pixel_count(phase), maps[i],
                               static_cast<std::int64_t>(taps.size()), count, divider_word(count)});
    const auto add = [&](const PixelProduct::Axes& axes) {
      words.insert(words.end(), {axes[2], axes[1], axes[0]});
    };
    add(phase.extent);
    add({divider_word(phase.extent[0]), divider_word(phase.extent[1]),
         divider_word(phase.extent[2])});
    add(phase.lower);
    add(phase.first);
    add(phase.result);
    words.push_back(phase.planes());
    for (const PixelProduct::Tap& tap : phase.taps)
      taps.push_back(tap.filter | tap.offset[2] << 16 | tap.offset[1] << 32 | tap.offset[0] << 48);
    work += tiling.count(phase);
  }
  arguments.numbers("phases", words);
  arguments.numbers("taps", taps);
  arguments.number("work_count", work);
  constexpr std::array<char, 3> kAxes = {'d', 'h', 'w'};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    arguments.number(fmt::format("step_{}", kAxes[axis]), shape.product.step[axis]);
    arguments.number(fmt::format("spread_{}", kAxes[axis]), shape.product.phases[0].step[axis]);
  }
}

// The maps of the pixels, phases that see the same ones sharing theirs: the map of each.
std::vector<int> add_pixel_maps(Arguments& arguments, const PixelShape& shape, int booking,
                                int depth_bytes, std::int64_t pixels) {
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
    if (booking < 0)
      arguments.tensor_map(name, shape.pixels.view, form);
    else
      arguments.tensor_map_of_scratch(name, booking, form);
    distinct.push_back(&phase);
  }
  return result;
}

class ConvSm90Engine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.conv_sm90"; }
  std::string_view description() const override {
    return "convolutions by the copy engine's pixels and warpgroup instructions of sm_90a";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    if (Support support = is_pixel_shape(region); !support) return support;
    return is_for_hopper(device);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const PixelShape shape(region);
    const auto windows = shape.with_windows();
    std::vector<Config> result;
    const bool has_windows = windows.has_value() && !promotes(shape.pixel_type);
    const auto may_take = [&](const ProductTile& tile) {
      return region.reductions.empty() || has_room_for_tails(tile);
    };
    const auto add_windows = [&](const PixelShape& with, const ProductTile& tile) {
      const WindowStages stages = window_stages(with, tile, device);
      if (stages.rows > 0 && may_take(tile))
        result.push_back(config_of(region, with, tile, &stages, device));
    };
    bool is_narrow = false;
    if (windows || shape.pointwise) {
      const PixelShape& whole = windows ? *windows : shape;
      for (const ProductTile& tile : GroupBundle::tiles(whole))
        if (const auto bundle = GroupBundle::of(whole, tile, device)) {
          const WindowStages stages = window_stages(*bundle, tile);
          result.push_back(config_of(region, bundle->bundled(whole), tile, &stages, device));
          // What is made for narrow groups leaves nothing to others: they took 2 to 5 times as
          // long.
          is_narrow = bundle->side > 1;
        }
    }
    if (!is_narrow) {
      // Of equally good ones the first is taken: with filters that stay, which blocks of a cluster
      // need not share, with boxes.
      for (const ProductTile& tile : tiles_for(shape)) {
        const auto boxes =
            region.reductions.empty() ? with_boxes(shape, tile) : std::optional<ProductTile>();
        if (has_windows && shape.has_one_tap() && tile.cluster == 1)
          add_windows(shape, boxes.value_or(tile));
        if (boxes) result.push_back(config_of(region, shape, *boxes, nullptr, device));
        if (may_take(tile)) result.push_back(config_of(region, shape, tile, nullptr, device));
      }
      if (has_windows && !shape.has_one_tap())
        for (const ProductTile& tile : tiles_for(*windows))
          if (tile.m >= kLeastWindow) add_windows(*windows, tile);
    }
    sort_by_cost(result, device, region.precision());
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    const std::int64_t way = config.knob("windows");
    const PixelShape plain(region),
        of_groups = way == kForEachTap || plain.pointwise ? plain : *plain.with_windows();
    ProductTile tile = tile_of(config);
    tile.boxes = static_cast<int>(config.knob("boxes"));
    const GroupBundle bundle =
        way == kBundles ? *GroupBundle::of(of_groups, tile, device) : GroupBundle{};
    const PixelShape shape = way == kBundles ? bundle.bundled(of_groups) : of_groups;
    const PixelProduct& product = shape.product;
    const View result_view = shape.epilogue.stores[0].view;
    tile.lines = static_cast<int>(config.knob("lines"));
    tile.result_bytes = bit_width(result_view.dtype) / 8;
    const Tiling tiling{shape, tile};
    WindowStages windows;
    if (way == kOnce) windows = window_stages(shape, tile, device);
    if (way == kBundles) windows = window_stages(bundle, tile);

    KernelDesign result;
    const auto bring = [&](const PackedOperand& operand, const char* name) {
      if (!operand.pack) return -1;
      const int booking = result.scratch.add(name, operand.scratch_bytes);
      result.launches.push_back(pack_across(graph, *operand.pack, booking));
      return booking;
    };
    const int pixel_booking = bring(shape.pixels, "pixels"),
              filter_booking = bring(shape.filters, "filters");
    const std::int64_t blocks = tiling.clusters(device, windows.resident) * tile.cluster;
    ProductTails tails = tails_of(region, tiling, blocks);
    tails.book(result.scratch);
    result.unaligned = std::make_shared<KernelDesign>(
        tails.empty() ? generic_engine().design(graph, region, {}, device)
                      : tails.unaligned(graph, region, device));

    LaunchDesign& launch = result.launches.emplace_back();
    Arguments& arguments = launch.arguments;
    const std::vector<int> maps = add_pixel_maps(arguments, shape, pixel_booking, tile.depth_bytes,
                                                 way != kForEachTap ? windows.rows
                                                 : shape.swap       ? tile.n
                                                                    : tile.m);
    const TensorMapForm filter_map =
        way == kBundles
            ? bundle.filter_map(shape)
            : shape.filter_map((shape.swap ? tile.m : tile.n) / tile.cluster, tile.depth_bytes);
    if (filter_booking < 0)
      arguments.tensor_map("map_filters", shape.filters.view, filter_map);
    else
      arguments.tensor_map_of_scratch("map_filters", filter_booking, filter_map);
    add_phases(arguments, tiling, maps);
    arguments.number("tiles_n", tiling.tiles_n(product.phases[0]));
    arguments.number("group_m", windows.resident ? 1 : tiling.band(device));
    arguments.number("depth_blocks", tiling.depth_blocks());
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
    if (tile.boxes + tile.lines > 0) {
      epilogue.result = epilogue.stores[0].value;
      epilogue.stores.erase(epilogue.stores.begin());
      of_results = fmt::format("typedef {} Result;\n", to_string(result_view.dtype));
    }
    if (tile.boxes > 0) arguments.tensor_map("map_results", result_view, *shape.result_map());
    std::string printed = print_program(epilogue, graph, "epilogue", arguments);
    if (tile.lines > 0) printed += print_place(result_view, graph, "result_at", arguments);

    const ProductForm form{.a = shape.swap ? shape.filter_type : shape.pixel_type,
                           .b = shape.swap ? shape.pixel_type : shape.filter_type,
                           .transpose_a = shape.swap && shape.columns_lie,
                           .transpose_b = !shape.swap && shape.columns_lie,
                           .vector = shape.vector,
                           .rank = shape.epilogue.space.rank(),
                           .columns = bundle.columns,
                           .has_tails = !tails.empty()};
    const int stages = way != kForEachTap ? windows.filters : stage_count(tile, device);
    const std::string head =
        register_types(region.precision(), {&shape.epilogue}) +
        product_constants(tile, form, stages) + of_results +
        constant("kPhases", static_cast<std::int64_t>(product.phases.size())) +
        constant("kInTurns", tiling.phases_are_equal() && product.phases.size() > 1) +
        constant("kPixelAxes", shape.pointwise ? 0 : product.spatial) +
        constant("kSwap", shape.swap) + constant("kColumnsLie", shape.columns_lie) +
        constant("kWhole", shape.whole) + constant("kWindowRows", windows.rows) +
        constant("kInPlanes", product.phases[0].planes() > 1) +
        constant("kLongLines", way != kForEachTap && !shape.has_one_tap()) +
        constant("kWindowStages", windows.windows) + constant("kResident", windows.resident) +
        (way == kBundles ? bundle.constants(shape) : constant("kSide", 0)) + tails.text() +
        arguments.struct_text() + printed;
    std::vector<std::string_view> files = {
        tile.boxes + tile.lines > 0 ? "lib/product_boxes.cuh" : "lib/product_rows.cuh",
        "lib/ptx_wgmma_product.cuh", "sm90/schedule_pixels.cuh", "sm90/load_pixels.cuh",
        "sm90/warpgroups.cuh"};
    tails.add_files(files, "sm90/tails_pixels.cuh");
    files.emplace_back(way == kBundles ? "sm90/mainloop_bundles.cuh"
                       : way == kOnce  ? "sm90/mainloop_windows.cuh"
                                       : "sm90/mainloop.cuh");
    launch.source = {"conv_sm90", assemble(files, head)};
    launch.function = "product";
    launch.threads = static_cast<unsigned>((tile.consumers + 1) * 128);
    launch.shared_bytes = way != kForEachTap ? windows.bytes : shared_bytes(tile, stages);
    launch.cluster = static_cast<unsigned>(tile.cluster);
    launch.grid.x = static_cast<unsigned>(blocks);
    if (!tails.empty()) result.launches.push_back(tails.sum(graph));
    return result;
  }

 private:
  // `windows`: null where pixels are loaded for each tap.
  Config config_of(const Region& region, const PixelShape& shape, const ProductTile& tile,
                   const WindowStages* windows, const DeviceProps& device) const {
    const PixelProduct& product = shape.product;
    const Tiling tiling{shape, tile};
    const bool keeps_columns = windows != nullptr && windows->resident;
    const ProductTails tails =
        tails_of(region, tiling, tiling.clusters(device, keeps_columns) * tile.cluster);
    const double element = bit_width(shape.pixel_type) / 8.0;
    double pixels = 0, taps = 0;  // taps that a pixel sees on average
    for (const Phase& phase : product.phases) {
      const auto count = static_cast<double>(shape.pixel_count(phase));
      pixels += count;
      taps += count * static_cast<double>(phase.taps.size());
    }
    taps /= pixels;
    // A window is brought once for every plane of taps.
    const auto planes = static_cast<double>(product.phases[0].planes());
    double result_bytes = region.bytes();
    for (const View& input : {region.anchor->inputs[0], region.anchor->inputs[1]})
      result_bytes -= static_cast<double>(element_count(input.dims)) * bit_width(input.dtype) / 8;
    const auto area = static_cast<double>(tile.m) * tile.n;
    const double depth_bytes =
        static_cast<double>(tiling.depth_blocks()) * static_cast<double>(tile.depth_bytes);
    const double pixel_rows = windows != nullptr ? planes * static_cast<double>(windows->rows)
                              : shape.swap       ? taps * tile.n
                                                 : taps * tile.m;
    const double filter_rows = windows != nullptr && windows->resident
                                   ? 0.0
                                   : taps * (shape.swap ? tile.m : tile.n) / tile.cluster;
    // A narrow stage takes so long whatever it holds, with two copies or one (16 to 64 channels, 16
    // to 64 filters on an H200).
    constexpr double kStageClocks = 420, kTapClocks = 350;
    constexpr double kProductsPerClock = 4096;  // bytes x rows x columns
    const double stage_clocks = area * tile.depth_bytes / kProductsPerClock,
                 least_clocks = windows == nullptr ? kStageClocks : kTapClocks;
    const bool is_narrow = tile.n < 64 || tile.depth_bytes < 128;
    const double stage_share = is_narrow ? std::min(stage_clocks / least_clocks, 1.0) : 1.0;
    Config config;
    config.knobs = knobs_of(tile);
    const int side = windows != nullptr ? std::max(windows->side, 1) : 1;
    const bool bundled = windows != nullptr && windows->side > 0;
    config.knobs.emplace_back("windows", bundled              ? kBundles
                                         : windows != nullptr ? kOnce
                                                              : kForEachTap);
    config.knobs.emplace_back("boxes", tile.boxes);
    config.knobs.emplace_back("lines", tile.lines);
    config.cost = tile_cost(
        {.engine = id(),
         .operands = shape.pixel_type,
         .tile_m = tile.m,
         .tile_n = tile.n,
         .variant = bundled ? (product.groups > 1 ? kBundleVariant : kSingleVariant)
                            : tile.variant() + (windows != nullptr ? 4 : 0),
         .tiles = static_cast<double>(tiling.count() * tile.cluster),
         .flops = 2 * area * taps * depth_bytes / element / side,
         .load_bytes = depth_bytes * (pixel_rows + filter_rows),
         .store_bytes = std::max(result_bytes, 0.0) * area /
                        (pixels * static_cast<double>(product.columns * product.groups)),
         .memory_bytes = region.bytes() + 2.0 * static_cast<double>(shape.scratch_bytes()) +
                         static_cast<double>(tails.scratch_bytes()),
         .cluster = tile.cluster,
         .persistent = tile.ping_pong,
         .launches = 1 + (shape.pixels.pack ? 1 : 0) + (shape.filters.pack ? 1 : 0) +
                     (tails.empty() ? 0 : 1),
         .efficiency = bundled ? windows->efficiency : stage_share},
        device, region.precision());
    config.scratch_bytes = shape.scratch_bytes() + tails.scratch_bytes();
    config.notes.runtime_compiled = true;
    config.notes.tf32 = shape.pixel_type == f32;
    config.notes.truncating_sums = shape.pixel_type != i8;
    config.notes.reduced_precision_accumulation = promotes(shape.pixel_type);
    return config;
  }
};

}  // namespace

const CudaEngine& conv_sm90_engine() {
  static const ConvSm90Engine engine;
  return engine;
}

}  // namespace ashlar::cuda

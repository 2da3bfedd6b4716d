// Engine cuda.conv_direct: convolution with few channels on tensor cores, straight from patches in
// shared memory. For stems (3 or 4 channels), narrow groups and few filters.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/conv_direct_shape.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/gemm_tails.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

using Block = ConvDirectBlock;
using FilterTile = ConvDirectFilterTile;
using FilterBlock = ConvDirectFilterBlock;

constexpr std::int64_t kMostDepth = 256;     // source channels of an ungrouped convolution
constexpr std::int64_t kMaxGroupDepth = 64;  // source channels per group
constexpr std::int64_t kFewChannels = 32, kFewResults = 32;
constexpr std::int64_t kFilterFinishThreads = 256;
constexpr double kClock = 1.7e9;  // Hz of an SM under load

std::int64_t tile_count(const ConvDirectShape& shape, std::int64_t h, std::int64_t w) {
  return shape.images * ceil_div(shape.grid[0], h) * ceil_div(shape.grid[1], w);
}
class ConvDirectDesigner {
 public:
  ConvDirectDesigner(const Graph& graph, const ConvDirectShape& shape, const DeviceProps& device)
      : graph_(graph), shape_(shape), device_(device) {}

  KernelDesign pixels(const ConvDirectTile& tile) {
    const Block block(shape_, tile);
    const std::int64_t tiles = add_numbers(tile.h, tile.w);
    arguments_.scratch("weights", design_.scratch.add("weights", weight_bytes(block)));
    const std::string programs =
        print_source(shape_.source, "source_of", "Source", block.patch.vector, shape_.first[1]) +
        print_weights() + print_program(shape_.result, graph_, "epilogue", arguments_);
    const KernelSource source =
        source_of("conv_direct_pixels",
                  constants(block.patch, tile.h, tile.w) + pixel_constants(tile, block), programs);
    const std::int64_t at_once = device_.compute_units * block.blocks_at_once;
    LaunchDesign weights = launch_of(source, "conv_direct_weights", block.threads);
    weights.grid = grid_of(ceil_div(block.weight_words, block.threads), block.across);
    design_.launches.push_back(std::move(weights));
    LaunchDesign launch = launch_of(source, "conv_direct_pixels", block.threads);
    constexpr int kHopper = 90;
    launch.is_dependent_launch = device_.compute_capability >= kHopper;
    launch.shared_bytes = static_cast<unsigned>(block.shared_bytes);
    launch.grid =
        grid_of(std::min(tiles, std::max<std::int64_t>(at_once / block.across, 1)), block.across);
    launch.unaligned_function = "conv_direct_pixels_elements";
    launch.unaligned_grid =
        grid_of(std::min(ceil_div(element_count(shape_.result.space), block.threads),
                         std::int64_t{device_.compute_units} * 64),
                1);
    design_.launches.push_back(std::move(launch));
    return std::move(design_);
  }

  KernelDesign filter(const FilterTile& tile) {
    const FilterBlock block(shape_, tile, device_);
    add_numbers(tile.h, tile.w);
    arguments_.number("sums", block.sums);
    arguments_.number("pieces", block.pieces(tile));
    arguments_.scratch("partial", design_.scratch.add("partial", partial_bytes(tile, block)));
    const std::string programs =
        print_source(shape_.source, "source_of", "Source", block.patch.vector, shape_.first[1]) +
        print_source(shape_.result, "gradient_of", "Gradient", block.gradient_vector) +
        print_program(shape_.weights, graph_, "epilogue", arguments_);
    const KernelSource source =
        source_of("conv_direct_filter",
                  constants(block.patch, tile.h, tile.w) + filter_constants(tile, block), programs);
    LaunchDesign launch = launch_of(source, "conv_direct_filter", block.threads);
    launch.shared_bytes = static_cast<unsigned>(block.shared_bytes);
    launch.grid = grid_of(block.blocks, block.across);
    launch.unaligned_function = "conv_direct_filter_elements";
    launch.unaligned_grid = grid_of(block.blocks, ceil_div(block.sums, block.threads));
    design_.launches.push_back(std::move(launch));
    LaunchDesign finish = launch_of(source, "conv_direct_filter_finish", kFilterFinishThreads);
    finish.grid = grid_of(ceil_div(block.sums, 32), 1);
    design_.launches.push_back(std::move(finish));
    return std::move(design_);
  }

  static std::int64_t weight_bytes(const Block& block) {
    return block.across * block.weight_words * static_cast<std::int64_t>(sizeof(float));
  }
  static std::int64_t partial_bytes(const FilterTile& tile, const FilterBlock& block) {
    return block.pieces(tile) * block.sums * static_cast<std::int64_t>(sizeof(float));
  }

 private:
  static Grid grid_of(std::int64_t x, std::int64_t y) {
    return {static_cast<unsigned>(x), static_cast<unsigned>(y), 1};
  }
  LaunchDesign launch_of(const KernelSource& source, const char* function, std::int64_t threads) {
    return {source, function, {}, static_cast<unsigned>(threads), 0, arguments_};
  }
  KernelSource source_of(const std::string& name, const std::string& constants_text,
                         const std::string& programs) {
    const std::string head =
        register_types(f32, {&shape_.source, &shape_.result, &shape_.weights}) +
        fmt::format("typedef {} Element;\n", type_name(shape_.element)) + constants_text +
        arguments_.struct_text() + programs;
    const std::string file = name + ".cuh";
    const std::array<std::string_view, 2> files = {"conv_direct.cuh", file};
    return {name, assemble(files, head)};
  }

  // Returns the number of tiles.
  std::int64_t add_numbers(std::int64_t tile_h, std::int64_t tile_w) {
    const auto divisor = [&](const std::string& name, std::int64_t value) {
      arguments_.number(name, value);
      arguments_.number("magic_" + name, divider_word(value));
    };
    const std::int64_t tiles = tile_count(shape_, tile_h, tile_w);
    divisor("tiles_h", ceil_div(shape_.grid[0], tile_h));
    divisor("tiles_w", ceil_div(shape_.grid[1], tile_w));
    arguments_.number("tiles", tiles);
    arguments_.number("images", shape_.images);
    arguments_.number("groups", shape_.group_count());
    arguments_.number("from_h", shape_.source_extent[0]);
    arguments_.number("from_w", shape_.source_extent[1]);
    arguments_.number("from_channels", shape_.source_channels);
    arguments_.number("to_h", shape_.result_extent[0]);
    arguments_.number("to_w", shape_.result_extent[1]);
    arguments_.number("to_channels", shape_.result_channels);
    return tiles;
  }

  std::string constants(const ConvDirectPatch& patch, std::int64_t tile_h,
                        std::int64_t tile_w) const {
    std::string text;
    constexpr std::array<char, 2> kAxes = {'H', 'W'};
    for (std::size_t axis = 0; axis < 2; ++axis)
      for (const auto& [name, values] :
           {std::pair<const char*, const ConvDirectShape::Axes&>{"kWindow", shape_.window},
            {"kStep", shape_.step},
            {"kDilation", shape_.reach},
            {"kFirst", shape_.first},
            {"kPhase", shape_.phases},
            {"kTaps", shape_.taps},
            {"kStride", shape_.stride},
            {"kTapDilation", shape_.dilation},
            {"kPadding", shape_.padding}})
        text += constant(fmt::format("{}{}", name, kAxes[axis]), values[axis]);
    return text + constant("kTileH", tile_h) + constant("kTileW", tile_w) +
           constant("kChannelsLast", shape_.channels_last ? 1 : 0) +
           constant("kBackward", shape_.backward() ? 1 : 0) +
           constant("kFlip", shape_.op->mode == ConvMode::convolution ? 1 : 0) +
           constant("kRuns", shape_.runs() ? 1 : 0) + constant("kSpans", patch.spans ? 1 : 0) +
           constant("kSpan", patch.spans ? patch.span : 1) + constant("kLead", patch.lead) +
           constant("kShift", patch.shift) + constant("kFirstElement", patch.first_element) +
           constant("kPatchH", patch.height) + constant("kPatchW", patch.width) +
           constant("kPixel", patch.pixel) + constant("kPitch", patch.pitch) +
           constant("kPatchChannels", patch.channels) +
           constant("kPatchElements", patch.elements()) +
           constant("kTapChannels", patch.tap_channels) +
           constant("kUnitsOfTap", patch.units_of_tap) +
           constant("kUnitsOfRow", patch.units_of_row) + constant("kUnits", patch.units) +
           constant("kSteps", patch.steps()) + constant("kAligned", patch.aligned ? 1 : 0) +
           constant("kOdd", patch.odd ? 1 : 0) +
           constant("kGroupChannels", shape_.group_channels()) +
           constant("kGroupResults", shape_.group_results()) + constant("kDepth", shape_.depth) +
           constant("kResultsOfGroup", shape_.results) + constant("kSplits", shape_.splits ? 1 : 0);
  }
  std::string pixel_constants(const ConvDirectTile& tile, const Block& block) const {
    const std::int64_t steps = block.patch.steps();
    // Unrolls small loops completely, so that offsets in the patch become immediates. Other loops
    // are unrolled within a tap or a row of taps.
    const bool whole = tile.held || steps <= 12;
    const std::int64_t side_by_side =
        shape_.runs() ? block.patch.units_of_row : block.patch.units_of_tap;
    const std::int64_t together = !whole && side_by_side % 2 == 0 ? side_by_side / 2 : 0;
    const std::int64_t unrolled = whole ? steps : 4;
    return constant("kGroups", tile.groups) + constant("kOwnGroups", tile.own_groups) +
           constant("kTiles", tile.tiles) + constant("kOwnTiles", tile.own_tiles) +
           constant("kRowTiles", tile.row_tiles) + constant("kWarpsM", tile.warps) +
           constant("kThreads", block.threads) + constant("kBlocks", block.blocks_at_once) +
           constant("kPatches", block.patches) + constant("kParts", block.parts) +
           constant("kHeld", tile.held ? 1 : 0) + constant("kUnrolled", unrolled) +
           constant("kStepsTogether", together) + constant("kStored", block.stored) +
           constant("kShuffled", block.shuffled ? 1 : 0);
  }
  std::string filter_constants(const FilterTile& tile, const FilterBlock& block) const {
    return constant("kGroups", tile.groups) + constant("kOwnGroups", tile.own_groups) +
           constant("kTiles", tile.tiles) + constant("kOwnRows", tile.own_rows) +
           constant("kWarpsM", tile.warps_m) + constant("kWarpsK", tile.warps_k) +
           constant("kThreads", block.threads) + constant("kBlocks", block.blocks_at_once) +
           constant("kPatches", block.patches) + constant("kParts", block.parts) +
           constant("kRowParts", block.row_parts) +
           constant("kGradientPixel", block.gradient_pixel) +
           constant("kGradientChannels", block.gradient_channels) +
           constant("kFinishThreads", kFilterFinishThreads);
  }

  // Prints the `Tensor` struct that stage_pixels() of kernels/conv_direct.cuh expects.
  std::string print_source(const PointwiseProgram& program, const std::string& name,
                           const std::string& reader, std::int64_t vector, std::int64_t first = 0) {
    const std::int64_t before = ((first % vector) + vector) % vector;
    const std::string text = print_program(program, graph_, name, arguments_);
    const bool copies = shape_.copies(program);
    std::string pointer = "(const Word*)0";
    if (copies) {
      const View& view = program.steps[0].view;
      pointer = fmt::format("(const Word*)args.{}_load0", name);
      for (int axis = 0; axis < view.strides.rank(); ++axis)
        if (program.space[axis] > 1)
          pointer += fmt::format(" + at[{}] * (Index){}", axis, view.strides[axis]);
    }
    return text +
           fmt::format(
               "struct {} {{\n  static const int kCount = {}, kBefore = {};\n"
               "  static const bool kCopies = {};\n"
               "  __device__ static const Element::Word* pointer(const Args& args, "
               "const Index (&at)[4]) {{\n    typedef Element::Word Word;\n    return {};\n  }}\n"
               "  __device__ static void load(const Args& args, const Index (&at)[4], "
               "R (&values)[kCount]) {{\n    {}<kCount>(args, at, values);\n  }}\n}};\n",
               reader, vector, before, copies, pointer, name);
  }
  std::string print_weights() {
    return print_program(shape_.weights, graph_, "weight_program", arguments_) +
           "__device__ inline R weight_of(const Args& args, int filter, int channel, int h, int w) "
           "{\n  const Index at[4] = {filter, channel, h, w};\n  R weight[1];\n"
           "  weight_program<1>(args, at, weight);\n  return weight[0];\n}\n";
  }

  const Graph& graph_;
  const ConvDirectShape& shape_;
  const DeviceProps& device_;
  Arguments arguments_;
  KernelDesign design_;
};

bool has_stores(const Region& region) {
  for (const PointwiseProgram& prologue : region.prologues)
    if (!prologue.stores.empty()) return true;
  return false;
}

class ConvDirectEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.conv_direct"; }
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  std::string_view description() const override {
    return "convolution with few channels on tensor cores, from patches in shared memory";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    if (conv_attributes(region) == nullptr)
      return Support::other_operation("the anchor is not a convolution");
    if (Support support = has_no_tails(region); !support) return support;
    if (device.compute_capability < 80) return Support::no("the device is older than sm_80");
    const Anchor& anchor = *region.anchor;
    const int rank = anchor.inputs[0].dims.rank();
    if (rank != 3 && rank != 4) return Support::no("only 1 or 2 spatial axes are supported");
    const DType element = anchor.inputs[0].dtype;
    if (element != anchor.inputs[1].dtype ||
        (element != DType::bf16 && element != DType::f16 && element != f32))
      return Support::no("operands are not both bf16, both f16 or both f32");
    if (region.precision() != f32 || anchor.compute != f32)
      return Support::no("needs a compute type other than f32");
    if (touches_unsupported(region))
      return Support::no("a ragged or complex tensor, or random numbers");
    for (const PointwiseProgram& prologue : region.prologues)
      if (reads_coordinates(prologue)) return Support::no("a fused operation reads coordinates");
    if (reads_coordinates(region.epilogue))
      return Support::no("a fused operation reads coordinates");
    if (has_stores(region)) return Support::no("a prologue also stores its result");
    if (element_count(anchor.inputs[0].dims) == 0 || element_count(region.epilogue.space) == 0 ||
        element_count(anchor.inputs[1].dims) == 0)
      return Support::no("no elements");
    const ConvDirectShape shape(region);
    if (shape.groups > 1 ? shape.depth > kMaxGroupDepth
                         : shape.depth > kMostDepth ||
                               (shape.depth > kFewChannels && shape.results > kFewResults))
      return Support::no("{} channels and {} filters per group are too many", shape.depth,
                         shape.results);
    if (static_cast<double>(shape.images) * static_cast<double>(shape.grid[0]) *
            static_cast<double>(shape.grid[1]) >
        std::numeric_limits<int>::max() - (1 << 20))
      return Support::no("the number of pixels exceeds 32-bit indices");
    if (shape.kind == ConvDirectShape::Kind::filter
            ? conv_direct_filter_tiles(shape, device).empty()
            : conv_direct_tiles(shape, device).empty())
      return Support::no("no tile fits patches and weights in shared memory");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    ConvDirectShape shape(region);
    std::vector<Config> result;
    add_configs(region, shape, device, result);
    // Enough terms that the product which 3xTF32 skips stays within the error bound.
    constexpr std::int64_t kLeastTerms = 16;
    if (shape.element == f32 && shape.least_terms() >= kLeastTerms) {
      shape.splits = true;
      add_configs(region, shape, device, result);
    }
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    ConvDirectShape shape(region);
    shape.splits = config.knob("split") != 0;
    ConvDirectDesigner designer(graph, shape, device);
    if (shape.kind == ConvDirectShape::Kind::filter)
      return designer.filter({.h = config.knob("tile_h"),
                              .w = config.knob("tile_w"),
                              .groups = config.knob("groups"),
                              .own_groups = config.knob("own_groups"),
                              .tiles = config.knob("tile_n"),
                              .own_rows = config.knob("own_rows"),
                              .warps_m = config.knob("warps_m"),
                              .warps_k = config.knob("warps_k")});
    return designer.pixels({.h = config.knob("tile_h"),
                            .w = config.knob("tile_w"),
                            .row_tiles = config.knob("row_tiles"),
                            .warps = config.knob("warps"),
                            .groups = config.knob("groups"),
                            .own_groups = config.knob("own_groups"),
                            .tiles = config.knob("tile_n"),
                            .own_tiles = config.knob("own_tile_n"),
                            .held = config.knob("held") != 0});
  }

 private:
  static void add_configs(const Region& region, const ConvDirectShape& shape,
                          const DeviceProps& device, std::vector<Config>& result) {
    // The cost is expressed as the share of peak bandwidth that the estimated time achieves.
    const auto add = [&](Config config, double clocks) {
      const double seconds = clocks / (kClock * device.compute_units);
      config.cost = {
          .flops = 0,
          .bytes = region.bytes(),
          .bytes_fraction = std::min(region.bytes() / (seconds * device.bytes_per_second), 1.0)};
      config.notes.runtime_compiled = true;
      config.notes.truncating_accumulation = !shape.splits;
      config.notes.tf32 = shape.element == f32 && !shape.splits;
      config.knobs.emplace_back("split", shape.splits ? 1 : 0);
      result.push_back(std::move(config));
    };
    if (shape.kind == ConvDirectShape::Kind::filter) {
      for (const FilterTile& tile : conv_direct_filter_tiles(shape, device)) {
        const FilterBlock block(shape, tile, device);
        Config config;
        config.knobs = {{"tile_h", tile.h},        {"tile_w", tile.w},
                        {"groups", tile.groups},   {"own_groups", tile.own_groups},
                        {"tile_n", tile.tiles},    {"own_rows", tile.own_rows},
                        {"warps_m", tile.warps_m}, {"warps_k", tile.warps_k}};
        config.scratch_bytes = ConvDirectDesigner::partial_bytes(tile, block);
        add(std::move(config), tile.clocks);
      }
      return;
    }
    for (const ConvDirectTile& tile : conv_direct_tiles(shape, device)) {
      Config config;
      config.knobs = {{"tile_h", tile.h},
                      {"tile_w", tile.w},
                      {"row_tiles", tile.row_tiles},
                      {"warps", tile.warps},
                      {"groups", tile.groups},
                      {"own_groups", tile.own_groups},
                      {"tile_n", tile.tiles},
                      {"own_tile_n", tile.own_tiles},
                      {"held", tile.held ? 1 : 0}};
      config.scratch_bytes = ConvDirectDesigner::weight_bytes(Block(shape, tile));
      add(std::move(config), tile.clocks);
    }
  }
};

}  // namespace

const CudaEngine& conv_direct_engine() {
  static const ConvDirectEngine engine;
  return engine;
}

}  // namespace ashlar::cuda

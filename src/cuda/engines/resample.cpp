// Engine cuda.resample: max and average pooling, forward and backward, and interpolation, forward.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/interpolation.hpp"
#include "cuda/engines/pooling_global.hpp"
#include "cuda/engines/pooling_shape.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr unsigned kPoolingThreads = 256;
constexpr std::int64_t kMaxUnrolledSteps = 16;
constexpr int kPairsFrom = 90;  // minimum compute capability for packed 16-bit comparisons

// Designs one launch: a forward pass (or only its argmax positions), or a backward pass.
class PoolingDesigner {
 public:
  PoolingDesigner(const Graph& graph, const Region& region, const PoolingShape& shape,
                  const PoolingTile& tile, const DeviceProps& device)
      : graph_(graph), region_(region), shape_(shape), tile_(tile), device_(device) {}

  // `reservation`, unless negative, is the scratch of argmax positions with the layout `winners`.
  LaunchDesign design(int reservation = -1, const View& winners = {}) {
    const bool forward = shape_.forward;
    add_numbers();
    const std::string programs = print_programs(reservation, winners);
    std::vector<const PointwiseProgram*> walked = {&shape_.from, &shape_.to};
    const std::string head = register_types(shape_.precision(region_), walked) + constants() +
                             arguments_.struct_text() + programs;
    const std::string name = forward ? "pooling_forward" : "pooling_backward";
    const std::string file = name + ".cuh";
    std::vector<std::string_view> files = {"pooling.cuh", file};
    if (forward)
      files.push_back(pairs_ ? "pooling_forward_pairs.cuh" : "pooling_forward_tiles.cuh");
    LaunchDesign launch{{name, assemble(files, head)}, name, {}, kPoolingThreads, 0, arguments_};
    launch.unaligned_function = name + "_elements";
    const PoolingShape::Axes& to = shape_.results();
    const std::int64_t tiles = shape_.images * to[0] * ceil_div(to[1], tile_.h) *
                               ceil_div(to[2], tile_.w) * shape_.channels;
    launch.unaligned_grid.x = static_cast<unsigned>(ceil_div(tiles, kPoolingThreads));
    launch.grid.x = static_cast<unsigned>(
        ceil_div(shape_.columns ? tiles / shape_.vector : tiles, kPoolingThreads));
    return launch;
  }

 private:
  void add_numbers() {
    const auto divisor = [&](const std::string& name, std::int64_t value) {
      arguments_.number(name, value);
      arguments_.number("magic_" + name, divider_word(value));
    };
    const PoolingShape::Axes& to = shape_.results();
    divisor("packets", shape_.channels / (shape_.columns ? shape_.vector : 1));
    divisor("channels", shape_.channels);
    divisor("tiles_w", ceil_div(to[2], tile_.w));
    divisor("tiles_h", ceil_div(to[1], tile_.h));
    divisor("to_d", to[0]);
    arguments_.number("to_h", to[1]);
    arguments_.number("to_w", to[2]);
    arguments_.number("images", shape_.images);
    constexpr std::array<char, 3> kAxes = {'d', 'h', 'w'};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      arguments_.number(fmt::format("x_{}", kAxes[axis]), shape_.x[axis]);
      arguments_.number(fmt::format("y_{}", kAxes[axis]), shape_.y[axis]);
    }
  }

  std::string constants() const {
    std::string text;
    constexpr std::array<char, 3> kAxes = {'D', 'H', 'W'};
    for (std::size_t axis = 0; axis < 3; ++axis)
      text += constant(fmt::format("kWindow{}", kAxes[axis]), shape_.window[axis]) +
              constant(fmt::format("kStride{}", kAxes[axis]), shape_.stride[axis]) +
              constant(fmt::format("kPadding{}", kAxes[axis]), shape_.padding[axis]);
    const auto unrolled = [](std::int64_t steps) { return steps <= kMaxUnrolledSteps ? steps : 1; };
    const bool segments = shape_.by_segments(tile_);
    const std::int64_t span = shape_.forward
                                  ? shape_.span(tile_)
                                  : (tile_.w + shape_.window[2] - 2) / shape_.stride[2] + 1;
    const int mode = shape_.op->mode == ResampleMode::avgpool_include_padding   ? 0
                     : shape_.op->mode == ResampleMode::avgpool_exclude_padding ? 1
                                                                                : 2;
    return text + constant("kColumns", shape_.columns ? 1 : 0) +
           constant("kVector", shape_.vector) + constant("kThreads", kPoolingThreads) +
           constant("kTileH", tile_.h) + constant("kTileW", tile_.w) + constant("kMode", mode) +
           constant("kOutside", static_cast<int>(shape_.op->padding_mode)) +
           constant("kInside", shape_.stays_inside() ? 1 : 0) +
           constant("kUnrollRows", unrolled(rows())) +
           constant("kUnrollSpan", segments ? span : unrolled(span)) +
           constant("kSegments", segments ? 1 : 0) +
           constant("kOwnExist", shape_.own_windows_exist(tile_) ? 1 : 0) +
           constant("kVectorStores", vector_stores_ ? 1 : 0) +
           constant("kPositions", keeps_positions_ ? 1 : 0);
  }

  std::string print_programs(int reservation, const View& winners) {
    const bool scratch = reservation >= 0;
    const View& view = scratch ? winners : shape_.index;
    const int row = static_cast<int>(tile_.w);
    vector_stores_ =
        shape_.vector_stores(tile_) && (!scratch || vector_length(plain_load(winners), row) == row);
    std::string text, pointer;
    if (view.present() || scratch)
      pointer = scratch ? arguments_.scratch("winners", reservation)
                        : arguments_.pointer("winners", view);
    if (!shape_.forward) {
      text += shape_.is_maximum()
                  ? print_integers(Access::load, view, pointer, "winner_of", arguments_)
                  : "template <int kCount>\n__device__ inline void winner_of(const Args&, const "
                    "Index (&)[5], int (&)[kCount]) {}\n";
      return text + print_program(shape_.from, graph_, "dy_of", arguments_) +
             print_program(shape_.to, graph_, "epilogue", arguments_);
    }
    keeps_positions_ = !pointer.empty();
    std::string keep;
    if (keeps_positions_) {
      text += print_integers(Access::store, view, pointer, "keep_positions", arguments_);
      keep += "  keep_positions<kCount>(args, at, positions);\n";
    }
    if (!scratch) {
      text += print_program(shape_.to, graph_, "epilogue", arguments_);
      keep += "  epilogue<kCount>(args, at, values);\n";
    }
    pairs_ = keeps_positions_ && device_.compute_capability >= kPairsFrom &&
             shape_.has_pairs(region_) && rows() <= kMaxUnrolledSteps &&
             shape_.span(tile_) <= kMaxUnrolledSteps;
    if (pairs_) text += print_pairs();
    return text + print_program(shape_.from, graph_, "x_of", arguments_) +
           "template <int kCount>\n"
           "__device__ inline void keep(const Args& args, const Index (&at)[5], "
           "R (&values)[kCount], int (&positions)[kCount]) {\n" +
           keep + "}\n";
  }

  // Loads packets of x as half2 pairs: kernels/pooling_forward_pairs.cuh.
  std::string print_pairs() {
    const View& view = shape_.from.steps[0].view;
    const std::string type = tag(view.dtype), pointer = arguments_.pointer("pairs", view);
    return fmt::format(
        "typedef {} Half;\n"
        "template <int kPairs>\n"
        "__device__ inline void x_pairs(const Args& args, const Index (&at)[5], "
        "uint32 (&to)[kPairs]) {{\n  load_pairs(Half(), {}, {}, to);\n}}\n",
        type.substr(0, type.find('(')), pointer, print_address(view, "pairs", arguments_));
  }

  // Rows of x under a tile's windows, or rows of windows that contain the tile.
  std::int64_t rows() const {
    return shape_.forward ? shape_.window[0] * ((tile_.h - 1) * shape_.stride[1] + shape_.window[1])
                          : ceil_div(shape_.window[0], shape_.stride[0]) *
                                ((tile_.h + shape_.window[1] - 2) / shape_.stride[1] + 1);
  }

  const Graph& graph_;
  const Region& region_;
  const PoolingShape& shape_;
  const PoolingTile tile_;
  const DeviceProps& device_;
  bool keeps_positions_ = false, vector_stores_ = false, pairs_ = false;
  Arguments arguments_;
};

class ResampleEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.resample"; }
  std::string_view description() const override {
    return "max and average pooling, a tile of results per thread; interpolation";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    const auto* forward = region.anchor_as<ResampleForward>();
    const auto* backward = region.anchor_as<ResampleBackward>();
    if (!forward && !backward) return Support::other_operation("the anchor is not a resample");
    const ResampleAttributes& op =
        forward ? static_cast<const ResampleAttributes&>(*forward) : *backward;
    if (touches_unsupported(region))
      return Support::no("a ragged or complex tensor, or random numbers");
    for (const PointwiseProgram* program : {&region.prologues[0], &region.epilogue})
      if (reads_coordinates(*program)) return Support::no("a fused operation reads coordinates");
    if (interpolates(op)) return supports_interpolation(region);
    if (op.mode != ResampleMode::maxpool && !is_floating(region.anchor->compute))
      return Support::no("integer average pooling is not supported");
    if (backward && op.mode == ResampleMode::maxpool && op.padding_mode == PaddingMode::edge)
      return Support::no("backward of max pooling with edge padding is not supported");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    const PoolingShape shape(region);
    std::vector<Config> result;
    double fraction = 0.85;
    if (interpolates(*shape.op)) {
      Config config;
      config.cost = {.flops = region.flops(), .bytes = region.bytes(), .bytes_fraction = fraction};
      config.notes.runtime_compiled = true;
      return {config};
    }
    for (const PoolingTile& tile : shape.tiles(shape.forward && shape.index.present())) {
      Config config;
      config.knobs = {{"tile_h", tile.h}, {"tile_w", tile.w}};
      config.cost = {.flops = region.flops(), .bytes = region.bytes(), .bytes_fraction = fraction};
      config.scratch_bytes = scratch_bytes(shape);
      config.notes.runtime_compiled = true;
      result.push_back(std::move(config));
      fraction *= 0.98;
    }
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    const PoolingShape shape(region);
    KernelDesign result;
    if (element_count(shape.to.space) == 0) return result;
    if (interpolates(*shape.op)) {
      result.launches.push_back(design_interpolation(graph, region, shape));
      return result;
    }
    const PoolingTile tile{config.knob("tile_h"), config.knob("tile_w")};
    if (tile.h == 0) {
      result.launches.push_back(design_global_pooling(graph, region, shape, device));
      return result;
    }
    if (!shape.finds_winners()) {
      result.launches.push_back(PoolingDesigner(graph, region, shape, tile, device).design());
      return result;
    }
    const int reservation = result.scratch.add("winners", scratch_bytes(shape));
    result.launches.push_back(find_winners(graph, region, reservation, shape.columns, device));
    result.launches.push_back(PoolingDesigner(graph, region, shape, tile, device)
                                  .design(reservation, shape.winners(shape.columns)));
    return result;
  }

 private:
  static std::int64_t scratch_bytes(const PoolingShape& shape) {
    if (!shape.finds_winners()) return 0;
    const View winners = shape.winners(shape.columns);
    constexpr std::int64_t kWordBits = 32;
    return ceil_div(element_count(winners.dims) * bit_width(winners.dtype), kWordBits) *
           (kWordBits / 8);
  }

  // A forward pass over x that stores only the argmax positions.
  static LaunchDesign find_winners(const Graph& graph, const Region& region, int reservation,
                                   bool channels_last, const DeviceProps& device) {
    Region forward = region;
    const auto& backward = *region.anchor_as<ResampleBackward>();
    ResampleForward op;
    static_cast<ResampleAttributes&>(op) = backward;
    forward.anchor->op = op;
    forward.anchor->outputs.clear();
    forward.prologues = {region.prologues[ResampleBackward::x]};
    forward.epilogue = {};
    forward.epilogue.space = region.prologues[ResampleBackward::dy].space;
    const PoolingShape shape(forward);
    const std::vector<PoolingTile> tiles = shape.tiles(true);
    return PoolingDesigner(graph, forward, shape, tiles[0].h > 0 ? tiles[0] : tiles[1], device)
        .design(reservation, shape.winners(channels_last));
  }
};

}  // namespace

const CudaEngine& resample_engine() {
  static const ResampleEngine engine;
  return engine;
}

}  // namespace ashlar::cuda

// Engine cuda.depthwise: depthwise convolution, forward, backward-data and backward-filter.
#include <fmt/format.h>

#include <array>
#include <limits>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/depthwise_shape.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/gemm_tails.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kDepthwiseFinishThreads = 256, kWarpLanes = 32;
constexpr std::int64_t kMaxSharedBytes = 96 << 10;

std::int64_t register_bytes(const DepthwiseShape& shape) { return shape.precision == f64 ? 8 : 4; }

// Shared memory: weights of the CTA's channels, or (backward-filter) their sums.
std::int64_t shared_bytes(const DepthwiseShape& shape, const DepthwiseTile& tile,
                          const DepthwiseGeometry& geometry) {
  if (shape.kind != DepthwiseShape::Kind::filter)
    return shape.taps() * geometry.lanes * tile.vector * register_bytes(shape);
  const std::int64_t copies =
      shape.columns ? geometry.lanes * tile.vector : geometry.threads / kWarpLanes;
  return tile.part * shape.window[2] * copies * register_bytes(shape);
}

std::int64_t partial_bytes(const DepthwiseShape& shape, const DepthwiseGeometry& geometry) {
  if (shape.kind != DepthwiseShape::Kind::filter) return 0;
  return geometry.pixel_blocks * shape.taps() * shape.channels * register_bytes(shape);
}

// Replaces pixel strides by constants in the text: the addresses of a tile are then one register
// plus immediate offsets.
void fix_strides(std::string& text, const PointwiseProgram& program, const std::string& name,
                 std::initializer_list<int> axes) {
  const auto fix = [&](const View& view, const std::string& access) {
    for (const int axis : axes) {
      const std::string argument = fmt::format("(Index)args.{}_{}_stride{}", name, access, axis);
      const std::string number = fmt::format("(Index){}", view.strides[axis]);
      for (std::size_t at = text.find(argument); at != std::string::npos;
           at = text.find(argument, at + number.size()))
        text.replace(at, argument.size(), number);
    }
  };
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    if (program.steps[i].kind == PointwiseProgram::Step::Kind::load)
      fix(program.steps[i].view, fmt::format("load{}", i));
  for (std::size_t i = 0; i < program.stores.size(); ++i)
    fix(program.stores[i].view, fmt::format("store{}", i));
}

class DepthwiseDesigner {
 public:
  DepthwiseDesigner(const Graph& graph, const DepthwiseShape& shape, const DepthwiseTile& tile,
                    const DepthwiseGeometry& geometry)
      : graph_(graph), shape_(shape), tile_(tile), geometry_(geometry) {}

  KernelDesign design() {
    const bool filter = shape_.kind == DepthwiseShape::Kind::filter;
    add_numbers();
    if (filter) {
      const int reservation = design_.scratch.add("partial", partial_bytes(shape_, geometry_));
      arguments_.scratch("partial", reservation);
    }
    const std::string programs = filter ? print_filter() : print_pixels();
    const std::string head = fmt::format("typedef {} R;\ntypedef int64 Index;\n",
                                         shape_.precision == f64 ? "double" : "float") +
                             constants() + arguments_.struct_text() + programs;
    const std::string common = filter ? "depthwise_filter" : "depthwise_pixels";
    const std::string name =
        std::string(filter ? "depthwise_filter" : "depthwise") + (tile_.rolls ? "_rows" : "_tiles");
    const std::string common_file = common + ".cuh", file = name + ".cuh";
    const std::array<std::string_view, 3> files = {"depthwise.cuh", common_file, file};
    const KernelSource source{name, assemble(files, head)};
    LaunchDesign launch{source,
                        name,
                        {},
                        static_cast<unsigned>(geometry_.threads),
                        static_cast<unsigned>(shared_bytes(shape_, tile_, geometry_)),
                        arguments_};
    launch.grid = {static_cast<unsigned>(geometry_.pixel_blocks),
                   static_cast<unsigned>(geometry_.channel_blocks), static_cast<unsigned>(parts())};
    launch.unaligned_function = common + "_elements";
    const std::int64_t weights = shape_.taps() * shape_.channels;
    if (filter)
      launch.unaligned_grid = {launch.grid.x,
                               static_cast<unsigned>(ceil_div(weights, geometry_.threads)), 1};
    else
      launch.unaligned_grid.x = static_cast<unsigned>(ceil_div(results(), geometry_.threads));
    design_.launches.push_back(launch);
    if (!filter) return std::move(design_);
    LaunchDesign finish{source, "depthwise_finish", {}, kDepthwiseFinishThreads, 0, arguments_};
    finish.grid.x = static_cast<unsigned>(ceil_div(weights, kWarpLanes));
    design_.launches.push_back(std::move(finish));
    return std::move(design_);
  }

 private:
  std::int64_t parts() const {
    if (shape_.kind != DepthwiseShape::Kind::filter) return 1;
    return ceil_div(shape_.window[1], tile_.part) * shape_.window[0];
  }
  std::int64_t results() const {
    const DepthwiseShape::Axes& to = shape_.to_extent;
    return shape_.images * shape_.channels * to[0] * to[1] * to[2];
  }

  void add_numbers() {
    const auto divisor = [&](const std::string& name, std::int64_t value) {
      arguments_.number(name, value);
      arguments_.number("magic_" + name, divider_word(value));
    };
    const DepthwiseShape::Axes &from = shape_.from_extent, &to = shape_.to_extent;
    divisor("channels", shape_.channels);
    divisor("tiles_w", ceil_div(to[2], tile_.w));
    divisor("tiles_h", ceil_div(to[1], tile_.h));
    divisor("to_d", to[0]);
    arguments_.number("to_h", to[1]);
    arguments_.number("to_w", to[2]);
    arguments_.number("from_d", from[0]);
    arguments_.number("from_h", from[1]);
    arguments_.number("from_w", from[2]);
    arguments_.number("images", shape_.images);
    arguments_.number("tiles", shape_.tile_count(tile_));
    arguments_.number("pieces", geometry_.pixel_blocks);
  }

  std::string constants() const {
    std::string text;
    constexpr std::array<char, 3> kAxes = {'D', 'H', 'W'};
    for (std::size_t axis = 0; axis < 3; ++axis)
      text += constant(fmt::format("kWindow{}", kAxes[axis]), shape_.window[axis]) +
              constant(fmt::format("kStride{}", kAxes[axis]), shape_.stride[axis]) +
              constant(fmt::format("kDilation{}", kAxes[axis]), shape_.dilation[axis]) +
              constant(fmt::format("kPadding{}", kAxes[axis]), shape_.padding[axis]);
    const DepthwiseShape::Span high = shape_.span_h(tile_), wide = shape_.span_w(tile_);
    return text + constant("kFirstH", high.first) + constant("kFirstW", wide.first) +
           constant("kSpanH", high.count) + constant("kSpanW", wide.count) +
           constant("kTileH", tile_.h) + constant("kTileW", tile_.w) +
           constant("kPart", std::max<std::int64_t>(tile_.part, 1)) +
           constant("kColumns", shape_.columns ? 1 : 0) + constant("kVector", tile_.vector) +
           constant("kThreads", geometry_.threads) + constant("kAcross", geometry_.lanes) +
           constant("kBlocks", geometry_.blocks_at_once) +
           constant("kFinishThreads", kDepthwiseFinishThreads) +
           constant("kBackward", shape_.backward() ? 1 : 0) +
           constant("kFlip", shape_.op->mode == ConvMode::convolution ? 1 : 0) +
           constant("kVectorStores", shape_.vector_stores(tile_) ? 1 : 0) +
           constant("kKeepsWeights", shape_.keeps_weights(tile_) ? 1 : 0) +
           constant("kAhead", shape_.ahead(tile_)) + constant("kUnroll", shape_.unrolled());
  }

  std::string print_fixed(const PointwiseProgram& program, const std::string& name) {
    std::string text = print_program(program, graph_, name, arguments_);
    const int w = shape_.columns ? 3 : 4;
    fix_strides(text, program, name, {w - 1, w});
    return text;
  }
  // Prints `reader`, the `Tensor` struct that load_line() of kernels/depthwise.cuh expects.
  std::string print_source(const PointwiseProgram& program, const std::string& name,
                           const std::string& reader) {
    const std::string text = print_fixed(program, name);
    std::string packet = "Numbers<kVector, R>", load = name + "<kVector>(args, at, to.values)",
                widen = "copy(from.values, to)";
    if (DepthwiseShape::is_plain(program)) {
      const View& view = program.steps[0].view;
      const std::string type = tag(view.dtype);
      packet = fmt::format("Bits<kVector, {}>", type.substr(0, type.find('(')));
      std::string position = "(Index)0";
      for (int axis = 0; axis < view.strides.rank(); ++axis)
        if (program.space[axis] > 1)
          position += fmt::format(" + at[{}] * (Index){}", axis, view.strides[axis]);
      load = fmt::format("to.load(args.{}_load0, {})", name, position);
      widen = "from.widen_to(to)";
    }
    return text + fmt::format(
                      "struct {} {{\n  typedef {} Packet;\n"
                      "  __device__ static void load(const Args& args, const Index (&at)[5], "
                      "Packet& to) {{\n    {};\n  }}\n"
                      "  __device__ static void widen(const Packet& from, R (&to)[kVector]) {{\n"
                      "    {};\n  }}\n}};\n",
                      reader, packet, load, widen);
  }
  // alpha * value + beta * z; empty for alpha = 1 without z.
  std::string blend(const PointwiseProgram& z, const std::string& name) {
    std::string text = fmt::format("values[i] = {} * values[i]", literal(shape_.op->alpha));
    if (!z.empty()) text += fmt::format(" + {} * {}[i]", literal(shape_.op->beta), name);
    if (z.empty() && shape_.op->alpha == 1.0) return {};
    return fmt::format("  for (int i = 0; i < kCount; ++i) {};\n", text);
  }
  std::string print_keep(const PointwiseProgram& z, int rank) {
    const std::string parameters =
        fmt::format("(const Args& args, const Index (&at)[{}], R (&values)[kCount])", rank);
    std::string text, load;
    if (!z.empty()) {
      text = rank == 5 ? print_fixed(z, "z_of") : print_program(z, graph_, "z_of", arguments_);
      load = "  R z[kCount];\n  z_of<kCount>(args, at, z);\n";
    }
    return text + "template <int kCount>\n__device__ inline void keep" + parameters + " {\n" +
           load + blend(z, "z") + "  epilogue<kCount>(args, at, values);\n}\n";
  }
  // The coordinates of a weight.
  static constexpr const char* kTapPlace =
      "  const Index at[4] = {channel, tap / (kWindowH * kWindowW), tap / kWindowW % kWindowH, "
      "tap % kWindowW};\n";

  std::string print_pixels() {
    return print_source(shape_.from, "source_of", "Source") +
           print_program(shape_.weights, graph_, "weight_program", arguments_) +
           print_fixed(shape_.to, "epilogue") + print_keep(shape_.z, 5) +
           "__device__ inline R weight_of(const Args& args, Index channel, int tap) {\n" +
           kTapPlace +
           "  R weight[1];\n  weight_program<1>(args, at, weight);\n  return weight[0];\n}\n";
  }
  std::string print_filter() {
    return print_source(shape_.from, "x_of", "Source") +
           print_source(shape_.to, "dy_of", "Gradient") +
           print_program(shape_.weights, graph_, "epilogue", arguments_) +
           print_keep(shape_.weights_z, 4) +
           "__device__ inline void store_weight(const Args& args, Index channel, int tap, R sum) "
           "{\n" +
           kTapPlace + "  R values[1] = {sum};\n  keep<1>(args, at, values);\n}\n";
  }

  const Graph& graph_;
  const DepthwiseShape& shape_;
  const DepthwiseTile& tile_;
  const DepthwiseGeometry& geometry_;
  Arguments arguments_;
  KernelDesign design_;
};

class DepthwiseEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.depthwise"; }
  std::string_view description() const override {
    return "depthwise convolution, a tile of pixels per thread";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    if (Support support = is_depthwise(region); !support) return support;
    if (Support support = has_no_tails(region); !support) return support;
    if (touches_unsupported(region))
      return Support::no("a ragged or complex tensor, or random numbers");
    for (const PointwiseProgram& prologue : region.prologues)
      if (reads_coordinates(prologue)) return Support::no("a fused operation reads coordinates");
    if (reads_coordinates(region.epilogue))
      return Support::no("a fused operation reads coordinates");
    const DepthwiseShape shape(region);
    if (shape.images == 0 || shape.channels == 0 || element_count(shape.to.space) == 0)
      return Support::no("no elements");
    if (!shape.columns && shape.channels > kMaxGridY)
      return Support::no("{} channels, at most {} in NCHW", shape.channels, kMaxGridY);
    if (shape.images * shape.to_extent[0] * shape.to_extent[1] * shape.to_extent[2] >=
        std::numeric_limits<int>::max() - (1 << 20))
      return Support::no("the number of pixels exceeds 32-bit indices");
    if (choices(shape, device).empty())
      return Support::no("no tile for a window of {} x {} fits registers and shared memory",
                         shape.window[1], shape.window[2]);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const DepthwiseShape shape(region);
    std::vector<Config> result;
    double fraction = 0.7;
    for (const DepthwiseTile& tile : choices(shape, device)) {
      Config config;
      config.knobs = {{"vector", tile.vector},      {"tile_h", tile.h},
                      {"tile_w", tile.w},           {"part", tile.part},
                      {"walk", tile.rolls ? 1 : 0}, {"waves", waves(shape)}};
      config.cost = {.flops = region.flops(),
                     .bytes = region.bytes(),
                     .flops_fraction = fraction,
                     .bytes_fraction = fraction};
      config.scratch_bytes =
          partial_bytes(shape, DepthwiseGeometry(shape, tile, waves(shape), device));
      config.notes.runtime_compiled = true;
      result.push_back(std::move(config));
      fraction *= 0.98;
    }
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    const DepthwiseShape shape(region);
    const DepthwiseTile tile{static_cast<int>(config.knob("vector")), config.knob("tile_h"),
                             config.knob("tile_w"), config.knob("part"), config.knob("walk") != 0};
    const DepthwiseGeometry geometry(shape, tile, config.knob("waves"), device);
    return DepthwiseDesigner(graph, shape, tile, geometry).design();
  }

 private:
  // Backward-filter reduces per CTA: a single wave in NHWC, where a CTA covers many channels.
  static std::int64_t waves(const DepthwiseShape& shape) {
    return shape.kind == DepthwiseShape::Kind::filter && shape.columns ? 1 : 8;
  }
  static std::vector<DepthwiseTile> choices(const DepthwiseShape& shape,
                                            const DeviceProps& device) {
    std::vector<DepthwiseTile> result;
    for (const DepthwiseTile& tile : shape.tiles(device)) {
      const DepthwiseGeometry geometry(shape, tile, waves(shape), device);
      if (shared_bytes(shape, tile, geometry) <= std::min(kMaxSharedBytes, device.shared_bytes))
        result.push_back(tile);
    }
    return result;
  }
};

}  // namespace

const CudaEngine& depthwise_engine() {
  static const DepthwiseEngine engine;
  return engine;
}

}  // namespace ashlar::cuda

#include "cuda/engines/pooling_global.hpp"

#include <algorithm>
#include <array>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kLanes = 32;

// Generates the text and the launch of the global pooling kernels.
class GlobalDesigner {
 public:
  GlobalDesigner(const Graph& graph, const Region& region, const PoolingShape& shape,
                 const DeviceProps& device)
      : graph_(graph),
        shape_(shape),
        flat_(*shape.flat()),
        device_(device),
        precision_(shape.precision(region)) {}

  LaunchDesign design() {
    if (shape_.columns) return shape_.forward ? columns() : spread();
    if (!shape_.forward) return backward();
    return has_tiles() ? tiles() : images();
  }

 private:
  // Forward, NHWC: kernels/pooling_global_forward_nhwc.cuh.
  LaunchDesign columns() {
    const std::int64_t groups = ceil_div(shape_.channels, kLanes * shape_.vector),
                       narrow_groups = ceil_div(shape_.channels, kLanes);
    // As few warps per image as saturate memory.
    std::int64_t shares = 1;
    while (shares < kMaxShares &&
           shape_.images * groups * kLanes * shares < device_.compute_units * kBusyThreads)
      shares *= 2;
    const std::int64_t threads = std::max(kColumnThreads, shares * kLanes),
                       per_block = threads / kLanes / shares,
                       blocks = ceil_div(shape_.images * groups, per_block);
    // Resident CTAs, which bound the registers for loads in flight.
    const std::int64_t at_once =
        std::clamp<std::int64_t>(ceil_div(blocks, device_.compute_units),
                                 kLeastColumnThreads / threads, kMaxColumnThreads / threads);
    divisor("groups", groups);
    divisor("narrow_groups", narrow_groups);
    arguments_.number("channels", shape_.channels);
    arguments_.number("images", shape_.images);
    LaunchDesign launch =
        launch_of({"pooling_global_forward_nhwc.cuh"}, threads,
                  constant("kVector", shape_.vector) + constant("kShares", shares) +
                      constant("kBlocks", at_once) + constant("kMaxAhead", kPixelsAhead));
    launch.grid.x = static_cast<unsigned>(blocks);
    launch.unaligned_grid.x =
        static_cast<unsigned>(ceil_div(shape_.images * narrow_groups, per_block));
    return launch;
  }

  // Backward of averages, NHWC: kernels/pooling_global_backward_nhwc.cuh.
  LaunchDesign spread() {
    constexpr std::int64_t kMaxRun = 8;  // pixels per thread
    const std::int64_t runs = ceil_div(shape_.pixels(), kMaxRun);
    divisor("packets", shape_.channels / shape_.vector);
    divisor("channels", shape_.channels);
    divisor("runs", runs);
    arguments_.number("images", shape_.images);
    LaunchDesign launch = launch_of(
        {"pooling_global_backward_nhwc.cuh"}, kThreads,
        constant("kVector", shape_.vector) + constant("kRun", ceil_div(shape_.pixels(), runs)));
    const std::int64_t threads = shape_.images * runs * shape_.channels;
    launch.grid.x = static_cast<unsigned>(ceil_div(threads / shape_.vector, kThreads));
    launch.unaligned_grid.x = static_cast<unsigned>(ceil_div(threads, kThreads));
    return launch;
  }

  // 16- or 32-bit floats that need no conversion before the copy, and a pipeline that fits.
  bool has_tiles() const {
    const PointwiseProgram& from = flat_.from;
    if (precision_ != f32 || !from.is_plain_load() || !from.stores.empty()) return false;
    const View& view = from.steps[0].view;
    const bool is_float = view.dtype == f32 || view.dtype == f16 || view.dtype == bf16;
    return is_float && !from.steps[0].round_to && view.strides[0] == 1 &&
           pipeline_bytes() <= device_.shared_bytes;
  }
  // Bytes of the pipelines of a CTA.
  std::int64_t pipeline_bytes() const {
    return kTileThreads * shape_.pixels() * bit_width(flat_.from.steps[0].view.dtype) / 8 * kStages;
  }
  // Forward, NCHW, cp.async pipelines of tiles: kernels/pooling_global_tiles.cuh.
  LaunchDesign tiles() {
    const std::int64_t images = shape_.images * shape_.channels, tiles = ceil_div(images, kLanes),
                       warps = kTileThreads / kLanes,
                       at_once = std::clamp<std::int64_t>(kPipelineBytes / pipeline_bytes(), 1,
                                                          kTileBlocks),
                       blocks = std::min(ceil_div(tiles, warps), device_.compute_units * at_once);
    arguments_.number("images", images);
    arguments_.number("elements", images * shape_.pixels());
    arguments_.number("tiles", tiles);
    const std::string type = tag(flat_.from.steps[0].view.dtype);
    LaunchDesign launch =
        launch_of({"pooling_global_tiles.cuh"}, kTileThreads,
                  "typedef " + type.substr(0, type.find('(')) + " Element;\n" +
                      constant("kStages", kStages) + constant("kBlocks", at_once));
    launch.shared_bytes = static_cast<unsigned>(pipeline_bytes());
    launch.grid.x = static_cast<unsigned>(blocks);
    launch.unaligned_grid.x = static_cast<unsigned>(ceil_div(images, kTileThreads));
    return launch;
  }

  // Forward, NCHW, inputs computed by the prologue: kernels/pooling_global_forward.cuh.
  LaunchDesign images() {
    constexpr std::int64_t kSharedBytes = 16 << 10, kImageThreads = 128;
    const std::int64_t bytes = precision_ == f64 ? 8 : 4, images = shape_.images * shape_.channels;
    // Multiples of 8, so that every CTA starts at a packet boundary.
    const std::int64_t rows =
        std::max<std::int64_t>(kSharedBytes / (shape_.pixels() * bytes) / 8 * 8, 8);
    arguments_.number("images", images);
    const int vector = packet_length({&flat_.from}, precision_ == f64 ? 2 : 4);
    LaunchDesign launch =
        launch_of({"pooling_global.cuh", "pooling_global_forward.cuh"}, kImageThreads,
                  constant("kVector", vector) + constant("kRows", rows));
    launch.shared_bytes = static_cast<unsigned>(rows * shape_.pixels() * bytes);
    launch.grid.x = launch.unaligned_grid.x = static_cast<unsigned>(ceil_div(images, rows));
    return launch;
  }

  // Backward of averages, NCHW: kernels/pooling_global_backward.cuh.
  LaunchDesign backward() {
    const std::int64_t images = shape_.images * shape_.channels,
                       elements = images * shape_.pixels();
    int vector = packet_length({&flat_.to}, precision_ == f64 ? 4 : 8);
    while (vector > shape_.pixels()) vector /= 2;
    arguments_.number("images", images);
    arguments_.number("elements", elements);
    LaunchDesign launch =
        launch_of({"pooling_global.cuh", "pooling_global_backward.cuh"}, kSpreadThreads,
                  constant("kVector", vector) + constant("kPackets", kPackets) +
                      constant("kBlocks", kSpreadBlocks));
    const std::int64_t per_block = kSpreadThreads * kPackets;
    launch.grid.x = static_cast<unsigned>(ceil_div(elements / vector, per_block));
    launch.unaligned_grid.x = static_cast<unsigned>(ceil_div(elements, per_block));
    return launch;
  }

  void divisor(const std::string& name, std::int64_t value) {
    arguments_.number(name, value);
    arguments_.number("magic_" + name, divider_word(value));
  }
  LaunchDesign launch_of(const std::vector<std::string_view>& files, std::int64_t threads,
                         const std::string& constants) {
    std::string from =
        print_program(flat_.from, graph_, shape_.forward ? "x_of" : "dy_of", arguments_);
    if (shape_.forward) from = with_streaming_loads(std::move(from));
    const std::string programs = from + print_program(flat_.to, graph_, "epilogue", arguments_);
    const std::string head = register_types(precision_, {&flat_.from, &flat_.to}) + constants +
                             constant("kThreads", threads) + constant("kPixels", shape_.pixels()) +
                             constant("kMaximum", shape_.is_maximum() ? 1 : 0) +
                             arguments_.struct_text() + programs;
    LaunchDesign launch{{"pooling_global", assemble(files, head)},
                        "pooling_global",
                        {},
                        static_cast<unsigned>(threads),
                        0,
                        arguments_};
    launch.unaligned_function = "pooling_global_elements";
    return launch;
  }

  static constexpr std::int64_t kThreads = 256;
  // Measured on the H200 with averages of 7 x 7: the bytes in flight matter, their shape hardly.
  static constexpr std::int64_t kColumnThreads = 128, kLeastColumnThreads = 512,
                                kMaxColumnThreads = 1024, kPixelsAhead = 16, kMaxShares = 8,
                                kBusyThreads = 384;  // per SM
  static constexpr std::int64_t kTileThreads = 128, kStages = 3, kTileBlocks = 4,
                                kPipelineBytes = 200 << 10;  // per SM
  static constexpr std::int64_t kSpreadThreads = 128, kPackets = 8, kSpreadBlocks = 8;

  const Graph& graph_;
  const PoolingShape& shape_;
  const PoolingShape::Flat flat_;
  const DeviceProps& device_;
  const DType precision_;
  Arguments arguments_;
};

}  // namespace

LaunchDesign design_global_pooling(const Graph& graph, const Region& region,
                                   const PoolingShape& shape, const DeviceProps& device) {
  return GlobalDesigner(graph, region, shape, device).design();
}

}  // namespace ashlar::cuda

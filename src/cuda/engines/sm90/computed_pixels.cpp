#include "cuda/engines/sm90/computed_pixels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/sm90/pixel_shape.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kMaxChannels = 8;  // per load

int sums_of(const GemmTile& tile, DType operands) {
  return tile.row_blocks() * tile.n / 2 * (promotes(operands) ? 2 : 1);
}

}  // namespace

bool are_computed(const PointwiseProgram& program, DType dtype) {
  if (program.is_plain_load() || !reads_along(program, 1)) return false;
  return compute_pixels(program, false).vector >=
         std::min(elements_per_16_bytes(dtype), kMaxChannels);
}

ComputedPixels compute_pixels(const PointwiseProgram& program, bool pointwise) {
  ComputedPixels result{.program = program};
  move_axis_last(result.program, 1);
  if (pointwise) {
    PointwiseProgram merged = result.program;
    Dims full = merged.space, channels = full;
    for (int axis = 0; axis + 1 < full.rank(); ++axis) channels[axis] = 1;
    merge_axes({&merged}, {&full, &channels});
    result.rows = merged.space.rank() == 2 && merged.space[1] == program.space[1];
    if (result.rows) result.program = std::move(merged);
  }
  result.vector = vector_length(result.program, static_cast<int>(kMaxChannels));
  while (program.space[1] % result.vector != 0) result.vector /= 2;
  return result;
}

View form_of_pixels(const PointwiseProgram& program, DType dtype) {
  View view = {};
  view.dtype = dtype;
  view.dims = view.strides = program.space;
  view.strides[1] = 1;
  std::int64_t stride = round_up(program.space[1], elements_per_16_bytes(dtype));
  for (int axis = program.space.rank() - 1; axis >= 0; --axis) {
    if (axis == 1) continue;
    view.strides[axis] = stride;
    stride *= program.space[axis];
  }
  return view;
}

bool has_producer_registers(const GemmTile& tile, DType operands) {
  return tile.cluster == 1 && sums_of(tile, operands) <= 128;
}
bool has_registers_for_two(const GemmTile& tile, DType operands) {
  return tile.m * tile.n >= 128 * 128 && sums_of(tile, operands) <= 96;
}

double producer_share(const PixelShape& shape, const GemmTile& tile, std::int64_t window_rows,
                      double taps) {
  if (!shape.computed) return 1;
  // Clocks: a thread waits for its loads, then spends some instructions per 16-byte piece. Measured
  // on an H200: 3 x 3 windows took 1.7 (128 x 128) and 3.2 to 3.6 times (256 x 64) as long as
  // without a prologue, 1 x 1 took 1.8 to 2.8 times.
  constexpr double kLatency = 800, kChunk = 8, kMost = 0.95;
  const double kPerPiece = window_rows > 0 ? 450 : 150;
  constexpr double kThreads = 128, kThreadsOfWindows = 96;
  const double of_line = tile.depth_bytes / 16.0;
  double products = 2.0 * tile.m * tile.n * tile.depth_bytes / 8192;  // clocks per tap
  double pieces = (shape.swap ? tile.n : tile.m) * of_line / kThreads / tile.producers;
  if (window_rows > 0) {
    products *= taps;
    pieces = static_cast<double>(window_rows) * of_line / kThreadsOfWindows;
  }
  return std::min(kMost, products / (kLatency * std::ceil(pieces / kChunk) + kPerPiece * pieces));
}

std::string print_pixels(const PixelShape& shape, const Graph& graph, Arguments& arguments) {
  if (!shape.computed) return constant("kComputesPixels", 0);
  const ImplicitGemm& product = shape.product;
  const ComputedPixels& computed = *shape.computed;
  arguments.number("images", product.images);
  constexpr std::array<char, 3> kAxes = {'d', 'h', 'w'};
  for (std::size_t axis = 0; axis < 3; ++axis)
    arguments.number(fmt::format("image_{}", kAxes[axis]), product.from_extent[axis]);
  arguments.number("channels", product.groups * product.depth);
  const std::string type = tag(shape.pixel_type);
  return fmt::format("typedef {} PixelMath;\n", type.substr(0, type.find('('))) +
         constant("kComputesPixels", 1) + constant("kPixelRows", computed.rows) +
         constant("kProgramRank", computed.program.space.rank()) +
         constant("kVectorPixels", computed.vector) + "namespace of_pixels {\n" +
         print_program_with_prefetch(computed.program, graph, "values", arguments) + "}\n";
}

}  // namespace ashlar::cuda

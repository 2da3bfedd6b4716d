#include "cuda/engines/interpolation.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kInterpolationThreads = 256;

}  // namespace

bool interpolates(const ResampleAttributes& op) {
  return op.mode == ResampleMode::nearest || op.mode == ResampleMode::bilinear;
}

Support supports_interpolation(const Region& region) {
  if (!region.anchor_as<ResampleForward>())
    return Support::no("backward of interpolation is not supported");
  if (!is_floating(region.anchor->compute))
    return Support::no("integer interpolation is not supported");
  const Dims &x = region.prologues[0].space, &y = region.epilogue.space;
  for (int axis = 2; axis < x.rank(); ++axis)
    if (x[axis] * y[axis] > std::numeric_limits<int>::max())
      return Support::no("resampling an axis from {1} to {0} elements overflows 32 bits", y[axis],
                         x[axis]);
  return Support::yes();
}

LaunchDesign design_interpolation(const Graph& graph, const Region& region,
                                  const PoolingShape& shape) {
  const DType precision = shape.precision(region);
  // NCHW: pixels of a row are loaded one by one and stored as vectors.
  const std::int64_t vector =
      shape.columns ? shape.vector : packet_length({&shape.to}, precision == f64 ? 4 : 8);
  const std::int64_t along = shape.columns ? shape.channels : shape.y[2];
  Arguments arguments;
  const auto divisor = [&](const std::string& name, std::int64_t value) {
    arguments.number(name, value);
    arguments.number("magic_" + name, divider_word(value));
  };
  divisor("packets", along / vector);
  divisor("singles", along);
  divisor("channels", shape.channels);
  divisor("to_d", shape.y[0]);
  divisor("to_h", shape.y[1]);
  divisor("to_w", shape.y[2]);
  arguments.number("images", shape.images);
  const std::string programs = print_program(shape.from, graph, "x_of", arguments) +
                               print_program(shape.to, graph, "epilogue", arguments);
  std::string constants;
  constexpr std::array<char, 3> kAxes = {'D', 'H', 'W'};
  for (std::size_t axis = 0; axis < 3; ++axis)
    constants += constant(fmt::format("kFrom{}", kAxes[axis]), shape.x[axis]) +
                 constant(fmt::format("kTo{}", kAxes[axis]), shape.y[axis]);
  const std::string head = register_types(precision, {&shape.from, &shape.to}) + constants +
                           constant("kColumns", shape.columns ? 1 : 0) +
                           constant("kVector", vector) +
                           constant("kThreads", kInterpolationThreads) +
                           constant("kLinear", shape.op->mode == ResampleMode::bilinear ? 1 : 0) +
                           constant("kAlignCorners", shape.op->align_corners ? 1 : 0) +
                           arguments.struct_text() + programs;
  const std::array<std::string_view, 1> files = {"interpolation.cuh"};
  LaunchDesign launch{{"interpolation", assemble(files, head)},
                      "interpolation",
                      {},
                      kInterpolationThreads,
                      0,
                      arguments};
  launch.unaligned_function = "interpolation_elements";
  const std::int64_t results = element_count(shape.to.space);
  launch.grid.x = static_cast<unsigned>(ceil_div(results / vector, kInterpolationThreads));
  launch.unaligned_grid.x = static_cast<unsigned>(ceil_div(results, kInterpolationThreads));
  return launch;
}

}  // namespace ashlar::cuda

#include "cuda/engines/pack_across.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr unsigned kPackThreads = 256;
constexpr std::int64_t kEdge = 64;  // of the squares that pass through shared memory

// Elements of 16 bytes, as far as the operand's memory allows it.
int vector_for(const PointwiseProgram& program) {
  int widest = 8;
  for (const auto& step : program.steps)
    if (step.kind == PointwiseProgram::Step::Kind::load)
      widest = std::max(widest, bit_width(step.view.dtype));
  return vector_length(program, std::clamp(128 / widest, 1, 8));
}

// The same of scratch.
int vector_for(DType dtype, const Dims& strides) {
  int length = std::clamp(128 / bit_width(dtype), 1, 8);
  for (int axis = 0; axis + 1 < strides.rank(); ++axis)
    while (strides[axis] % length != 0) length /= 2;
  return length;
}

}  // namespace

LaunchDesign pack_across(const Graph& graph, const PackAcross& pack, int booking) {
  const Dims& space = pack.from.space;
  const int rank = space.rank();
  PointwiseProgram along_rows = pack.from;
  move_axis_last(along_rows, rank - 2);
  View scratch;  // of which only the positions count
  scratch.dims = space;
  scratch.strides = pack.strides;
  PointwiseProgram to;
  to.space = space;
  to.stores.push_back({scratch, 0});

  LaunchDesign launch;
  Arguments& arguments = launch.arguments;
  add_extents(arguments, space);
  const std::int64_t across = (space[rank - 1] + kEdge - 1) / kEdge,
                     down = (space[rank - 2] + kEdge - 1) / kEdge;
  arguments.number("squares_across", across);
  arguments.number("squares_down", down);
  const std::string memory = arguments.scratch("packed", booking);
  std::string text = print_program(along_rows, graph, "source", arguments);
  std::string place, position;
  for (int axis = 0; axis < rank; ++axis) {
    const std::string stride =
        arguments.number(fmt::format("packed_stride{}", axis), pack.strides[axis]);
    position += fmt::format("{}at[{}] * (Index){}", axis == 0 ? "" : " + ", axis, stride);
    if (axis < rank - 2) place += fmt::format("origin[{}], ", axis);
  }
  const std::string row = fmt::format("origin[{}] + row", rank - 2),
                    column = fmt::format("origin[{}] + column", rank - 1);
  // One of the functions of kernels/pointwise_tiled.cuh.
  const auto function = [&](const char* name, const std::string& last, const std::string& body) {
    return fmt::format(
        "template <int kCount>\n__device__ inline void {}(const Args& args, const Index "
        "(&origin)[{}], int row,\n    int column, Tile<R, kEdge>* tiles) {{\n"
        "  const Index at[{}] = {{{}{}}};\n  R values[kCount];\n{}}}\n",
        name, rank, rank, place, last, body);
  };
  text += function("fetch_tiles", column + ", " + row,
                   "  source<kCount>(args, at, values);\n"
                   "  keep(tiles[0], column, row, values);\n") +
          function("compute_tile", row + ", " + column,
                   fmt::format("  take_across(tiles[0], column, row, values);\n"
                               "  store_row({}, {}, {}, values);\n",
                               tag(pack.dtype), memory, position)) +
          function("flush_tiles", row + ", " + column, "");
  const std::string head = register_types(f32, {&along_rows, &to}) + constant("kRank", rank) +
                           constant("kEdge", kEdge) + constant("kFetches", 1) +
                           constant("kFlushes", 0) +
                           constant("kVector", vector_for(pack.dtype, pack.strides)) +
                           constant("kCrossVector", vector_for(along_rows)) +
                           constant("kThreads", kPackThreads) + arguments.struct_text() + text;
  launch.source = {"pack_across", assemble("pointwise_tiled.cuh", head)};
  launch.function = "pointwise_tiled";
  launch.unaligned_function = "pointwise_tiled_elements";
  launch.threads = kPackThreads;
  launch.shared_bytes = static_cast<unsigned>(kEdge * (kEdge + 1) * 4);
  launch.grid.x = static_cast<unsigned>(element_count(space) / space[rank - 1] / space[rank - 2] *
                                        across * down);
  launch.unaligned_grid = launch.grid;
  return launch;
}

}  // namespace ashlar::cuda

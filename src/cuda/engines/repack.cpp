#include "cuda/engines/repack.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr unsigned kPackThreads = 256;
constexpr std::int64_t kEdge = 64;  // of the square tiles in shared memory
// Tile of a CTA without transpose: whole rows where they are not longer.
constexpr std::int64_t kMaxAcross = 256, kElements = 4096;

// Vector length: 16 bytes, as far as the operand's memory allows.
int vector_for(const PointwiseProgram& program) {
  int widest = 8;
  for (const auto& step : program.steps)
    if (step.kind == PointwiseProgram::Step::Kind::load)
      widest = std::max(widest, bit_width(step.view.dtype));
  return vector_length(program, std::clamp(128 / widest, 1, 8));
}

// The same for the workspace.
int vector_for(DType dtype, const Dims& strides) {
  int length = std::clamp(128 / bit_width(dtype), 1, 8);
  for (int axis = 0; axis + 1 < strides.rank(); ++axis)
    while (strides[axis] % length != 0) length /= 2;
  return length;
}

}  // namespace

LaunchDesign repack(const Graph& graph, const Repack& pack, int reservation) {
  const Dims& space = pack.from.space;
  const int rank = space.rank();
  // Only memory that is contiguous along rows needs the transpose through shared memory.
  const bool turns = !reads_along(pack.from, rank - 1);
  PointwiseProgram read = pack.from;
  if (turns) move_axis_last(read, rank - 2);
  View scratch;  // only its coordinates matter
  scratch.dims = space;
  scratch.strides = pack.strides;
  PointwiseProgram to;
  to.space = space;
  to.stores.push_back({scratch, 0});

  LaunchDesign launch;
  Arguments& arguments = launch.arguments;
  add_extents(arguments, space);
  const int of_scratch = vector_for(pack.dtype, pack.strides), of_operand = vector_for(read),
            vector = turns ? of_scratch : std::min(of_scratch, of_operand);
  const std::int64_t columns = space[rank - 1], rows = space[rank - 2],
                     parts = ceil_div(columns, kMaxAcross),
                     block_columns = turns ? kEdge : round_up(ceil_div(columns, parts), vector),
                     block_rows = turns ? kEdge : kElements / block_columns,
                     across = ceil_div(columns, block_columns), down = ceil_div(rows, block_rows);
  arguments.number("tiles_across", across);
  arguments.number("tiles_down", down);
  const std::string memory = arguments.scratch("packed", reservation);
  std::string text = print_program(read, graph, "source", arguments);
  std::string place, position;
  for (int axis = 0; axis < rank; ++axis) {
    const std::string stride =
        arguments.number(fmt::format("packed_stride{}", axis), pack.strides[axis]);
    position += fmt::format("{}at[{}] * (Index){}", axis == 0 ? "" : " + ", axis, stride);
    if (axis < rank - 2) place += fmt::format("origin[{}], ", axis);
  }
  const std::string row = fmt::format("origin[{}] + row", rank - 2),
                    column = fmt::format("origin[{}] + column", rank - 1);
  // One of the functions that kernels/pointwise_tiled.cuh calls.
  const auto function = [&](const char* name, const std::string& last, const std::string& body) {
    return fmt::format(
        "template <int kCount>\n__device__ inline void {}(const Args& args, const Index "
        "(&origin)[{}], int row,\n    int column, Tile<R, kEdge>* tiles) {{\n"
        "  const Index at[{}] = {{{}{}}};\n  R values[kCount];\n{}}}\n",
        name, rank, rank, place, last, body);
  };
  const std::string fetch = "  source<kCount>(args, at, values);\n";
  const std::string store =
      fmt::format("  store_row({}, {}, {}, values);\n", tag(pack.dtype), memory, position);
  const std::string fill =
      pack.zeros == 0
          ? ""
          : fmt::format(
                "  if (at[{0}] + kCount != (Index)args.extent{0}) return;\n"
                "  const R zero[1] = {{0}};\n"
                "  for (Index i = 0; i < (Index){1}; ++i)\n"
                "    store_row({2}, {3}, {4} + kCount + i, zero);\n",
                rank - 1, arguments.number("zeros", pack.zeros), tag(pack.dtype), memory, position);
  text +=
      function("fetch_tiles", column + ", " + row,
               turns ? fetch + "  keep(tiles[0], column, row, values);\n" : "") +
      function("compute_tile", row + ", " + column,
               (turns ? "  take_across(tiles[0], column, row, values);\n" : fetch) + store + fill) +
      function("flush_tiles", row + ", " + column, "");
  const std::string head = register_types(f32, {&read, &to}) + constant("kRank", rank) +
                           constant("kEdge", kEdge) + constant("kDown", block_rows) +
                           constant("kAcross", block_columns) + constant("kFetches", turns) +
                           constant("kFlushes", 0) + constant("kVector", vector) +
                           constant("kTransposedVector", of_operand) +
                           constant("kThreads", kPackThreads) + arguments.struct_text() + text;
  launch.source = {"repack", assemble("pointwise_tiled.cuh", head)};
  launch.function = "pointwise_tiled";
  launch.unaligned_function = "pointwise_tiled_elements";
  launch.threads = kPackThreads;
  launch.shared_bytes = turns ? static_cast<unsigned>(kEdge * (kEdge + 1) * 4) : 0;
  launch.grid.x = static_cast<unsigned>(element_count(space) / columns / rows * across * down);
  launch.unaligned_grid = launch.grid;
  return launch;
}

}  // namespace ashlar::cuda

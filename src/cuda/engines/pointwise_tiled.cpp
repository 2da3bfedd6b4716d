// Engine for element-wise regions whose tensors have two different contiguous axes (transposes,
// layout changes, transposed operands): tiles are transposed through shared memory.
#include <algorithm>

#include "cuda/engines/element_program.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

using Step = PointwiseProgram::Step;

constexpr unsigned kTiledThreads = 256;
constexpr std::int64_t kLeastExtent = 16;       // of both axes, for tiles to pay off
constexpr int kMaxCrossed = 3;                  // transposed operands and results
constexpr std::int64_t kTiledBytes = 36 << 10;  // per CTA: several CTAs fit an SM

// The program over axes (..., rows, columns): most views are contiguous along the columns.
struct TransposedAccess {
  PointwiseProgram program;
  std::vector<int> fetched;  // loads contiguous along the rows
  std::vector<int> flushed;  // stores contiguous along the rows
};

bool lies_along(const View& view, int axis, int last) {
  return view.strides[axis] == 1 && view.strides[last] > 1;
}

// The axis other than the last along which views are contiguous, if all agree; -1: none.
int transposed_axis(const PointwiseProgram& program) {
  const int last = program.space.rank() - 1;
  int crossed = -1;
  bool agree = true;
  const auto look = [&](const View& view) {
    if (view.strides[last] <= 1) return;
    int own = -1;
    for (int axis = 0; axis < last; ++axis)
      if (program.space[axis] > 1 && view.strides[axis] == 1) own = axis;
    agree = agree && own >= 0 && (crossed < 0 || crossed == own);
    crossed = own;
  };
  for (const Step& step : program.steps)
    if (step.kind == Step::Kind::load) look(step.view);
  for (const auto& store : program.stores) look(store.view);
  return agree ? crossed : -1;
}

std::optional<TransposedAccess> transposed_access(const Region& region) {
  std::vector<PointwiseProgram> programs = element_programs(region);
  if (programs.size() != 1 || programs[0].space.rank() < 2) return {};
  PointwiseProgram& program = programs[0];
  if (program.has_blocks()) return {};
  Dims space = program.space;
  merge_axes({&program}, {&space});
  if (program.space.rank() < 2) return {};
  move_axis_last(program, choose_row_axis(program.space, {&program}));
  const int rows = transposed_axis(program), last = program.space.rank() - 1;
  if (rows < 0 || program.space[rows] < kLeastExtent || program.space[last] < kLeastExtent)
    return {};
  // Moves axes to (..., rows, columns) in two steps.
  move_axis_last(program, rows);
  move_axis_last(program, last - 1);
  TransposedAccess result{std::move(program), {}, {}};
  for (std::size_t i = 0; i < result.program.steps.size(); ++i)
    if (const Step& step = result.program.steps[i];
        step.kind == Step::Kind::load && lies_along(step.view, last - 1, last))
      result.fetched.push_back(static_cast<int>(i));
  for (std::size_t i = 0; i < result.program.stores.size(); ++i)
    if (lies_along(result.program.stores[i].view, last - 1, last))
      result.flushed.push_back(static_cast<int>(i));
  return result;
}

bool is_plain(const View& view) {
  return view.ragged_offset == kNoTensor && !is_complex(view.dtype) && bit_width(view.dtype) >= 8;
}

// A program on one view, with the rows as the last axis.
PointwiseProgram along_rows(PointwiseProgram program) {
  move_axis_last(program, program.space.rank() - 2);
  return program;
}

// The printed device functions of a transposed access.
class Printed {
 public:
  Printed(const TransposedAccess& transposed_access, const Graph& graph, Arguments& arguments)
      : rank_(transposed_access.program.space.rank()) {
    PointwiseProgram main = transposed_access.program;
    std::string fetch, take, give, flush;
    int tile = 0;
    for (const int number : transposed_access.fetched) {
      Step& step = main.steps[static_cast<std::size_t>(number)];
      const std::string name = fmt::format("fetch{}", tile);
      add(along_rows(plain_load(step.view)), graph, name, arguments);
      fetch += fmt::format(
          "  R row{0}[kCount];\n  {1}<kCount>(args, at, row{0});\n"
          "  keep(tiles[{0}], column, row, row{0});\n",
          tile, name);
      take += fmt::format("  R acc{0}[kCount];\n  take_across(tiles[{0}], column, row, acc{0});\n",
                          tile);
      operands_ += fmt::format(", acc{}", tile);
      const std::optional<DType> round_to = step.round_to;
      step = {.kind = Step::Kind::accumulator, .row = tile++};
      step.round_to = round_to;
    }
    for (const int number : transposed_access.flushed) {
      const auto& store = main.stores[static_cast<std::size_t>(number)];
      add(along_rows(plain_store(store.view)), graph, "flush0", arguments);
      main.result = store.value;
      give = fmt::format("  keep_across(tiles[{}], column, row, result);\n", tile);
      flush = fmt::format(
          "  R line[kCount];\n  take_along(tiles[{}], column, row, line);\n"
          "  flush0<kCount>(args, at, line);\n",
          tile++);
      main.stores.erase(main.stores.begin() + number);
      operands_ += ", result";
      take += "  R result[kCount];\n";
    }
    tiles = tile;
    add(main, graph, "program", arguments);
    vector = vector_for(main);
    text += function("fetch_tiles", true, fetch) +
            function("compute_tile", false,
                     take + "  program<kCount>(args, at" + operands_ + ");\n" + give) +
            function("flush_tiles", true, flush);
  }

  std::string text;
  std::vector<PointwiseProgram> programs;
  int tiles = 0, vector = 1, transposed_vector = 16;

 private:
  // 16 bytes of the widest type that is loaded or stored as vectors.
  static int vector_for(const PointwiseProgram& program) {
    int widest = 8;
    for (const Step& step : program.steps)
      if (step.kind == Step::Kind::load) widest = std::max(widest, bit_width(step.view.dtype));
    for (const auto& store : program.stores) widest = std::max(widest, bit_width(store.view.dtype));
    return vector_length(program, std::clamp(128 / widest, 1, 8));
  }

  void add(const PointwiseProgram& program, const Graph& graph, const std::string& name,
           Arguments& arguments) {
    text += print_program(program, graph, name, arguments);
    if (name != "program") transposed_vector = std::min(transposed_vector, vector_for(program));
    programs.push_back(program);
  }

  // A device function on kCount elements from (row, column) of the tile at `origin`.
  std::string function(const char* name, bool rows_last, const std::string& body) const {
    std::string place;
    for (int axis = 0; axis < rank_ - 2; ++axis) place += fmt::format("origin[{}], ", axis);
    const std::string row = fmt::format("origin[{}] + row", rank_ - 2),
                      column = fmt::format("origin[{}] + column", rank_ - 1);
    place += rows_last ? column + ", " + row : row + ", " + column;
    return fmt::format(
        "template <int kCount>\n__device__ inline void {}(const Args& args, const Index "
        "(&origin)[{}], int row,\n    int column, Tile<R, kEdge>* tiles) {{\n"
        "  const Index at[{}] = {{{}}};\n{}}}\n",
        name, rank_, rank_, place, body);
  }

  int rank_;
  std::string operands_;
};

class PointwiseTiledEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.pointwise_tiled"; }
  std::string_view description() const override {
    return "pointwise operations on transposed tensors, in shared-memory tiles";
  }

  bool stores_last(const Region&) const override { return true; }
  Support supports(const Region& region, const DeviceProps&) const override {
    const std::vector<PointwiseProgram> programs = element_programs(region);
    if (programs.empty()) return Support::other_operation("the region is not element-wise");
    for (const Step& step : programs[0].steps)
      if (step.kind == Step::Kind::load && !is_plain(step.view))
        return Support::no("a ragged, complex or bit-packed tensor");
    for (const auto& store : programs[0].stores)
      if (!is_plain(store.view)) return Support::no("a ragged, complex or bit-packed tensor");
    const auto found = transposed_access(region);
    if (!found) return Support::no("the tensors do not have two different contiguous axes");
    if (found->flushed.size() > 1) return Support::no("more than one result is transposed");
    if (found->fetched.size() + found->flushed.size() > kMaxCrossed)
      return Support::no("more than {} tensors are transposed", kMaxCrossed);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    Config config;
    config.cost = {.flops = region.flops(), .bytes = region.bytes(), .bytes_fraction = 0.7};
    config.notes.runtime_compiled = true;
    return {config};
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config&,
                      const DeviceProps&) const override {
    const TransposedAccess found = *transposed_access(region);
    const Dims& space = found.program.space;
    const int rank = space.rank();
    KernelDesign result;
    if (element_count(space) == 0) return result;
    LaunchDesign launch;
    Arguments& arguments = launch.arguments;
    add_extents(arguments, space);
    const Printed printed(found, graph, arguments);
    const DType precision = found.program.precision();
    const std::int64_t of_element = precision == f64 ? 8 : 4;
    const auto bytes_of = [&](std::int64_t edge) {
      return printed.tiles * edge * (edge + 1) * of_element;
    };
    const std::int64_t edge = bytes_of(64) <= kTiledBytes ? 64 : 32;
    const std::int64_t across = (space[rank - 1] + edge - 1) / edge,
                       down = (space[rank - 2] + edge - 1) / edge;
    arguments.number("tiles_across", across);
    arguments.number("tiles_down", down);
    std::vector<const PointwiseProgram*> programs;
    for (const PointwiseProgram& program : printed.programs) programs.push_back(&program);
    const std::string head =
        register_types(precision, programs) + constant("kRank", rank) + constant("kEdge", edge) +
        constant("kDown", edge) + constant("kAcross", edge) +
        constant("kFetches", static_cast<std::int64_t>(found.fetched.size())) +
        constant("kFlushes", static_cast<std::int64_t>(found.flushed.size())) +
        constant("kVector", printed.vector) +
        constant("kTransposedVector", printed.transposed_vector) +
        constant("kThreads", kTiledThreads) + arguments.struct_text() + printed.text;
    launch.source = {"pointwise_tiled", assemble("pointwise_tiled.cuh", head)};
    launch.function = "pointwise_tiled";
    launch.unaligned_function = "pointwise_tiled_elements";
    launch.threads = kTiledThreads;
    launch.shared_bytes = static_cast<unsigned>(bytes_of(edge));
    launch.grid.x = static_cast<unsigned>(element_count(space) / space[rank - 1] / space[rank - 2] *
                                          across * down);
    launch.unaligned_grid = launch.grid;
    result.launches.push_back(std::move(launch));
    return result;
  }
};

}  // namespace

const CudaEngine& pointwise_tiled_engine() {
  static const PointwiseTiledEngine engine;
  return engine;
}

}  // namespace ashlar::cuda

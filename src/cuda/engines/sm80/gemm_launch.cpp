// Launches of the sm_80 GEMM: generated text and kernel arguments.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ceil_div.hpp"
#include "cuda/engines/sm80/gemm_design.hpp"
#include "cuda/engines/split_k_reduce.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

// Columns per vector access: contiguous and aligned in every tensor that the epilogue touches.
int GemmDesigner::result_vector() const {
  const PointwiseProgram& program = problem_.d.program;
  const Coordinate& along = problem_.d.coordinates.back();
  const bool halves =
      std::all_of(program.stores.begin(), program.stores.end(),
                  [](const auto& store) { return bit_width(store.view.dtype) <= 16; });
  int vector = vector_length(program, halves && types_.sum != f64 ? 8 : 4);
  const auto fits = [&](const PerVariant& numbers) {
    for (const std::int64_t number : numbers)
      while (vector > 1 && number % vector != 0) vector /= 2;
  };
  const int last = static_cast<int>(problem_.of(GemmDim::n).size()) - 1;
  bool is_driven = false;
  fits(along.base);
  for (const IndexTerm& term : along.terms) {
    const bool is_fast = term.dim == GemmDim::n && term.sub_index == last;
    if (is_fast)
      is_driven =
          std::all_of(term.factor.begin(), term.factor.end(), [](auto f) { return f == 1; });
    else
      fits(term.factor);
  }
  if (!is_driven) return 1;
  fits(problem_.of(GemmDim::n).back());
  fits({program.space[program.space.rank() - 1]});  // smaller than n where n exceeds it
  return vector;
}

// The epilogue, or with split-K the store of partials.
std::string GemmDesigner::print_epilogue(const Graph& graph, Arguments& arguments,
                                         bool is_split) const {
  const PointwiseProgram& program = problem_.d.program;
  const int rank = program.space.rank();
  const bool has_lengths = problem_.m_override.present() || problem_.n_override.present();
  std::string text;
  if (is_split) {
    text += print_empty_prefetch(rank);
    std::string index = "0";
    for (int axis = 0; axis < rank; ++axis)
      index =
          fmt::format("({}) * {} + at[{}]", index,
                      arguments.number(fmt::format("space{}", axis), program.space[axis]), axis);
    text += fmt::format(
        "template <int kCount>\n"
        "__device__ inline void finish(const Args& args, const Index (&at)[{}], R (&acc)[kCount], "
        "const Held<kCount>&) {{\n  const int64 index = {} + (int64)blockIdx.y * {};\n"
        "  store_row({}, args.partial, index, acc);\n}}\n",
        rank, "(int64)" + index, arguments.number("results", element_count(program.space)),
        tag(types_.sum));
  } else {
    text +=
        print_program_with_prefetch(program, graph, has_lengths ? "finish" : "epilogue", arguments);
  }
  if (!has_lengths && !is_split) return text;
  std::string outside;
  const auto length = [&](const View& view, const char* name, int axis) {
    if (!view.present()) return;
    text += print_integer_load(view, graph, name, arguments);
    outside += fmt::format("{}at[{}]{} >= {}(args, at)", outside.empty() ? "" : " || ", axis,
                           axis == rank - 1 ? " + l" : "", name);
  };
  length(problem_.m_override, "m_override", problem_.row_axis);
  length(problem_.n_override, "n_override", problem_.column_axis);
  std::string replace;
  if (!outside.empty())
    replace = fmt::format(
        "#pragma unroll\n  for (int l = 0; l < kCount; ++l)\n"
        "    if ({}) acc[l] = {};\n",
        outside,
        is_split ? fmt::format("blockIdx.y == 0 ? {} : (R)0", literal(problem_.padding_value))
                 : literal(problem_.padding_value));
  return text + fmt::format(
                    "template <int kCount>\n"
                    "__device__ inline void epilogue(const Args& args, const Index (&at)[{}], "
                    "R (&acc)[kCount], const Held<kCount>& held) {{\n{}"
                    "  finish<kCount>(args, at, acc, held);\n}}\n",
                    rank, replace);
}

std::string GemmDesigner::print_k_extent(const Graph& graph, VariantArguments& arguments) const {
  PerVariant depths;
  for (std::size_t v = 0; v < problem_.variants; ++v)
    depths.push_back(problem_.extent(GemmDim::k, v));
  const std::string depth = arguments.add("depth", depths);
  std::string text, limit;
  if (problem_.k_override.present()) {
    text = print_integer_load(problem_.k_override, graph, "k_override", arguments.arguments());
    limit = fmt::format(
        "  Index at[{}];\n  place(args, work, 0, 0, at);\n"
        "  const int64 given = k_override(args, at);\n"
        "  if (given < {}) return given > 0 ? (int)given : 0;\n",
        problem_.d.program.space.rank(), depth);
  }
  return text + "__device__ inline int k_extent(const Args& args, const WorkTile& work) {\n" +
         limit + fmt::format("  return (int){};\n}}\n", depth);
}

LaunchDesign GemmDesigner::launch(const Graph& graph, const WarpTile& tile, std::size_t first,
                                  int partial, const std::map<int, int>& reservations) const {
  LaunchDesign launch;
  const std::size_t count = std::min(problem_.variants, kVariantsPerLaunch);
  VariantArguments arguments(launch.arguments, first, count);
  PerVariant rows, columns, tiles_m, tiles_n, first_tile;
  std::int64_t before = 0;
  for (std::size_t v = 0; v < problem_.variants; ++v) {
    if (v == first) before = 0;
    rows.push_back(problem_.extent(GemmDim::m, v));
    columns.push_back(problem_.extent(GemmDim::n, v));
    tiles_m.push_back(ceil_div(rows.back(), tile.m));
    tiles_n.push_back(ceil_div(columns.back(), tile.n));
    first_tile.push_back(before);
    before += tiles_m.back() * tiles_n.back();
  }
  arguments.add_array("rows", rows);
  arguments.add_array("columns", columns);
  arguments.add_array("tiles_m", tiles_m);
  arguments.add_array("tiles_n", tiles_n);
  arguments.add_array("first_tile", first_tile);
  const std::int64_t all = tile_count(tile, first, count);
  launch.arguments.number("all_tiles", all);
  const std::int64_t stage = block_k(tile);
  launch.arguments.number("k_per_split", ceil_div(ceil_div(max_k(), stage), tile.split) * stage);
  if (tile.split > 1) launch.arguments.scratch("partial", partial);
  const auto print_operand = [&](const OperandText& operand, const char* name) {
    const auto found = reservations.find(operand.slot());
    return operand.print(name, graph, arguments,
                         found == reservations.end() ? std::nullopt : std::optional(found->second));
  };
  const std::string printed =
      print_operand(operands_[0], "OperandA") + print_operand(operands_[1], "OperandB") +
      print_address(problem_, problem_.d, arguments) +
      print_epilogue(graph, launch.arguments, tile.split > 1) + print_k_extent(graph, arguments);
  const std::vector<const PointwiseProgram*> programs = {&problem_.a.program, &problem_.b.program,
                                                         &problem_.d.program};
  const std::int64_t warp_n = tile.n / tile.warps_n();
  const std::string head =
      register_types(region_.precision(), programs) +
      fmt::format("typedef {} TypeA;\ntypedef {} TypeB;\ntypedef {} Accum;\n", type_name(types_.a),
                  type_name(types_.b),
                  types_.sum == f64   ? "double"
                  : types_.sum == f32 ? "float"
                                      : "int") +
      constant("kTileM", tile.m) + constant("kTileN", tile.n) + constant("kTileBytes", tile.bytes) +
      constant("kWarpsM", tile.warps_m()) + constant("kWarpsN", tile.warps_n()) +
      constant("kThreads", tile.threads()) + constant("kBlocks", blocks_per_sm(tile)) +
      constant("kStages", tile.stages) + constant("kProducts", tile.products) +
      constant("kHasKOverride", problem_.k_override.present() ? 1 : 0) +
      constant("kVariants", static_cast<std::int64_t>(count)) +
      constant("kRank", problem_.d.program.space.rank()) + constant("kVector", result_vector()) +
      constant("kSkipsResults", axes_out_of_bounds(problem_, problem_.d).empty() ? 0 : 1) +
      constant("kHeldRegisters", 16) +
      constant("kStagingColumns", std::min<std::int64_t>(warp_n, 64)) +
      launch.arguments.struct_text() + printed;
  constexpr std::array<std::string_view, 5> kFiles = {
      "lib/epilogue_rows.cuh", "sm80/tile.cuh", "sm80/loader.cuh", "sm80/mma.cuh", "sm80/gemm.cuh"};
  launch.source = {"gemm_sm80", assemble(kFiles, head)};
  launch.function = "gemm_sm80";
  launch.unaligned_function = "gemm_sm80_elements";
  launch.threads = static_cast<unsigned>(tile.threads());
  launch.shared_bytes = static_cast<unsigned>(shared_bytes(tile));
  launch.grid = {static_cast<unsigned>(all * problem_.extent(GemmDim::batch, first)),
                 static_cast<unsigned>(tile.split), 1};
  launch.unaligned_grid = launch.grid;
  return launch;
}

KernelDesign GemmDesigner::design(const Graph& graph, const Config& config) const {
  const WarpTile tile{config.knob("tile_m"), config.knob("tile_n"), config.knob("tile_bytes"),
                      config.knob("stages"), config.knob("split"),  config.knob("products")};
  KernelDesign result;
  std::map<int, int> reservations;  // by input of the anchor
  for (const auto& [slot, operand] : packs_) {
    reservations[slot] = result.scratch.add(fmt::format("input {}", slot), operand.scratch_bytes);
    result.launches.push_back(repack(graph, *operand.pack, reservations[slot]));
  }
  SplitKReduction sum{problem_.d.program, tile.split, types_.sum, 0};
  if (tile.split > 1) sum.reservation = result.scratch.add("partial sums", sum.bytes());
  for (std::size_t first = 0; first < problem_.variants; first += kVariantsPerLaunch)
    if (tile_count(tile, first, kVariantsPerLaunch) > 0)
      result.launches.push_back(launch(graph, tile, first, sum.reservation, reservations));
  if (tile.split > 1) result.launches.push_back(split_k_reduce(graph, sum, region_.precision()));
  return result;
}

}  // namespace ashlar::cuda

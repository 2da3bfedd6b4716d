// What a tensor product on tensor cores of sm_80 and later is launched with: text and arguments.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ceil_div.hpp"
#include "cuda/engines/sm80/product_design.hpp"
#include "cuda/engines/split_sum.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

// Neighbouring columns that lie together and aligned in everything the epilogue touches.
int ProductDesigner::result_vector() const {
  const PointwiseProgram& program = product_.d.program;
  const Coordinate& along = product_.d.coordinates.back();
  const bool halves =
      std::all_of(program.stores.begin(), program.stores.end(),
                  [](const auto& store) { return bit_width(store.view.dtype) <= 16; });
  int vector = vector_length(program, halves && types_.sum != f64 ? 8 : 4);
  const auto fits = [&](const Numbers& numbers) {
    for (const std::int64_t number : numbers)
      while (vector > 1 && number % vector != 0) vector /= 2;
  };
  const int last = static_cast<int>(product_.of(Group::n).size()) - 1;
  bool is_driven = false;
  fits(along.base);
  for (const DigitTerm& term : along.terms) {
    const bool is_fast = term.group == Group::n && term.digit == last;
    if (is_fast)
      is_driven =
          std::all_of(term.factor.begin(), term.factor.end(), [](auto f) { return f == 1; });
    else
      fits(term.factor);
  }
  if (!is_driven) return 1;
  fits(product_.of(Group::n).back());
  fits({program.space[program.space.rank() - 1]});  // less, where columns leave it
  return vector;
}

// The epilogue, or, where the depth is shared out, what keeps a partial sum.
std::string ProductDesigner::print_epilogue(const Graph& graph, Arguments& arguments,
                                            bool is_split) const {
  const PointwiseProgram& program = product_.d.program;
  const int rank = program.space.rank();
  const bool has_lengths = product_.m_override.present() || product_.n_override.present();
  std::string text;
  if (is_split) {
    text += print_nothing_held(rank);
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
    text += print_holding_program(program, graph, has_lengths ? "finish" : "epilogue", arguments);
  }
  if (!has_lengths && !is_split) return text;
  std::string outside;
  const auto length = [&](const View& view, const char* name, int axis) {
    if (!view.present()) return;
    text += print_integer_load(view, graph, name, arguments);
    outside += fmt::format("{}at[{}]{} >= {}(args, at)", outside.empty() ? "" : " || ", axis,
                           axis == rank - 1 ? " + l" : "", name);
  };
  length(product_.m_override, "m_override", product_.row_axis);
  length(product_.n_override, "n_override", product_.column_axis);
  std::string replace;
  if (!outside.empty())
    replace = fmt::format(
        "#pragma unroll\n  for (int l = 0; l < kCount; ++l)\n"
        "    if ({}) acc[l] = {};\n",
        outside,
        is_split ? fmt::format("blockIdx.y == 0 ? {} : (R)0", literal(product_.padding_value))
                 : literal(product_.padding_value));
  return text + fmt::format(
                    "template <int kCount>\n"
                    "__device__ inline void epilogue(const Args& args, const Index (&at)[{}], "
                    "R (&acc)[kCount], const Held<kCount>& held) {{\n{}"
                    "  finish<kCount>(args, at, acc, held);\n}}\n",
                    rank, replace);
}

std::string ProductDesigner::print_depth(const Graph& graph, VariantArguments& arguments) const {
  Numbers depths;
  for (std::size_t v = 0; v < product_.variants; ++v)
    depths.push_back(product_.extent(Group::k, v));
  const std::string depth = arguments.add("depth", depths);
  std::string text, limit;
  if (product_.k_override.present()) {
    text = print_integer_load(product_.k_override, graph, "k_override", arguments.arguments());
    limit = fmt::format(
        "  Index at[{}];\n  place(args, where, 0, 0, at);\n"
        "  const int64 given = k_override(args, at);\n"
        "  if (given < {}) return given > 0 ? (int)given : 0;\n",
        product_.d.program.space.rank(), depth);
  }
  return text + "__device__ inline int depth_of(const Args& args, const Where& where) {\n" + limit +
         fmt::format("  return (int){};\n}}\n", depth);
}

LaunchDesign ProductDesigner::launch(const Graph& graph, const WarpTile& tile, std::size_t first,
                                     int partial, const std::map<int, int>& bookings) const {
  LaunchDesign launch;
  const std::size_t count = std::min(product_.variants, kVariantsPerLaunch);
  VariantArguments arguments(launch.arguments, first, count);
  Numbers rows, columns, tiles_m, tiles_n, first_tile;
  std::int64_t before = 0;
  for (std::size_t v = 0; v < product_.variants; ++v) {
    if (v == first) before = 0;
    rows.push_back(product_.extent(Group::m, v));
    columns.push_back(product_.extent(Group::n, v));
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
  const std::int64_t stage = depth_of_stage(tile);
  launch.arguments.number("depth_of_split",
                          ceil_div(ceil_div(longest_depth(), stage), tile.split) * stage);
  if (tile.split > 1) launch.arguments.scratch("partial", partial);
  const auto print_operand = [&](const OperandText& operand, const char* name) {
    const auto found = bookings.find(operand.slot());
    return operand.print(name, graph, arguments,
                         found == bookings.end() ? std::nullopt : std::optional(found->second));
  };
  const std::string printed =
      print_operand(operands_[0], "OperandA") + print_operand(operands_[1], "OperandB") +
      print_place(product_, product_.d, arguments) +
      print_epilogue(graph, launch.arguments, tile.split > 1) + print_depth(graph, arguments);
  const std::vector<const PointwiseProgram*> programs = {&product_.a.program, &product_.b.program,
                                                         &product_.d.program};
  const std::int64_t warp_n = tile.n / tile.warps_n();
  const std::string head =
      register_types(region_.precision(), programs) +
      fmt::format("typedef {} TypeA;\ntypedef {} TypeB;\ntypedef {} Sum;\n", type_name(types_.a),
                  type_name(types_.b),
                  types_.sum == f64   ? "double"
                  : types_.sum == f32 ? "float"
                                      : "int") +
      constant("kTileM", tile.m) + constant("kTileN", tile.n) + constant("kTileBytes", tile.bytes) +
      constant("kWarpsM", tile.warps_m()) + constant("kWarpsN", tile.warps_n()) +
      constant("kThreads", tile.threads()) + constant("kBlocks", blocks_per_sm(tile)) +
      constant("kStages", tile.stages) + constant("kProducts", tile.products) +
      constant("kCutsDepth", product_.k_override.present() ? 1 : 0) +
      constant("kVariants", static_cast<std::int64_t>(count)) +
      constant("kRank", product_.d.program.space.rank()) + constant("kVector", result_vector()) +
      constant("kLeavesResultsOut", axes_exceeded(product_, product_.d).empty() ? 0 : 1) +
      constant("kHeldRegisters", 16) +
      constant("kSlabColumns", std::min<std::int64_t>(warp_n, 64)) +
      launch.arguments.struct_text() + printed;
  constexpr std::array<std::string_view, 5> kFiles = {"lib/product_rows.cuh", "sm80/tile.cuh",
                                                      "sm80/loader.cuh", "sm80/multiply.cuh",
                                                      "sm80/product.cuh"};
  launch.source = {"product_sm80", assemble(kFiles, head)};
  launch.function = "product_sm80";
  launch.unaligned_function = "product_sm80_elements";
  launch.threads = static_cast<unsigned>(tile.threads());
  launch.shared_bytes = static_cast<unsigned>(shared_bytes(tile));
  launch.grid = {static_cast<unsigned>(all * product_.extent(Group::batch, first)),
                 static_cast<unsigned>(tile.split), 1};
  launch.unaligned_grid = launch.grid;
  return launch;
}

KernelDesign ProductDesigner::design(const Graph& graph, const Config& config) const {
  const WarpTile tile{config.knob("tile_m"), config.knob("tile_n"), config.knob("tile_bytes"),
                      config.knob("stages"), config.knob("split"),  config.knob("products")};
  KernelDesign result;
  std::map<int, int> bookings;  // by input of the anchor
  for (const auto& [slot, operand] : packs_) {
    bookings[slot] = result.scratch.add(fmt::format("input {}", slot), operand.scratch_bytes);
    result.launches.push_back(pack_across(graph, *operand.pack, bookings[slot]));
  }
  SplitSum sum{product_.d.program, tile.split, types_.sum, 0};
  if (tile.split > 1) sum.booking = result.scratch.add("partial sums", sum.bytes());
  for (std::size_t first = 0; first < product_.variants; first += kVariantsPerLaunch)
    if (tile_count(tile, first, kVariantsPerLaunch) > 0)
      result.launches.push_back(launch(graph, tile, first, sum.booking, bookings));
  if (tile.split > 1) result.launches.push_back(split_sum(graph, sum, region_.precision()));
  return result;
}

}  // namespace ashlar::cuda

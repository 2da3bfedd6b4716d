// Engine for scatter of slices: links the contributions of each slice into a list, in order, then
// writes every row of y once, in vectors of 16 bytes.
#include <array>

#include "base/checked.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/selection.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr unsigned kScatterThreads = 256;
constexpr std::int64_t kMostPositions = std::int64_t{1} << 30;  // 32-bit list entries

// The base where there is none.
constexpr std::string_view kZeros =
    "template <int kCount>\n"
    "__device__ inline void load_base(const Args&, const Index (&)[kRank], R (&values)[kCount]) {\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < kCount; ++i) values[i] = 0;\n}\n";

struct SlicesToScatter {
  const Scatter& op;
  const PointwiseProgram &source, &index, &base, &y;
  std::int64_t slices, count;  // of y along the axis; of the index

  explicit SlicesToScatter(const Region& region)
      : op(*region.anchor_as<Scatter>()),
        source(region.prologues[Scatter::source]),
        index(region.prologues[Scatter::index]),
        base(region.prologues[Scatter::base]),
        y(region.epilogue),
        slices(y.space[static_cast<int>(op.axis)]),
        count(element_count(index.space)) {}

  bool has_rows() const { return op.axis != y.space.rank() - 1; }
  int vector() const {
    if (!has_rows()) return 1;
    return base.empty() ? row_vector({&source, &y}) : row_vector({&source, &base, &y});
  }
  // Reservations: the first position of each slice; of each position, its slice and the next one.
  ScratchLayout scratch() const {
    ScratchLayout layout;
    layout.add("first", 4 * slices);
    layout.add("slice", 4 * count);
    layout.add("next", 4 * count);
    return layout;
  }
};

unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>((threads + kScatterThreads - 1) / kScatterThreads);
}

class ScatterEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.scatter"; }
  std::string_view description() const override {
    return "scatter of slices by linked lists, vectorised to 16 bytes, in a fixed order";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Scatter>())
      return Support::other_operation("the anchor is not a scatter");
    if (region.anchor_as<Scatter>()->mode != IndexMode::slices)
      return Support::no("elements, not slices: every line has indices of its own");
    for (const PointwiseProgram& prologue : region.prologues)
      if (has_ragged_or_complex(prologue)) return Support::no("a ragged or complex tensor");
    if (has_ragged_or_complex(region.epilogue)) return Support::no("a ragged or complex tensor");
    if (!region.prologues[Scatter::index].is_plain_load())
      return Support::no("the index is computed");
    const SlicesToScatter shape(region);
    if (shape.slices > kMostPositions || shape.count > kMostPositions)
      return Support::no("{} slices and {} indices; up to {} are supported", shape.slices,
                         shape.count, kMostPositions);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    const SlicesToScatter shape(region);
    Config config;
    // Not timed on a GPU yet: the share of cuda.pointwise for rows, and a comparison for each pair
    // of positions.
    config.cost = {.flops = region.flops() +
                            static_cast<double>(shape.count) * static_cast<double>(shape.count),
                   .bytes = region.bytes(),
                   .flops_fraction = 0.1,
                   .bytes_fraction = shape.vector() > 1 ? 0.6 : 0.2};
    for (const ScratchLayout::Reservation& part : shape.scratch().reservations())
      config.scratch_bytes += part.bytes;
    config.notes.runtime_compiled = true;
    return {config};
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config&,
                      const DeviceProps&) const override {
    const SlicesToScatter shape(region);
    KernelDesign result;
    result.scratch = shape.scratch();
    if (element_count(shape.y.space) == 0) return result;
    for (const bool links : {false, true}) {
      if (links && shape.count == 0) continue;
      result.launches.push_back(lists(shape, graph, links));
    }
    result.launches.push_back(rows(shape, graph, region.precision()));
    return result;
  }

 private:
  static std::string head(const SlicesToScatter& shape, Arguments& arguments) {
    arguments.scratch("first", 0);
    arguments.scratch("slice", 1);
    arguments.scratch("next", 2);
    arguments.number("slices", shape.slices);
    arguments.number("count", shape.count);
    arguments.numbers("index_dims", shape.index.space);
    return constant("kThreads", kScatterThreads) + constant("kAxis", shape.op.axis) +
           constant("kSlices", 1) + constant("kRankIndex", shape.index.space.rank());
  }

  // Two launches: the slice of each position, and no first position yet; then the lists.
  static LaunchDesign lists(const SlicesToScatter& shape, const Graph& graph, bool links) {
    LaunchDesign launch;
    Arguments& arguments = launch.arguments;
    std::string text = "typedef float R;\ntypedef int64 Index;\n" + head(shape, arguments);
    const std::string load =
        print_integer_load(shape.index.steps[0].view, graph, "load_index", arguments);
    text += arguments.struct_text() + load;
    const std::array<std::string_view, 1> files = {"scatter_lists.cuh"};
    launch.source = {"scatter_lists", assemble(files, text)};
    launch.function = links ? "scatter_link" : "scatter_slices";
    launch.threads = kScatterThreads;
    launch.grid.x = blocks_for(links ? shape.count : std::max(shape.count, shape.slices));
    return launch;
  }

  static LaunchDesign rows(const SlicesToScatter& shape, const Graph& graph, DType precision) {
    const Dims& space = shape.y.space;
    const int vector = shape.vector(), rank = space.rank();
    const std::int64_t elements = element_count(space),
                       per_row = (space[rank - 1] + vector - 1) / vector,
                       runs = elements / space[rank - 1] * per_row;
    LaunchDesign launch;
    Arguments& arguments = launch.arguments;
    add_extents(arguments, space);
    arguments.number("per_row", per_row);
    arguments.number("magic_row", divider_word(per_row));
    arguments.number("runs", runs);
    arguments.number("elements", elements);
    const std::string types =
        register_types(precision, {&shape.source, &shape.base, &shape.y, &shape.index});
    const std::string constants = head(shape, arguments) + constant("kRank", rank) +
                                  constant("kRankSource", shape.source.space.rank()) +
                                  constant("kCombine", static_cast<int>(shape.op.combine)) +
                                  constant("kVector", vector) +
                                  constant("kIsWhole", space[rank - 1] % vector == 0);
    std::string programs = print_program(shape.source, graph, "load_source", arguments) +
                           print_program(shape.y, graph, "epilogue", arguments);
    programs += shape.base.empty() ? std::string(kZeros)
                                   : print_program(shape.base, graph, "load_base", arguments);
    const std::array<std::string_view, 3> files = {"generic/selection.cuh",
                                                   "generic/scatter_combine.cuh", "scatter.cuh"};
    launch.source = {"scatter",
                     assemble(files, types + constants + arguments.struct_text() + programs)};
    launch.function = "scatter";
    launch.unaligned_function = "scatter_elements";
    launch.threads = kScatterThreads;
    launch.grid.x = blocks_for(runs);
    launch.unaligned_grid.x = blocks_for(elements);
    return launch;
  }
};

}  // namespace

const CudaEngine& scatter_engine() {
  static const ScatterEngine engine;
  return engine;
}

}  // namespace ashlar::cuda

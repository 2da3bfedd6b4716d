// Engine for rotary position embedding: a CTA computes the cosines and sines of a few positions and
// rotates the rows of several heads with them, in vectors of 16 bytes.
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/rope_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "graph/rope_angles.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kRopeThreads = 256, kMostRopePairs = 1024;

const PointwiseProgram& rope_input(const Region& region, int slot) {
  static const PointwiseProgram kAbsent;
  const auto index = static_cast<std::size_t>(slot);
  return index < region.prologues.size() ? region.prologues[index] : kAbsent;
}

// How a problem is divided over CTAs.
struct RopeTiling {
  Rope op;
  Dims dims;
  std::int64_t pairs, positions, tiles, groups = 1, rows, chunk_rows, chunks;
  bool given, heads_inside = false;
  int vector;

  RopeTiling(const Region& region, const DeviceProps& device)
      : op(*region.anchor_as<Rope>()),
        dims(region.prologues[Rope::x].space),
        pairs(op.width / 2),
        given(!rope_input(region, Rope::cos).empty()) {
    constexpr std::int64_t kAngles = 512, kBlocksPerSm = 8;
    positions = std::max<std::int64_t>(kAngles / std::max<std::int64_t>(pairs, 1), 1);
    positions = std::min(positions, std::max<std::int64_t>(dims[2], 1));
    tiles = ceil_div(dims[2], positions);
    for (const int slot : {Rope::positions, Rope::cos, Rope::sin}) {
      const PointwiseProgram& program = rope_input(region, slot);
      if (!program.empty() && program.space[0] != 1) groups = dims[0];
    }
    rows = groups == 1 ? dims[0] * dims[1] : dims[1];
    const std::int64_t wanted = kBlocksPerSm * device.compute_units;
    chunks = std::clamp<std::int64_t>(ceil_div(wanted, std::max<std::int64_t>(tiles * groups, 1)),
                                      1, std::max<std::int64_t>(rows, 1));
    chunk_rows = std::max<std::int64_t>(ceil_div(rows, chunks), 1);
    chunks = std::max<std::int64_t>(ceil_div(rows, chunk_rows), 1);
    if (!region.epilogue.stores.empty()) {
      const Dims& strides = region.epilogue.stores[0].view.strides;
      heads_inside = strides[1] < strides[2];
    }
    constexpr int kMostElements = 8;
    vector = packet_length({&region.prologues[Rope::x], &region.epilogue}, kMostElements);
    const std::int64_t together = op.pairs == RopePairs::half ? pairs : op.width;
    while (vector > 1 && together % vector != 0) vector /= 2;
  }
  std::int64_t blocks() const { return groups * chunks * tiles; }
};

class RopeEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.rope"; }
  std::string_view description() const override {
    return "rotary position embedding, cosines and sines once per CTA, vectorised";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    if (!region.anchor_as<Rope>()) return Support::other_operation("the anchor is not a rope");
    if (touches_unsupported(region))
      return Support::no("a ragged or complex tensor, or random numbers");
    const PointwiseProgram& positions = rope_input(region, Rope::positions);
    if (!positions.empty() && !positions.is_plain_load())
      return Support::no("the positions are computed, not loaded");
    for (const int slot : {Rope::cos, Rope::sin}) {
      const PointwiseProgram& table = rope_input(region, slot);
      if (!table.empty() && table.space[1] != 1)
        return Support::no("cos or sin has {} heads, expected 1 for all", table.space[1]);
    }
    const RopeTiling tiling(region, device);
    if (tiling.pairs > kMostRopePairs)
      return Support::no("{} pairs, at most {} are supported", tiling.pairs, kMostRopePairs);
    constexpr std::int64_t kMostBlocks = 0x7fffffff;
    if (tiling.blocks() > kMostBlocks)
      return Support::no("{} CTAs, at most {} are supported", tiling.blocks(), kMostBlocks);
    constexpr std::int64_t kMostItems = 1 << 30;
    if (tiling.chunk_rows >
        kMostItems / (tiling.positions * std::max<std::int64_t>(tiling.dims[3], 1)))
      return Support::no("{} rows per CTA are too many", tiling.chunk_rows);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    constexpr double kShare = 0.83, kNarrowShare = 0.5;  // not measured
    const RopeTiling tiling(region, device);
    Config config;
    config.knobs = {{"positions", tiling.positions}, {"rows", tiling.chunk_rows}};
    config.cost = {.flops = region.flops(),
                   .bytes = region.bytes(),
                   .bytes_fraction = tiling.vector >= 4 ? kShare : kNarrowShare};
    config.notes.runtime_compiled = true;
    return {config};
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config&,
                      const DeviceProps& device) const override {
    const RopeTiling tiling(region, device);
    KernelDesign design;
    if (element_count(tiling.dims) == 0) return design;
    LaunchDesign launch;
    Arguments& arguments = launch.arguments;
    arguments.number("heads", tiling.dims[1]);
    arguments.number("length", tiling.dims[2]);
    arguments.number("columns", tiling.dims[3]);
    arguments.number("tiles", tiling.tiles);
    arguments.number("rows", tiling.rows);
    arguments.number("chunks", tiling.chunks);
    arguments.number("chunk_rows", tiling.chunk_rows);
    arguments.real("scale", rope_scale(tiling.op));
    const std::string operands =
        print_program(region.prologues[Rope::x], graph, "x_of", arguments) +
        print_program(region.epilogue, graph, "store_y", arguments) +
        turns_text(region, graph, tiling, arguments);
    std::vector<const PointwiseProgram*> programs;
    for (const PointwiseProgram& program : region.prologues)
      if (!program.empty()) programs.push_back(&program);
    programs.push_back(&region.epilogue);
    const std::string head =
        register_types(region.precision(), programs) + constant("kThreads", kRopeThreads) +
        constant("kVector", tiling.vector) + constant("kPairs", tiling.pairs) +
        constant("kPositions", tiling.positions) +
        constant("kInterleaved", tiling.op.pairs == RopePairs::interleaved) +
        constant("kInverse", tiling.op.inverse) + constant("kGiven", tiling.given) +
        constant("kHeadsInside", tiling.heads_inside) + arguments.struct_text() + operands;
    launch.source = {"rope", assemble("rope.cuh", head)};
    launch.function = "rope";
    launch.unaligned_function = "rope_elements";
    launch.threads = kRopeThreads;
    launch.grid.x = static_cast<unsigned>(tiling.blocks());
    launch.unaligned_grid = launch.grid;
    design.launches.push_back(std::move(launch));
    return design;
  }

 private:
  // What fill_turns() reads, with functions in place of absent operands.
  static std::string turns_text(const Region& region, const Graph& graph, const RopeTiling& tiling,
                                Arguments& arguments) {
    if (tiling.given)
      return print_program(rope_input(region, Rope::cos), graph, "cos_of", arguments) +
             print_program(rope_input(region, Rope::sin), graph, "sin_of", arguments) +
             "__device__ inline double frequency_of(Index) { return 0; }\n"
             "__device__ inline int64 position_of(const Args&, const Index (&)[2]) { return 0; }\n";
    const PointwiseProgram& positions = rope_input(region, Rope::positions);
    const std::string absent =
        "template <int kCount> __device__ inline void {}(const Args&, const Index (&)[4], "
        "R (&)[kCount]) {{}}\n";
    return rope_frequency_table(tiling.op) +
           "__device__ inline double frequency_of(Index pair) { return kFrequencies[pair]; }\n" +
           fmt::format(fmt::runtime(absent), "cos_of") +
           fmt::format(fmt::runtime(absent), "sin_of") +
           (positions.empty()
                ? "__device__ inline int64 position_of(const Args&, const Index (&at)[2]) {\n"
                  "  return at[1];\n}\n"
                : print_integer_load(positions.steps[0].view, graph, "position_of", arguments));
  }
};

}  // namespace

const CudaEngine& rope_engine() {
  static const RopeEngine engine;
  return engine;
}

}  // namespace ashlar::cuda

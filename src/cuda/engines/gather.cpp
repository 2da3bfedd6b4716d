// Engine for gather: vectors of 16 bytes along the rows of y, copied from where the index points.
#include <array>

#include "cuda/engines/engines.hpp"
#include "cuda/engines/selection.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr unsigned kGatherThreads = 256;
// Whether neighbouring elements of y along its last axis are neighbours in x.
bool copies_rows(const Region& region) {
  const auto& op = *region.anchor_as<Gather>();
  return op.axis != region.prologues[Gather::x].space.rank() - 1;
}

// Elements per thread and access; one where the index varies along the last axis.
int gather_vector(const Region& region) {
  if (!copies_rows(region) || region.anchor_as<Gather>()->mode == IndexMode::elements) return 1;
  return row_vector({&region.prologues[Gather::x], &region.epilogue});
}

class GatherEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.gather"; }
  std::string_view description() const override {
    return "gather, vectorised to 16 bytes along slices";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Gather>()) return Support::other_operation("the anchor is not a gather");
    if (has_ragged_or_complex(region.prologues[Gather::x]) ||
        has_ragged_or_complex(region.epilogue))
      return Support::no("a ragged or complex tensor");
    if (!region.prologues[Gather::index].is_plain_load())
      return Support::no("the index is computed");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    // Not timed on a GPU yet: the shares of cuda.pointwise, less for scattered sectors.
    const int bits = gather_vector(region) * bit_width(region.anchor->inputs[Gather::x].dtype);
    const double fraction = bits >= 128 ? 0.8 : copies_rows(region) ? 0.5 : 0.2;
    std::vector<Config> configs;
    for (const int runs : {4, 2, 1}) {
      Config& config = configs.emplace_back();
      config.knobs = {{"runs", runs}};
      config.cost = {.flops = region.flops(), .bytes = region.bytes(), .bytes_fraction = fraction};
      config.notes.runtime_compiled = true;
    }
    return configs;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps&) const override {
    const auto& op = *region.anchor_as<Gather>();
    const PointwiseProgram &x = region.prologues[Gather::x], &y = region.epilogue,
                           &index = region.prologues[Gather::index];
    const std::int64_t elements = element_count(y.space);
    if (elements == 0) return {};
    const int vector = gather_vector(region), rank = y.space.rank();
    const std::int64_t per_row = (y.space[rank - 1] + vector - 1) / vector;
    const std::int64_t runs = elements / y.space[rank - 1] * per_row,
                       per_thread = config.knob("runs"), per_block = kGatherThreads * per_thread;

    LaunchDesign launch;
    Arguments& arguments = launch.arguments;
    add_extents(arguments, y.space);
    arguments.number("per_row", per_row);
    arguments.number("magic_row", divider_word(per_row));
    arguments.number("runs", runs);
    arguments.number("elements", elements);
    arguments.number("extent", x.space[static_cast<int>(op.axis)]);
    const std::string printed =
        print_program(x, graph, "load_x", arguments) +
        print_program(y, graph, "epilogue", arguments) +
        print_integer_load(index.steps[0].view, graph, "load_index", arguments);
    const std::string head =
        register_types(region.precision(), {&x, &y, &index}) + constant("kRank", rank) +
        constant("kRankX", x.space.rank()) + constant("kRankIndex", index.space.rank()) +
        constant("kAxis", op.axis) + constant("kSlices", op.mode == IndexMode::slices) +
        constant("kClamp", op.out_of_range == OutOfRange::clamp) + constant("kVector", vector) +
        constant("kIsWhole", y.space[rank - 1] % vector == 0) + constant("kRuns", per_thread) +
        constant("kThreads", kGatherThreads) + arguments.struct_text() + printed;
    const std::array<std::string_view, 2> files = {"generic/selection.cuh", "gather.cuh"};
    launch.source = {"gather", assemble(files, head)};
    launch.function = "gather";
    launch.unaligned_function = "gather_elements";
    launch.threads = kGatherThreads;
    launch.grid.x = static_cast<unsigned>((runs + per_block - 1) / per_block);
    launch.unaligned_grid.x =
        static_cast<unsigned>((elements + kGatherThreads - 1) / kGatherThreads);
    KernelDesign result;
    result.launches.push_back(std::move(launch));
    return result;
  }
};

}  // namespace

const CudaEngine& gather_engine() {
  static const GatherEngine engine;
  return engine;
}

}  // namespace ashlar::cuda

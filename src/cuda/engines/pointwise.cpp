// Engine for element-wise regions: one program, a few vectors of elements per thread.
#include "cuda/engines/element_program.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr unsigned kPointwiseThreads = 256;
constexpr int kMaxVector = 16;

// The program with its axes merged where strides allow it, the most contiguous axis last.
PointwiseProgram arranged(PointwiseProgram program) {
  Dims space = program.space;
  merge_axes({&program}, {&space});
  move_axis_last(program, choose_row_axis(program.space, {&program}));
  return program;
}

// Elements per vector: 16 bytes of the narrowest type that is loaded or stored as vectors, at most
// 64 bytes of the widest. At most 16 bytes per store, so that neighbouring threads fill whole
// sectors, except for sub-byte types, where whole bytes matter more.
int vector_of(const PointwiseProgram& program) {
  int narrowest = 64, widest = 8, widest_stored = 8;
  bool packed = false;
  const int last = program.space.rank() - 1;
  const auto look = [&](const View& view) {
    packed = packed || bit_width(view.dtype) < 8;
    if (view.strides[last] != 1) return;
    narrowest = std::min(narrowest, std::max(bit_width(view.dtype), 8));
    widest = std::max(widest, bit_width(view.dtype));
  };
  for (const auto& step : program.steps)
    if (step.kind == PointwiseProgram::Step::Kind::load && step.blocks.empty()) look(step.view);
  for (const auto& store : program.stores) {
    look(store.view);
    if (store.view.strides[last] == 1)
      widest_stored = std::max(widest_stored, bit_width(store.view.dtype));
  }
  int wanted = std::min({128 / narrowest, 512 / widest, kMaxVector});
  if (!packed) wanted = std::min(wanted, 128 / widest_stored);
  return vector_length(program, std::max(wanted, 1));
}

// Whether a view is accessed element by element with a stride: one memory sector per element.
bool has_strided_view(const PointwiseProgram& program) {
  const int last = program.space.rank() - 1;
  const auto is_strided = [&](const View& view) {
    return last >= 0 && program.space[last] > 1 && view.strides[last] > 1;
  };
  for (const auto& step : program.steps)
    if (step.kind == PointwiseProgram::Step::Kind::load && step.blocks.empty() &&
        is_strided(step.view))
      return true;
  return std::any_of(program.stores.begin(), program.stores.end(),
                     [&](const auto& store) { return is_strided(store.view); });
}

class PointwiseEngine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.pointwise"; }
  std::string_view description() const override {
    return "pointwise operations, random numbers, dropout, concatenation, vectorised to 16 bytes";
  }

  bool stores_last(const Region&) const override { return true; }
  Support supports(const Region& region, const DeviceProps&) const override {
    const std::vector<PointwiseProgram> programs = element_programs(region);
    if (programs.empty()) return Support::other_operation("the region is not element-wise");
    const auto is_taken = [](const View& view) {
      return view.ragged_offset == kNoTensor && !is_complex(view.dtype);
    };
    for (const PointwiseProgram& program : programs) {
      for (const auto& step : program.steps)
        if (step.kind == PointwiseProgram::Step::Kind::load && !is_taken(step.view))
          return Support::no("a ragged or complex tensor");
      for (const auto& store : program.stores)
        if (!is_taken(store.view)) return Support::no("a ragged or complex tensor");
    }
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    double fraction = 0.9;
    for (const PointwiseProgram& program : element_programs(region))
      if (has_strided_view(arranged(program))) fraction = 0.2;
    std::vector<Config> configs;
    for (const int runs : {2, 1, 4}) {
      Config& config = configs.emplace_back();
      config.knobs = {{"runs", runs}};
      config.cost = {.flops = region.flops(), .bytes = region.bytes(), .bytes_fraction = fraction};
      config.notes.runtime_compiled = true;
    }
    return configs;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps&) const override {
    KernelDesign result;
    for (const PointwiseProgram& program : element_programs(region))
      if (element_count(program.space) > 0)
        result.launches.push_back(launch_of(arranged(program), graph, config.knob("runs")));
    return result;
  }

 private:
  static LaunchDesign launch_of(const PointwiseProgram& program, const Graph& graph,
                                std::int64_t per_thread) {
    const Dims& space = program.space;
    const std::int64_t elements = element_count(space);
    const int vector = vector_of(program), rank = space.rank();
    const std::int64_t per_row = (space[rank - 1] + vector - 1) / vector;
    const std::int64_t runs = elements / space[rank - 1] * per_row;

    LaunchDesign launch;
    Arguments& arguments = launch.arguments;
    add_extents(arguments, space);
    arguments.number("per_row", per_row);
    arguments.number("magic_row", divider_word(per_row));
    arguments.number("runs", runs);
    arguments.number("elements", elements);
    const std::string printed = print_program(program, graph, "program", arguments);
    const std::int64_t per_block = kPointwiseThreads * per_thread;
    const std::string head =
        register_types(program.precision(), {&program}) + constant("kRank", rank) +
        constant("kVector", vector) + constant("kIsWhole", space[rank - 1] % vector == 0) +
        constant("kRuns", per_thread) + constant("kThreads", kPointwiseThreads) +
        arguments.struct_text() + printed;
    launch.source = {"pointwise", assemble("pointwise.cuh", head)};
    launch.function = "pointwise";
    launch.unaligned_function = "pointwise_elements";
    launch.threads = kPointwiseThreads;
    launch.grid.x = static_cast<unsigned>((runs + per_block - 1) / per_block);
    launch.unaligned_grid.x =
        static_cast<unsigned>((elements + kPointwiseThreads - 1) / kPointwiseThreads);
    return launch;
  }
};

}  // namespace

const CudaEngine& pointwise_engine() {
  static const PointwiseEngine engine;
  return engine;
}

}  // namespace ashlar::cuda

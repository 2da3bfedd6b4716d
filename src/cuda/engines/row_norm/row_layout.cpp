#include "cuda/engines/row_norm/row_layout.hpp"

#include <algorithm>

#include "cuda/engines/row_norm/row_text.hpp"
#include "cuda/text/program_text.hpp"

namespace ashlar::cuda {

using Kind = RowProblem::Kind;

int vector_of(const RowProblem& problem) {
  int narrowest = 64;
  const int last = problem.space.rank() - 1;
  const auto look = [&](const PointwiseProgram& program) {
    for (const auto& step : program.steps)
      if (step.kind == PointwiseProgram::Step::Kind::load && step.view.strides[last] == 1)
        narrowest = std::min(narrowest, std::max(bit_width(step.view.dtype), 8));
    for (const auto& store : program.stores)
      if (store.view.strides[last] == 1)
        narrowest = std::min(narrowest, std::max(bit_width(store.view.dtype), 8));
  };
  look(problem.first);
  look(problem.second);
  look(problem.stored);
  look(problem.result);
  int vector = std::min(128 / narrowest, problem.precision == f64 ? 4 : 8);
  for (const PointwiseProgram* program : {&problem.first, &problem.second, &problem.scale,
                                          &problem.bias, &problem.stored, &problem.result})
    if (!program->empty()) vector = vector_length(*program, vector);
  while (problem.length % vector != 0) vector /= 2;
  return vector;
}

std::int64_t staged_bytes(const RowProblem& problem, const PointwiseProgram& program) {
  std::int64_t bytes = 0;
  if (problem.materialises_prologue) return bytes;
  for (const int i : raw_loads(program))
    bytes += bit_width(program.steps[static_cast<std::size_t>(i)].view.dtype) / 8;
  return bytes;
}

bool is_compute_bound(const RowProblem& problem) {
  constexpr double kMuch = 20;  // operations per element
  return problem.kind == Kind::norm_forward && problem.result.flops_per_element() >= kMuch;
}

bool has_rolled_epilogue(const RowProblem& problem, const RowLayout& layout) {
  return is_compute_bound(problem) && layout.ahead == RowLayout::kPipeline &&
         !layout.parameters_in_registers;
}

bool has_shared_parameters(const RowProblem& problem, const RowLayout& layout) {
  constexpr int kManyRows = 4, kLanes = 32;
  // __syncwarp in the epilogue needs converged warps.
  const bool is_even =
      layout.row_threads >= kLanes &&
      std::int64_t{layout.row_threads} * layout.chunks * layout.vector == problem.length;
  return is_compute_bound(problem) && problem.sets == 1 &&
         (!problem.scale.empty() || !problem.bias.empty()) && !layout.parameters_in_registers &&
         is_even && layout.chunks > 0 && layout.slices == 1 && layout.ahead == 0 &&
         layout.tile_rows() >= kManyRows;
}

std::vector<std::pair<std::string, std::int64_t>> RowLayout::knobs() const {
  return {{"threads", threads},
          {"row_threads", row_threads},
          {"slices", slices},
          {"unroll", unroll},
          {"blocks", blocks},
          {"persistent", persistent ? 1 : 0},
          {"ahead", ahead},
          {"stages", stages},
          {"shared_sums", shared_sums ? 1 : 0},
          {"parameters_in_registers", parameters_in_registers ? 1 : 0},
          {"held", chunks > 0 ? 1 : 0}};
}

RowLayout RowLayout::from(const RowProblem& problem, const Config& config) {
  RowLayout layout;
  const auto knob = [&](const char* name) { return static_cast<int>(config.knob(name)); };
  layout.threads = knob("threads");
  layout.row_threads = knob("row_threads");
  layout.slices = knob("slices");
  layout.unroll = knob("unroll");
  layout.blocks = knob("blocks");
  layout.persistent = knob("persistent") != 0;
  layout.ahead = knob("ahead");
  layout.stages = knob("stages");
  layout.shared_sums = knob("shared_sums") != 0;
  layout.parameters_in_registers = knob("parameters_in_registers") != 0;
  layout.vector = vector_of(problem);
  const std::int64_t per_chunk = std::int64_t{layout.row_threads} * layout.vector * layout.slices;
  if (knob("held") != 0)
    layout.chunks = static_cast<int>((problem.length + per_chunk - 1) / per_chunk);
  return layout;
}

RowGrid grid_of(const RowProblem& problem, const RowLayout& layout, const DeviceProps& device) {
  const std::int64_t rows =
      problem.kind == Kind::norm_backward ? problem.rows / problem.sets : problem.rows;
  const std::int64_t sets = problem.kind == Kind::norm_backward ? problem.sets : 1;
  const std::int64_t tile = layout.tile_rows(), tiles = (rows + tile - 1) / tile;
  RowGrid grid{tiles, rows % tile == 0};
  if (layout.persistent) {
    // GPCs do not hold a whole number of large clusters: launch slightly fewer, to avoid a tail
    // wave.
    std::int64_t wanted = std::int64_t{layout.blocks} * device.compute_units / layout.slices;
    if (layout.slices > 2) wanted = wanted * 15 / 16;
    grid.pieces = std::clamp<std::int64_t>((wanted + sets - 1) / sets, 1, tiles);
  }
  return grid;
}

std::int64_t stage_bytes(const RowProblem& problem, const RowLayout& layout) {
  return std::int64_t{layout.threads} * layout.unroll * layout.chunks * layout.vector *
         (staged_bytes(problem, problem.first) + staged_bytes(problem, problem.second));
}

std::int64_t sums_per_row(const RowProblem& problem, const RowLayout& layout) {
  if (layout.chunks == 0) return problem.length;
  return std::int64_t{layout.row_threads} * layout.chunks * layout.vector * layout.slices;
}

SharedBytes shared_bytes(const RowProblem& problem, const RowLayout& layout) {
  constexpr std::int64_t kAlignment = 16;
  SharedBytes bytes;
  if (problem.column_sums() > 0) {
    if (layout.shared_sums)
      bytes.sums_stride = sums_per_row(problem, layout) / layout.slices;
    else if (layout.groups() > 1)
      bytes.sums_stride = layout.groups() * sums_per_row(problem, layout);
    bytes.pipeline =
        (bytes.sums_stride * problem.column_sums() * problem.register_bytes() + kAlignment - 1) /
        kAlignment * kAlignment;
  }
  bytes.all = bytes.pipeline;
  if (layout.ahead == RowLayout::kPipeline)
    bytes.all += layout.stages * stage_bytes(problem, layout);
  bytes.parameters = bytes.all;
  if (has_shared_parameters(problem, layout))
    bytes.all += 2 * problem.length * problem.register_bytes();
  return bytes;
}

}  // namespace ashlar::cuda

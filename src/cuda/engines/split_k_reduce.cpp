#include "cuda/engines/split_k_reduce.hpp"

#include <algorithm>

#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kSplitKReduceThreads = 128;
constexpr int kMaxSummedVector = 4;  // 16 bytes of f32

// Elements per thread: few where there are few in all, so that every SM has some.
int summed_vector(const PointwiseProgram& program) {
  constexpr std::int64_t kManyElements = 1 << 18;
  int vector = vector_length(program, kMaxSummedVector);
  const std::int64_t last = program.space[program.space.rank() - 1];
  if (element_count(program.space) < kManyElements) vector = std::min(vector, 2);
  while (last % vector != 0) vector /= 2;
  return vector;
}

// Threads that share the partials of a run: saturates memory also with few runs.
std::int64_t shares_of(std::int64_t runs, std::int64_t parts) {
  constexpr std::int64_t kManyThreads = 1 << 17, kMaxShares = 16, kFewestParts = 8;
  std::int64_t shares = 1;
  while (shares < kMaxShares && runs * shares < kManyThreads && 2 * shares * kFewestParts <= parts)
    shares *= 2;
  return shares;
}

}  // namespace

std::int64_t SplitKReduction::bytes() const {
  return parts * element_count(epilogue.space) * (bit_width(partial) / 8);
}

LaunchDesign split_k_reduce(const Graph& graph, const SplitKReduction& sum, DType precision) {
  PointwiseProgram program = sum.epilogue;
  Dims space = program.space;
  merge_axes({&program}, {&space});
  const int rank = program.space.rank(), vector = summed_vector(program);
  const std::int64_t elements = element_count(program.space), runs = elements / vector;

  LaunchDesign launch;
  Arguments& arguments = launch.arguments;
  const std::int64_t per_row = program.space[rank - 1] / vector;
  add_extents(arguments, program.space);
  arguments.number("per_row", per_row);
  arguments.number("magic_row", divider_word(per_row));
  arguments.number("runs", runs);
  arguments.number("elements", elements);
  arguments.number("parts", sum.parts);
  arguments.scratch("partial", sum.reservation);
  const std::int64_t shares = shares_of(runs, sum.parts), across = kSplitKReduceThreads / shares;
  const std::string printed = print_program(program, graph, "epilogue", arguments);
  const std::string partial = tag(sum.partial);
  const std::string head =
      register_types(precision, {&program}) +
      fmt::format("typedef {} Partial;\n", partial.substr(0, partial.find('('))) +
      constant("kRank", rank) + constant("kVector", vector) +
      constant("kThreads", kSplitKReduceThreads) + constant("kShares", shares) +
      arguments.struct_text() + printed;
  launch.source = {"split_k_reduce", assemble("split_k_reduce.cuh", head)};
  launch.function = "split_k_reduce";
  launch.unaligned_function = "split_k_reduce_elements";
  launch.threads = kSplitKReduceThreads;
  launch.grid.x = static_cast<unsigned>((runs + across - 1) / across);
  launch.unaligned_grid.x = static_cast<unsigned>((elements + across - 1) / across);
  launch.is_dependent_launch = sum.is_dependent_launch;
  return launch;
}

}  // namespace ashlar::cuda

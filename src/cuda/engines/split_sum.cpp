#include "cuda/engines/split_sum.hpp"

#include <algorithm>

#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kThreads = 256;
constexpr int kMostVector = 4;  // 16 bytes of a part
constexpr int kHopper = 90;     // the first that starts launches early

// Threads that share the parts of a sum: enough of them keep memory busy with few sums, too.
std::int64_t shares(std::int64_t sums, std::int64_t parts, const DeviceProps& device) {
  constexpr std::int64_t kThreadsOfUnit = 1024, kMostShares = 16, kLeastParts = 4;
  std::int64_t result = 1;
  while (result < kMostShares && result * 2 * kLeastParts <= parts &&
         sums * result < device.compute_units * kThreadsOfUnit)
    result *= 2;
  return result;
}

}  // namespace

std::int64_t split_sum_bytes(const PointwiseProgram& program, std::int64_t parts) {
  return parts * element_count(program.space) * std::int64_t{sizeof(float)};
}

LaunchDesign split_sum(const Graph& graph, const PointwiseProgram& program, int booking,
                       std::int64_t parts, const DeviceProps& device) {
  LaunchDesign launch;
  Arguments& arguments = launch.arguments;
  const int rank = program.space.rank(), vector = vector_length(program, kMostVector);
  const std::int64_t elements = element_count(program.space), sums = elements / vector;
  const std::int64_t columns = program.space[rank - 1] / vector;
  const std::int64_t shared_out = shares(sums, parts, device), across = kThreads / shared_out;
  arguments.scratch("partial", booking);
  arguments.number("parts", parts);
  arguments.number("sums", sums);
  arguments.number("columns", columns);
  add_extents(arguments, program.space);
  const std::string printed = print_program(program, graph, "epilogue", arguments);
  const std::string head = register_types(program.precision(), {&program}) +
                           constant("kThreads", kThreads) + constant("kShares", shared_out) +
                           constant("kVector", vector) + constant("kRank", rank) +
                           arguments.struct_text() + printed;
  launch.source = {"split_sum", assemble("split_sum.cuh", head)};
  launch.function = "split_sum";
  launch.threads = kThreads;
  launch.grid.x = static_cast<unsigned>((sums + across - 1) / across);
  launch.unaligned_function = "split_sum_elements";
  launch.unaligned_grid.x = static_cast<unsigned>((elements + across - 1) / across);
  launch.is_early = device.compute_capability >= kHopper;
  return launch;
}

}  // namespace ashlar::cuda

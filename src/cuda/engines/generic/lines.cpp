// Scans and top_k: one CTA per line of elements.
#include "cuda/engines/generic/operations.hpp"

namespace ashlar::cuda {

namespace {

// Returns the number of lines along `axis`.
std::int64_t add_lines(std::int64_t axis, const Dims& x, GenericKernel& kernel) {
  Dims lines = x;
  lines[static_cast<int>(axis)] = 1;
  kernel.constant("kAxis", axis);
  kernel.numbers("lines", lines);
  kernel.number("length", x[static_cast<int>(axis)]);
  return element_count(lines);
}

std::int64_t power_of_two(std::int64_t least) {
  std::int64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

}  // namespace

void describe(const Scan& op, GenericKernel& kernel) {
  kernel.file("scan");
  kernel.constant("kMode", static_cast<int>(op.mode));
  kernel.constant("kExclusive", op.exclusive);
  kernel.constant("kReverse", op.reverse);
  kernel.block_pass(add_lines(op.axis, kernel.in(Scan::x).dims, kernel));
}

void describe(const TopK& op, GenericKernel& kernel) {
  constexpr std::int64_t kTile = 128, kMaxCtas = 256, kEntryBytes = 16;
  const Dims& x = kernel.in(TopK::x).dims;
  const std::int64_t length = x[static_cast<int>(op.axis)];
  kernel.file("top_k");
  kernel.constant("kLargest", op.largest);
  const std::int64_t lines = op.k == 0 ? 0 : add_lines(op.axis, x, kernel);
  // The best k and a tile as long, or the whole line.
  const std::int64_t capacity =
      std::min(2 * std::max(power_of_two(op.k), kTile), power_of_two(length));
  const std::int64_t units = std::min(lines, kMaxCtas);
  kernel.number("k", op.k);
  kernel.number("capacity", capacity);
  kernel.number("line_count", lines);
  kernel.scratch("entries", units * capacity * kEntryBytes);
  kernel.block_pass(units);
}

}  // namespace ashlar::cuda

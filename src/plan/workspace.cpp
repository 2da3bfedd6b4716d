// Assigns offsets to buffers by lifetime.
#include "plan/workspace.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.hpp"
#include "plan/kernel.hpp"

namespace ashlar {

namespace {

// A buffer that has an offset. Compact: every later buffer is compared with all of them.
struct Placed {
  std::int64_t begin, end;
  int first_step, last_step;
};

}  // namespace

std::int64_t lay_out(std::vector<Buffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Largest first: the small ones then fill the gaps.
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(buffers[b].bytes, a) < std::pair(buffers[a].bytes, b);
  });

  std::vector<Placed> placed;  // by offset
  std::int64_t total = 0;
  for (const std::size_t index : order) {
    Buffer& buffer = buffers[index];
    buffer.offset = 0;
    if (buffer.bytes == 0) continue;
    const std::int64_t size = checked_add(buffer.bytes, kWorkspaceAlignment - 1) /
                              kWorkspaceAlignment * kWorkspaceAlignment;
    std::int64_t end = size;
    for (const Placed& other : placed) {
      if (other.begin >= end) break;
      if (other.last_step < buffer.first_step || buffer.last_step < other.first_step ||
          other.end <= buffer.offset)
        continue;
      buffer.offset = other.end;
      end = checked_add(buffer.offset, size);
    }
    total = std::max(total, end);
    placed.insert(std::ranges::upper_bound(placed, buffer.offset, {}, &Placed::begin),
                  {buffer.offset, end, buffer.first_step, buffer.last_step});
  }
  return total;
}

}  // namespace ashlar

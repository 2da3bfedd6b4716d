// Assigns offsets to buffers by lifetime.
#include "plan/workspace.hpp"

#include <algorithm>
#include <numeric>

#include "base/checked.hpp"
#include "plan/kernel.hpp"

namespace ashlar {

std::int64_t lay_out(std::vector<Buffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Largest first: the small ones then fill the gaps.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return buffers[a].bytes > buffers[b].bytes;
  });

  std::vector<const Buffer*> placed;  // by offset
  std::int64_t total = 0;
  for (std::size_t index : order) {
    Buffer& buffer = buffers[index];
    const std::int64_t size = checked_add(buffer.bytes, kWorkspaceAlignment - 1) /
                              kWorkspaceAlignment * kWorkspaceAlignment;
    std::int64_t offset = 0;
    for (const Buffer* other : placed) {
      const bool at_once =
          other->first_step <= buffer.last_step && buffer.first_step <= other->last_step;
      if (!at_once) continue;
      if (checked_add(offset, size) <= other->offset) break;
      const std::int64_t end = other->offset + (other->bytes + kWorkspaceAlignment - 1) /
                                                   kWorkspaceAlignment * kWorkspaceAlignment;
      offset = std::max(offset, end);
    }
    buffer.offset = offset;
    total = std::max(total, checked_add(offset, size));
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), &buffer,
                         [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; }),
        &buffer);
  }
  return total;
}

}  // namespace ashlar

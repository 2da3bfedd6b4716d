// Assigns offsets to buffers by lifetime.
#include "plan/workspace.hpp"

#include <algorithm>
#include <numeric>

#include "base/checked.hpp"
#include "plan/kernel.hpp"

namespace ashlar {

namespace {

std::int64_t aligned_size(const Buffer& buffer) {
  return checked_add(buffer.bytes, kWorkspaceAlignment - 1) / kWorkspaceAlignment *
         kWorkspaceAlignment;
}

}  // namespace

std::int64_t lay_out(std::vector<Buffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Largest first: the small ones then fill the gaps.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return buffers[a].bytes > buffers[b].bytes;
  });

  // By step: the placed buffers that are live in it.
  int steps = 0;
  for (const Buffer& buffer : buffers) steps = std::max(steps, buffer.last_step + 1);
  std::vector<std::vector<std::size_t>> live(static_cast<std::size_t>(steps));
  std::int64_t total = 0;
  std::vector<std::size_t> together;  // placed buffers that are live at the same time, by offset
  for (const std::size_t index : order) {
    Buffer& buffer = buffers[index];
    buffer.offset = 0;
    if (buffer.bytes == 0) continue;
    const std::int64_t size = aligned_size(buffer);
    together.clear();
    for (int step = buffer.first_step; step <= buffer.last_step; ++step) {
      const auto& there = live[static_cast<std::size_t>(step)];
      together.insert(together.end(), there.begin(), there.end());
    }
    std::ranges::sort(together, {}, [&](std::size_t i) { return std::pair(buffers[i].offset, i); });
    for (const std::size_t other : together) {
      if (checked_add(buffer.offset, size) <= buffers[other].offset) break;
      buffer.offset = std::max(buffer.offset, buffers[other].offset + aligned_size(buffers[other]));
    }
    total = std::max(total, checked_add(buffer.offset, size));
    for (int step = buffer.first_step; step <= buffer.last_step; ++step)
      live[static_cast<std::size_t>(step)].push_back(index);
  }
  return total;
}

}  // namespace ashlar

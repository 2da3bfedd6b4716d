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

// Placed buffers by lifetime. A buffer that overlaps [first, last] starts in (first, last] or is
// live in step `first`, never both, so that overlapping() lists every buffer once.
class Lifetimes {
 public:
  explicit Lifetimes(int steps)
      : steps_(steps), started_(static_cast<std::size_t>(steps)), covers_(2 * started_.size()) {}

  void add(std::size_t index, int first, int last) {
    started_[static_cast<std::size_t>(first)].push_back(index);
    // A segment tree over the steps: O(log steps) of its nodes cover [first, last].
    for (int low = first + steps_, high = last + 1 + steps_; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) covers_[static_cast<std::size_t>(low++)].push_back(index);
      if (high % 2 == 1) covers_[static_cast<std::size_t>(--high)].push_back(index);
    }
  }
  void overlapping(int first, int last, std::vector<std::size_t>& found) const {
    found.clear();
    const auto append = [&](const std::vector<std::size_t>& more) {
      found.insert(found.end(), more.begin(), more.end());
    };
    for (int node = first + steps_; node > 0; node /= 2)
      append(covers_[static_cast<std::size_t>(node)]);
    for (int step = first + 1; step <= last; ++step)
      append(started_[static_cast<std::size_t>(step)]);
  }

 private:
  int steps_;
  std::vector<std::vector<std::size_t>> started_, covers_;
};

}  // namespace

std::int64_t lay_out(std::vector<Buffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Largest first: the small ones then fill the gaps.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return buffers[a].bytes > buffers[b].bytes;
  });

  int steps = 0;
  for (const Buffer& buffer : buffers) steps = std::max(steps, buffer.last_step + 1);
  Lifetimes placed(steps);
  std::int64_t total = 0;
  std::vector<std::size_t> live;  // placed buffers that are live at the same time, by offset
  for (const std::size_t index : order) {
    Buffer& buffer = buffers[index];
    buffer.offset = 0;
    if (buffer.bytes == 0) continue;
    const std::int64_t size = aligned_size(buffer);
    placed.overlapping(buffer.first_step, buffer.last_step, live);
    std::ranges::sort(live, {}, [&](std::size_t i) { return std::pair(buffers[i].offset, i); });
    for (const std::size_t other : live) {
      if (checked_add(buffer.offset, size) <= buffers[other].offset) break;
      buffer.offset = std::max(buffer.offset, buffers[other].offset + aligned_size(buffers[other]));
    }
    total = std::max(total, checked_add(buffer.offset, size));
    placed.add(index, buffer.first_step, buffer.last_step);
  }
  return total;
}

}  // namespace ashlar

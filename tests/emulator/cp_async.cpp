// Emulated cp.async with commit groups. Copies are performed as late as allowed, so that a kernel
// that reads too early, or waits without a commit, sees the old data.
#include <cstring>

#include "running.hpp"

namespace emulated {

namespace {

std::vector<std::vector<ThreadCopy>>& own_copies() { return thread_at(now.current).copies; }

void perform(const ThreadCopy& copy) {
  const auto present = static_cast<std::size_t>(copy.present);
  std::memcpy(copy.shared, copy.global, present);
  std::memset(static_cast<unsigned char*>(copy.shared) + present, 0,
              static_cast<std::size_t>(copy.bytes) - present);
}

}  // namespace

void thread_copy(const ThreadCopy& copy) {
  auto& groups = own_copies();
  if (groups.empty()) groups.emplace_back();
  groups.back().push_back(copy);
}

void thread_commit() {
  auto& groups = own_copies();
  if (groups.empty()) groups.emplace_back();
  groups.emplace_back();
}

void thread_wait(int pending) {
  auto& groups = own_copies();
  const auto kept = static_cast<std::size_t>(pending) + 1;  // plus the open group
  if (groups.size() <= kept) return;
  const auto done = groups.end() - static_cast<std::ptrdiff_t>(kept);
  for (auto group = groups.begin(); group != done; ++group)
    for (const ThreadCopy& copy : *group) perform(copy);
  groups.erase(groups.begin(), done);
}

}  // namespace emulated

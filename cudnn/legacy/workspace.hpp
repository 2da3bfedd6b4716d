// Workspace: an allocator over the caller's workspace, and plans that run in it.
#pragma once

#include "legacy/call.hpp"

namespace ashlar::cudnn {

inline constexpr std::int64_t kWorkspaceGranularity = 64;

constexpr std::int64_t aligned_bytes(std::int64_t bytes) {
  return (bytes + kWorkspaceGranularity - 1) / kWorkspaceGranularity * kWorkspaceGranularity;
}

// The unused part of a workspace; its start is aligned.
class Workspace {
 public:
  Workspace(void* memory, std::size_t bytes);
  void* data() const { return memory_; }
  std::int64_t bytes() const { return bytes_; }
  // Allocates the first `bytes`; throws Failure(SIZE_INSUFFICIENT) when fewer are left.
  void* take(std::int64_t bytes);

 private:
  std::byte* memory_ = nullptr;
  std::int64_t bytes_ = 0;
};

// The workspace size to request from the caller so that `bytes` fit after alignment.
constexpr std::size_t padded_workspace_bytes(std::int64_t bytes) {
  return bytes == 0 ? 0 : static_cast<std::size_t>(aligned_bytes(bytes) + kWorkspaceGranularity);
}

// Runs `call`, whose key is set: the plan without a workspace limit if it fits into `work`, else a
// plan compiled for the size of `work`.
void run_in(Call call, const std::function<void(Graph&)>& build, CompileOptions options,
            const std::function<void(Call&)>& bind, const Workspace& work);

// The workspace bytes of the plan without a limit.
std::int64_t preferred_workspace_bytes(Call call, const std::function<void(Graph&)>& build,
                                       const CompileOptions& options);

}  // namespace ashlar::cudnn

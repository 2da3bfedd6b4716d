// Memory a caller lends to a call, and plans that run in it.
#pragma once

#include "legacy/call.hpp"

namespace ashlar::cudnn {

inline constexpr std::int64_t kWorkAlignment = 64;

constexpr std::int64_t aligned_bytes(std::int64_t bytes) {
  return (bytes + kWorkAlignment - 1) / kWorkAlignment * kWorkAlignment;
}

// What is left of a workspace, from an aligned address on.
class Workspace {
 public:
  Workspace(void* memory, std::size_t bytes);
  void* data() const { return memory_; }
  std::int64_t bytes() const { return bytes_; }
  // Cuts off the first bytes; throws Failure(SIZE_INSUFFICIENT) when there are fewer.
  void* take(std::int64_t bytes);

 private:
  std::byte* memory_ = nullptr;
  std::int64_t bytes_ = 0;
};

// What a caller has to lend so that `bytes` of it lie on an aligned address.
constexpr std::size_t padded_workspace_bytes(std::int64_t bytes) {
  return bytes == 0 ? 0 : static_cast<std::size_t>(aligned_bytes(bytes) + kWorkAlignment);
}

// `call` has its key. Runs the plan that takes as much memory as it likes when that fits into the
// workspace, else one that gets by with it.
void run_in(Call call, const std::function<void(Graph&)>& build, CompileOptions options,
            const std::function<void(Call&)>& bind, const Workspace& work);

// The memory the plan likes to have.
std::int64_t preferred_workspace_bytes(Call call, const std::function<void(Graph&)>& build,
                         const CompileOptions& options);

}  // namespace ashlar::cudnn

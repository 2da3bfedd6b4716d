#include "legacy/workspace.hpp"

#include <algorithm>

namespace ashlar::cudnn {

Workspace::Workspace(void* memory, std::size_t bytes) {
  if (memory == nullptr) return;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::int64_t skipped = static_cast<std::int64_t>(-address % kWorkspaceGranularity);
  if (static_cast<std::int64_t>(bytes) <= skipped) return;
  memory_ = static_cast<std::byte*>(memory) + skipped;
  bytes_ = static_cast<std::int64_t>(bytes) - skipped;
}

void* Workspace::take(std::int64_t bytes) {
  if (bytes > bytes_)
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
         "workSpaceSize: got {} bytes, expected at least {}", bytes_,
         padded_workspace_bytes(bytes));
  void* start = memory_;
  const std::int64_t used = std::min(aligned_bytes(bytes), bytes_);
  memory_ += used;
  bytes_ -= used;
  return start;
}

void run_in(Call call, const std::function<void(Graph&)>& build, CompileOptions options,
            const std::function<void(Call&)>& bind, const Workspace& work) {
  const auto run = [&](Call& ready) {
    bind(ready);
    ready.run(work.data(), static_cast<std::size_t>(work.bytes()));
  };
  Call wide = call;
  wide.compile(build, options);
  if (wide.workspace_size() <= work.bytes()) return run(wide);
  options.workspace_limit = work.bytes();
  call.key(work.bytes()).compile(build, options);
  run(call);
}

std::int64_t preferred_workspace_bytes(Call call, const std::function<void(Graph&)>& build,
                                       const CompileOptions& options) {
  return call.compile(build, options).workspace_size();
}

}  // namespace ashlar::cudnn

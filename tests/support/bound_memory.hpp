// Memory for the bound tensors of a graph, poisoned so that every write outside a tensor's elements
// is detected: before it, after it, and in the gaps of its strides.
#pragma once

#include <ashlar/graph.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ashlar::support {

inline constexpr std::size_t kAlignment = 64;
inline constexpr std::size_t kCanaryBytes = 64;

// Bytes on a 64-byte boundary with canaries on both sides.
class GuardedBlock {
 public:
  explicit GuardedBlock(std::size_t bytes);
  std::byte* data() { return storage_.data() + start_; }
  const std::byte* data() const { return storage_.data() + start_; }
  std::size_t size() const { return bytes_; }
  // 64-byte aligned.
  std::span<std::byte> with_canaries() {
    return std::span(storage_).subspan(start_ - kCanaryBytes, bytes_ + 2 * kCanaryBytes);
  }
  bool intact() const;
  void paint();  // the bytes between the canaries too

 private:
  std::vector<std::byte> storage_;
  std::size_t start_ = 0, bytes_ = 0;
};

class BoundMemory {
 public:
  explicit BoundMemory(const Graph& graph);

  const Graph& graph() const { return graph_; }
  const std::vector<TensorId>& bound() const { return bound_; }
  std::span<void* const> pointers() const { return pointers_; }
  std::vector<const void*> readable() const { return {pointers_.begin(), pointers_.end()}; }
  std::byte* data(TensorId tensor) { return block(tensor).data(); }
  GuardedBlock& block(TensorId tensor);
  const std::byte* data(TensorId tensor) const;

  // Records the contents of the inputs, which a run must not change.
  void seal();
  void paint_outputs();
  // A message about the first byte that a run must not have changed; empty if there is none.
  std::string damage() const;
  // Everything the outputs hold, gaps included.
  std::vector<std::byte> output_bytes() const;

 private:
  std::string damage_of_gaps(const Tensor& tensor, const std::byte* data, std::size_t bytes) const;
  // The elements of a tensor's memory that its strides address (none past the end of a ragged
  // sequence).
  std::vector<bool> addressed(const Tensor& tensor, std::int64_t elements) const;

  const Graph& graph_;
  std::vector<TensorId> bound_;
  std::vector<GuardedBlock> blocks_;
  std::vector<void*> pointers_;
  std::vector<std::vector<std::byte>> sealed_;
};

}  // namespace ashlar::support

// The memory a graph runs on.
#pragma once

#include <ashlar/graph.hpp>
#include <ashlar/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "suite.hpp"

namespace ashlar::bench {

struct FreeAligned {
  void operator()(std::byte* memory) const;
};
using Buffer = std::unique_ptr<std::byte, FreeAligned>;  // starts at a page
Buffer allocate(std::int64_t bytes);

// All bound tensors, in the order of Graph::bound_tensors(). Inputs are filled with values that
// depend on the seed and their name only.
class Memory {
 public:
  Memory(const Graph& graph, const Problem& problem, std::uint64_t seed);
  std::span<void* const> pointers() const { return pointers_; }
  void* at(TensorId tensor) const;
  // Copies the outputs of another graph into the inputs of the same name. Throws
  // Error(invalid_argument) where their extents, layouts or dtypes differ.
  void take(const Graph& graph, const Graph& from, const Memory& outputs);

 private:
  std::vector<TensorId> tensors_;
  std::vector<Buffer> buffers_;
  std::vector<void*> pointers_;
};

// A plan with memory to run it in.
class Runner {
 public:
  Runner(const Graph& graph, const Problem& problem, const Memory& memory,
         bool reference_only = false);
  void run() const { plan_.run(memory_.pointers(), workspace_.get()); }
  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
  const Memory& memory_;
  Buffer workspace_;
};

}  // namespace ashlar::bench

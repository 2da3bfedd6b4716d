// The memory a graph runs on.
#pragma once

#include <ashlar/graph.hpp>
#include <ashlar/memory.hpp>
#include <ashlar/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "suite.hpp"

namespace ashlar::bench {

struct FreeAligned {
  void operator()(std::byte* memory) const;
};
using Buffer = std::unique_ptr<std::byte, FreeAligned>;  // on the host, starts at a page
Buffer allocate(std::int64_t bytes);

// Fills a tensor with what its problem says an input of its name holds, on all threads. The values
// depend on the seed and the name only.
void fill_input(const Tensor& tensor, void* data, const Problem& problem, std::uint64_t seed);

// All bound tensors, in the order of Graph::bound_tensors(): on the host and, where the device is a
// GPU, there too. Inputs are filled with values that depend on the seed and their name only.
class Memory {
 public:
  Memory(const Graph& graph, const Problem& problem, std::uint64_t seed,
         const Device& device = Device::cpu());
  std::span<void* const> pointers() const { return pointers_; }  // what plans run on
  std::span<void* const> on_host() const { return on_host_; }
  void* at(TensorId tensor) const;  // on the host
  // Brings outputs from the device to the host.
  void fetch_outputs(const Graph& graph);
  // Copies the outputs of another graph, which were fetched, into the inputs of the same name.
  // Throws Error(invalid_argument) where their extents, layouts or dtypes differ.
  void take(const Graph& graph, const Graph& from, const Memory& outputs);

 private:
  std::size_t position(TensorId tensor) const;
  std::vector<TensorId> tensors_;
  std::vector<Buffer> buffers_;
  std::vector<void*> on_host_;
  std::vector<ashlar::Memory> on_device_;  // none where plans run on the host
  std::vector<void*> pointers_;
};

// Which plan is to be timed.
struct PlanWishes {
  bool naive = false;       // the slow and plain engine of the device, operation by operation
  bool tune = false;        // in a row where the problem says so
  int most = 0;             // candidates of a region that tuning times; 0: all
  std::string engine = {};  // wherever it can run; empty: any
};

// Inputs that never change, as the problem has it, where the pointers of its bound tensors say.
Constants constants_of(const Graph& graph, const Problem& problem, std::span<void* const> pointers);
// How to compile it for a GPU.
CompileOptions plan_options(const Problem& problem, const PlanWishes& wishes);

// A plan with memory to run it in.
class Runner {
 public:
  Runner(const Graph& graph, const Problem& problem, std::span<void* const> pointers,
         const Device& device, const PlanWishes& wishes = {});
  void run() const { run(pointers_); }
  void run(std::span<void* const> pointers, void* stream = nullptr) const {
    plan_.run(pointers, workspace_.data(), stream);
  }
  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
  std::vector<void*> pointers_;
  ashlar::Memory workspace_;
};

}  // namespace ashlar::bench

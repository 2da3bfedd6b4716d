// Tensors of a graph in memory, and plans that run on them.
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
using Buffer = std::unique_ptr<std::byte, FreeAligned>;  // host memory, page-aligned
Buffer allocate(std::int64_t bytes);

// Fills a tensor with uniform random values from the problem's range for its name, on all threads.
// The values depend on the seed and the name only.
void fill_input(const Tensor& tensor, void* data, const Problem& problem, std::uint64_t seed);

// All bound tensors, in the order of Graph::bound_tensors(), on the host and, for a GPU, on the
// device too. Inputs are filled by fill_input().
class Memory {
 public:
  Memory(const Graph& graph, const Problem& problem, std::uint64_t seed,
         const Device& device = Device::cpu());
  std::span<void* const> pointers() const { return pointers_; }  // arguments of Plan::run()
  std::span<void* const> on_host() const { return on_host_; }
  void* at(TensorId tensor) const;  // on the host
  // Downloads outputs from the device.
  void fetch_outputs(const Graph& graph);
  // Copies the outputs of another graph (after fetch_outputs()) into the inputs of the same name.
  // Throws Error(invalid_argument) if dims, strides or dtypes differ.
  void take(const Graph& graph, const Graph& from, const Memory& outputs);

 private:
  std::size_t position(TensorId tensor) const;
  std::vector<TensorId> tensors_;
  std::vector<Buffer> buffers_;
  std::vector<void*> on_host_;
  std::vector<ashlar::Memory> on_device_;  // empty on the CPU
  std::vector<void*> pointers_;
};

// How a plan is compiled.
struct PlanRequest {
  bool naive = false;       // GPU: cuda.generic for every operation, unfused
  bool tune = false;        // back to back if the problem sets back_to_back
  int max_candidates = 0;   // per region, that tuning times; 0: all
  std::string engine = {};  // preferred wherever it can run; empty: any
};

// The problem's constants, with the pointers of its bound tensors.
Constants constants_of(const Graph& graph, const Problem& problem, std::span<void* const> pointers);
// Compile options for a GPU.
CompileOptions plan_options(const Problem& problem, const PlanRequest& request);

// A plan with its workspace.
class Runner {
 public:
  Runner(const Graph& graph, const Problem& problem, std::span<void* const> pointers,
         const Device& device, const PlanRequest& request = {});
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

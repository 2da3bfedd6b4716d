// The tensors of a large problem, on a GPU only.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "suite.hpp"

namespace ashlar::bench {

// All bound tensors, in the order of Graph::bound_tensors(). Inputs are random numbers that depend
// on the seed and their name, repeated after two million.
class GpuTensors {
 public:
  // `given`: inputs that lie on the device already, by name.
  GpuTensors(const Gpu& gpu, const Graph& graph, const Problem& problem, std::uint64_t seed,
             const std::map<std::string, void*>& given = {});
  std::span<void* const> pointers() const { return pointers_; }
  // The same with memory of its own for the outputs.
  GpuTensors with_other_outputs(const Gpu& gpu, const Graph& graph) const;
  // The same with memory of its own for everything. Throws Error where the driver offers no copy.
  GpuTensors copied(const Gpu& gpu, const Graph& graph) const;
  // Outputs by name.
  std::map<std::string, void*> outputs(const Graph& graph) const;

 private:
  GpuTensors() = default;
  std::vector<ashlar::Memory> memory_;
  std::vector<void*> pointers_;
};

// Takes the elements that sample() gives; absent where it gives none.
std::optional<Graph> sampling_graph(const Tensor& tensor);
// Elements of a tensor on the device, evenly spread over its memory, at most about a million; none
// of a tensor whose elements share bytes.
std::vector<double> sample(const Gpu& gpu, const Tensor& tensor, void* data);

}  // namespace ashlar::bench

// Tensors of a full-size problem in device memory, without a copy on the host.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "suite.hpp"

namespace ashlar::bench {

// All bound tensors, in the order of Graph::bound_tensors(). Inputs repeat a pattern of about two
// million random elements that depends on the seed and the tensor's name.
class GpuTensors {
 public:
  // `given`: inputs that are already on the device, by name.
  GpuTensors(const Gpu& gpu, const Graph& graph, const Problem& problem, std::uint64_t seed,
             const std::map<std::string, void*>& given = {});
  std::span<void* const> pointers() const { return pointers_; }
  // The same inputs with new memory for the outputs.
  GpuTensors with_other_outputs(const Gpu& gpu, const Graph& graph) const;
  // A copy of all tensors. Throws Error if the driver's copy fails.
  GpuTensors copied(const Gpu& gpu, const Graph& graph) const;
  // Outputs by name.
  std::map<std::string, void*> outputs(const Graph& graph) const;

 private:
  GpuTensors() = default;
  std::vector<ashlar::Memory> memory_;
  std::vector<void*> pointers_;
};

// The slice by which sample() gathers its elements; absent for sub-byte dtypes.
std::optional<Graph> sampling_graph(const Tensor& tensor);
// About a million elements at most, evenly strided over the tensor's memory; empty for sub-byte
// dtypes.
std::vector<double> sample(const Gpu& gpu, const Tensor& tensor, void* data);

}  // namespace ashlar::bench

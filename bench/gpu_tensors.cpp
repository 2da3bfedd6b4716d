#include "gpu_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/check.hpp>
#include <ashlar/plan.hpp>

#include "memory.hpp"

namespace ashlar::bench {

namespace {

constexpr std::int64_t kPattern = 1999993;  // elements; a prime, so that no two rows are equal
constexpr std::int64_t kMaxSamples = 1 << 20;

std::int64_t elements_of(const Tensor& tensor) {
  return byte_size(tensor) * 8 / bit_width(tensor.dtype);
}

void fill(const Gpu& gpu, const Tensor& tensor, const Problem& problem, std::uint64_t seed,
          ashlar::Memory& memory) {
  const bool bytes_apart = bit_width(tensor.dtype) >= 8;
  Tensor part = tensor;
  part.dims = {bytes_apart ? std::min(elements_of(tensor), kPattern) : elements_of(tensor)};
  part.strides = {1};
  const Buffer host = allocate(byte_size(part));
  fill_input(part, host.get(), problem, seed);
  memory.upload(host.get(), byte_size(part));
  if (byte_size(part) == memory.bytes() || gpu.repeat(memory, byte_size(part))) return;
  const Buffer whole = allocate(memory.bytes());
  part.dims = {elements_of(tensor)};
  fill_input(part, whole.get(), problem, seed);
  memory.upload(whole.get(), memory.bytes());
}

}  // namespace

GpuTensors::GpuTensors(const Gpu& gpu, const Graph& graph, const Problem& problem,
                       std::uint64_t seed, const std::map<std::string, void*>& given) {
  for (const TensorId id : graph.bound_tensors()) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.kind == TensorKind::scalar)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("suites for GPUs cannot have scalar tensors ('{}')", tensor.name));
    const auto found = given.find(tensor.name);
    if (tensor.kind == TensorKind::input && found != given.end()) {
      pointers_.push_back(found->second);
      continue;
    }
    memory_.emplace_back(gpu.device(), byte_size(tensor));
    pointers_.push_back(memory_.back().data());
    if (tensor.kind == TensorKind::input)
      fill(gpu, tensor, problem, seed, memory_.back());
    else
      memory_.back().fill(std::byte{0xFF});
  }
}

GpuTensors GpuTensors::with_other_outputs(const Gpu& gpu, const Graph& graph) const {
  GpuTensors other;
  other.pointers_ = pointers_;
  const std::vector<TensorId> tensors = graph.bound_tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = graph.tensor(tensors[i]);
    if (tensor.kind != TensorKind::output) continue;
    other.memory_.emplace_back(gpu.device(), byte_size(tensor));
    other.pointers_[i] = other.memory_.back().data();
  }
  return other;
}

GpuTensors GpuTensors::copied(const Gpu& gpu, const Graph& graph) const {
  GpuTensors other;
  const std::vector<TensorId> tensors = graph.bound_tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t bytes = byte_size(graph.tensor(tensors[i]));
    other.memory_.emplace_back(gpu.device(), bytes);
    other.pointers_.push_back(other.memory_.back().data());
    if (!gpu.copy(other.pointers_[i], pointers_[i], bytes))
      throw Error(ErrorCode::device, "bench: cuMemcpyDtoDAsync failed or is missing");
  }
  return other;
}

std::map<std::string, void*> GpuTensors::outputs(const Graph& graph) const {
  std::map<std::string, void*> found;
  const std::vector<TensorId> tensors = graph.bound_tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (graph.tensor(tensors[i]).kind == TensorKind::output)
      found[graph.tensor(tensors[i]).name] = pointers_[i];
  return found;
}

std::optional<Graph> sampling_graph(const Tensor& tensor) {
  if (bit_width(tensor.dtype) < 8) return std::nullopt;
  const std::int64_t count = elements_of(tensor);
  // Odd, so that the samples cover all columns of a matrix.
  const std::int64_t step = (count / kMaxSamples) | 1;
  Graph graph("sample");
  const Value x = graph.input("x", {count}, tensor.dtype);
  graph.output("y", graph.slice(x, {0}, {count}, {step}));
  return graph;
}

std::vector<double> sample(const Gpu& gpu, const Tensor& tensor, void* data) {
  const std::optional<Graph> graph = sampling_graph(tensor);
  if (!graph) return {};
  const Tensor& y = graph->tensor(graph->find_tensor("y"));
  const Plan plan = compile(*graph, gpu.device());
  const ashlar::Memory some(gpu.device(), byte_size(y)),
      workspace(gpu.device(), plan.workspace_size());
  void* const pointers[] = {data, some.data()};
  plan.run(pointers, workspace.data());
  const Buffer host = allocate(some.bytes());
  some.download(host.get(), byte_size(y));
  std::vector<double> values(static_cast<std::size_t>(element_count(y.dims)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = read_element(y, host.get(), static_cast<std::int64_t>(i));
  return values;
}

}  // namespace ashlar::bench

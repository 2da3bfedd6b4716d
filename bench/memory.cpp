#include "memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/check.hpp>
#include <cstring>
#include <new>

namespace ashlar::bench {

namespace {

constexpr std::align_val_t kAlignment{4096};
constexpr std::int64_t kChunk = 1 << 17;  // elements filled per task

std::uint64_t seed_for(const std::string& name, std::uint64_t seed) {
  std::uint64_t hash = 14695981039346656037U + seed;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

// i8 and u8 default to their whole range.
Range range_of(const Tensor& tensor, const Problem& problem) {
  if (const auto found = problem.ranges.find(tensor.name); found != problem.ranges.end())
    return found->second;
  if (tensor.dtype == i8) return {-127, 127};
  if (tensor.dtype == u8) return {0, 255};
  return {};
}

CompileOptions options_for(const Graph& graph, const Problem& problem,
                           std::span<void* const> pointers, const Device& device,
                           const PlanRequest& request) {
  CompileOptions options;
  if (device.props().kind == DeviceKind::cuda) {
    options = plan_options(problem, request);
  } else {
    options.tune = request.tune;
    options.max_candidates = request.max_candidates;
    options.engine = request.engine;
  }
  options.constants = constants_of(graph, problem, pointers);
  return options;
}

}  // namespace

void FreeAligned::operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }

Constants constants_of(const Graph& graph, const Problem& problem,
                       std::span<void* const> pointers) {
  Constants constants;
  const std::vector<TensorId> tensors = graph.bound_tensors();
  for (const std::string& name : problem.constants) {
    const auto found = std::find(tensors.begin(), tensors.end(), graph.find_tensor(name));
    if (found == tensors.end())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: constant '{}' is not an input", graph.name(), name));
    constants.emplace_back(name, pointers[static_cast<std::size_t>(found - tensors.begin())]);
  }
  return constants;
}

CompileOptions plan_options(const Problem& problem, const PlanRequest& request) {
  CompileOptions options;
  options.allow_tf32 = problem.tf32;
  options.tune = request.tune;
  options.tune_back_to_back = problem.back_to_back;
  options.max_candidates = request.max_candidates;
  options.engine = request.naive ? "cuda.generic" : request.engine;
  options.fuse = !request.naive;
  return options;
}

Buffer allocate(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  return Buffer(static_cast<std::byte*>(::operator new(size, kAlignment)));
}

void fill_input(const Tensor& tensor, void* data, const Problem& problem, std::uint64_t seed) {
  const std::uint64_t own_seed = seed_for(tensor.name, seed);
  const Range range = range_of(tensor, problem);
  // The whole memory range, including gaps between strided elements.
  const std::int64_t elements = byte_size(tensor) * 8 / bit_width(tensor.dtype);
  const std::int64_t chunks = (elements + kChunk - 1) / kChunk;
#ifndef ASHLAR_NO_OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    Tensor part = tensor;
    part.dims = {std::min(kChunk, elements - chunk * kChunk)};
    part.strides = {1};
    std::byte* at = static_cast<std::byte*>(data) + chunk * kChunk * bit_width(tensor.dtype) / 8;
    fill_random(part, at, own_seed + static_cast<std::uint64_t>(chunk), range.low, range.high);
  }
}

Memory::Memory(const Graph& graph, const Problem& problem, std::uint64_t seed, const Device& device)
    : tensors_(graph.bound_tensors()) {
  const bool apart = device.props().kind != DeviceKind::cpu;
  for (const TensorId id : tensors_) {
    const Tensor& tensor = graph.tensor(id);
    const std::int64_t bytes = byte_size(tensor);
    buffers_.push_back(allocate(bytes));
    void* host = buffers_.back().get();
    on_host_.push_back(host);
    if (tensor.kind == TensorKind::output)
      std::memset(host, 0xFF, static_cast<std::size_t>(bytes));
    else
      fill_input(tensor, host, problem, seed);
    if (!apart) {
      pointers_.push_back(host);
      continue;
    }
    on_device_.emplace_back(device, bytes);
    on_device_.back().upload(host, bytes);
    pointers_.push_back(tensor.kind == TensorKind::scalar ? host : on_device_.back().data());
  }
}

std::size_t Memory::position(TensorId tensor) const {
  const auto found = std::find(tensors_.begin(), tensors_.end(), tensor);
  if (found == tensors_.end()) throw Error(ErrorCode::invalid_argument, "the tensor is not bound");
  return static_cast<std::size_t>(found - tensors_.begin());
}

void* Memory::at(TensorId tensor) const { return on_host_[position(tensor)]; }

void Memory::fetch_outputs(const Graph& graph) {
  if (on_device_.empty()) return;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (graph.tensor(tensors_[i]).kind == TensorKind::output)
      on_device_[i].download(on_host_[i], byte_size(graph.tensor(tensors_[i])));
}

void Memory::take(const Graph& graph, const Graph& from, const Memory& outputs) {
  for (const TensorId id : from.bound_tensors()) {
    const Tensor& source = from.tensor(id);
    const TensorId target = graph.find_tensor(source.name);
    if (source.kind != TensorKind::output || target == kNoTensor) continue;
    const Tensor& wanted = graph.tensor(target);
    if (wanted.kind != TensorKind::input) continue;
    if (wanted.dims != source.dims || wanted.strides != source.strides ||
        wanted.dtype != source.dtype)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: dims, strides or dtype of the prepared '{}' differ from the "
                              "input's",
                              graph.name(), source.name));
    std::memcpy(at(target), outputs.at(id), static_cast<std::size_t>(byte_size(source)));
    if (!on_device_.empty()) on_device_[position(target)].upload(at(target), byte_size(source));
  }
}

Runner::Runner(const Graph& graph, const Problem& problem, std::span<void* const> pointers,
               const Device& device, const PlanRequest& request)
    : plan_(compile(graph, device, options_for(graph, problem, pointers, device, request))),
      pointers_(pointers.begin(), pointers.end()),
      workspace_(device, plan_.workspace_size()) {}

}  // namespace ashlar::bench

#include "memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/check.hpp>
#include <cstring>
#include <new>

namespace ashlar::bench {

namespace {

constexpr std::align_val_t kAlignment{4096};

std::uint64_t seed_for(const std::string& name, std::uint64_t seed) {
  std::uint64_t hash = 14695981039346656037U + seed;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

// Integers use their width.
Range range_of(const Tensor& tensor, const Problem& problem) {
  if (const auto found = problem.ranges.find(tensor.name); found != problem.ranges.end())
    return found->second;
  if (tensor.dtype == i8) return {-127, 127};
  if (tensor.dtype == u8) return {0, 255};
  return {};
}

CompileOptions options_for(const Graph& graph, const Problem& problem, const Memory& memory,
                           bool reference_only) {
  CompileOptions options;
  options.reference_only = reference_only;
  for (const std::string& name : problem.constants)
    options.constants.emplace_back(name, memory.at(graph.find_tensor(name)));
  return options;
}

}  // namespace

void FreeAligned::operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }

Buffer allocate(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  return Buffer(static_cast<std::byte*>(::operator new(size, kAlignment)));
}

Memory::Memory(const Graph& graph, const Problem& problem, std::uint64_t seed)
    : tensors_(graph.bound_tensors()) {
  for (const TensorId id : tensors_) {
    const Tensor& tensor = graph.tensor(id);
    buffers_.push_back(allocate(byte_size(tensor)));
    pointers_.push_back(buffers_.back().get());
    if (tensor.kind == TensorKind::output) {
      std::memset(pointers_.back(), 0xFF, static_cast<std::size_t>(byte_size(tensor)));
    } else {
      const Range range = range_of(tensor, problem);
      fill_random(tensor, pointers_.back(), seed_for(tensor.name, seed), range.low, range.high);
    }
  }
}

void* Memory::at(TensorId tensor) const {
  const auto found = std::find(tensors_.begin(), tensors_.end(), tensor);
  if (found == tensors_.end())
    throw Error(ErrorCode::invalid_argument, "this tensor has no memory of its own");
  return pointers_[static_cast<std::size_t>(found - tensors_.begin())];
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
                  fmt::format("{}: what is prepared for '{}' is not what its graph reads",
                              graph.name(), source.name));
    std::memcpy(at(target), outputs.at(id), static_cast<std::size_t>(byte_size(source)));
  }
}

Runner::Runner(const Graph& graph, const Problem& problem, const Memory& memory,
               bool reference_only)
    : plan_(compile(graph, Device::cpu(), options_for(graph, problem, memory, reference_only))),
      memory_(memory),
      workspace_(allocate(plan_.workspace_size())) {}

}  // namespace ashlar::bench

// Poisoned memory for bound tensors.
#include "support/bound_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/element.hpp"

namespace ashlar::support {

namespace {

// A pattern that is NaN in every floating-point type, so that reads of unwritten values show.
constexpr std::byte kPaint{0xFF};
constexpr std::byte kCanary{0xC3};

bool is_read(const Tensor& tensor) { return tensor.kind != TensorKind::output; }

}  // namespace

GuardedBlock::GuardedBlock(std::size_t bytes)
    : storage_(bytes + 2 * kCanaryBytes + kAlignment, kCanary), bytes_(bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data()) + kCanaryBytes;
  start_ = kCanaryBytes + (kAlignment - address % kAlignment) % kAlignment;
  paint();
}

bool GuardedBlock::intact() const {
  const auto end = start_ + bytes_;
  const auto is_canary = [](std::byte value) { return value == kCanary; };
  return std::all_of(storage_.begin(), storage_.begin() + static_cast<std::ptrdiff_t>(start_),
                     is_canary) &&
         std::all_of(storage_.begin() + static_cast<std::ptrdiff_t>(end), storage_.end(),
                     is_canary);
}

void GuardedBlock::paint() { std::fill_n(data(), bytes_, kPaint); }

BoundMemory::BoundMemory(const Graph& graph) : graph_(graph), bound_(graph.bound_tensors()) {
  for (TensorId id : bound_)
    blocks_.emplace_back(static_cast<std::size_t>(byte_size(graph.tensor(id))));
  for (GuardedBlock& block : blocks_) pointers_.push_back(block.data());
}

GuardedBlock& BoundMemory::block(TensorId tensor) {
  const auto found = std::find(bound_.begin(), bound_.end(), tensor);
  return blocks_.at(static_cast<std::size_t>(found - bound_.begin()));
}

const std::byte* BoundMemory::data(TensorId tensor) const {
  const auto found = std::find(bound_.begin(), bound_.end(), tensor);
  return blocks_.at(static_cast<std::size_t>(found - bound_.begin())).data();
}

void BoundMemory::seal() {
  sealed_.clear();
  for (const GuardedBlock& block : blocks_)
    sealed_.emplace_back(block.data(), block.data() + block.size());
}

void BoundMemory::paint_outputs() {
  for (std::size_t i = 0; i < bound_.size(); ++i)
    if (!is_read(graph_.tensor(bound_[i]))) blocks_[i].paint();
}

std::vector<std::byte> BoundMemory::output_bytes() const {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < bound_.size(); ++i)
    if (!is_read(graph_.tensor(bound_[i])))
      bytes.insert(bytes.end(), blocks_[i].data(), blocks_[i].data() + blocks_[i].size());
  return bytes;
}

std::string BoundMemory::damage() const {
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    const Tensor& tensor = graph_.tensor(bound_[i]);
    const GuardedBlock& block = blocks_[i];
    if (!block.intact()) return fmt::format("'{}': bytes before or after it changed", tensor.name);
    if (!is_read(tensor)) {
      const std::string gaps = damage_of_gaps(tensor, block.data(), block.size());
      if (!gaps.empty()) return gaps;
    } else if (!sealed_.empty() &&
               !std::equal(sealed_[i].begin(), sealed_[i].end(), block.data())) {
      return fmt::format("'{}': an input changed", tensor.name);
    }
  }
  return {};
}

std::vector<bool> BoundMemory::addressed(const Tensor& tensor, std::int64_t elements) const {
  std::vector<bool> used(static_cast<std::size_t>(elements), false);
  const bool ragged = tensor.ragged_offset != kNoTensor;
  const auto row_start = [&](std::int64_t row) {
    const Tensor& offsets = graph_.tensor(tensor.ragged_offset);
    return static_cast<std::int64_t>(
        load_element(offsets.dtype, data(tensor.ragged_offset), row * offsets.strides[0]));
  };
  const std::int64_t count = element_count(tensor.dims);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, address = 0, row = 0;
    for (int axis = tensor.dims.rank() - 1; axis >= 0; --axis) {
      if (axis == 0) row = rest;
      if (axis > 0 || !ragged) address += rest % tensor.dims[axis] * tensor.strides[axis];
      rest /= tensor.dims[axis];
    }
    if (ragged) {
      address += row_start(row);
      if (address >= row_start(row + 1)) continue;
    }
    used.at(static_cast<std::size_t>(address)) = true;
  }
  return used;
}

std::string BoundMemory::damage_of_gaps(const Tensor& tensor, const std::byte* data,
                                        std::size_t bytes) const {
  const std::size_t bits = static_cast<std::size_t>(bit_width(tensor.dtype));
  const std::vector<bool> used = addressed(tensor, static_cast<std::int64_t>(bytes * 8 / bits));
  for (std::size_t element = 0; element < used.size(); ++element) {
    if (used[element]) continue;
    bool untouched = true;
    if (bits < 8) {
      const auto mask = static_cast<std::byte>(((1u << bits) - 1) << (element * bits % 8));
      untouched = (data[element * bits / 8] & mask) == (kPaint & mask);
    }
    for (std::size_t i = 0; i < bits / 8; ++i)
      untouched = untouched && data[element * (bits / 8) + i] == kPaint;
    if (!untouched)
      return fmt::format("'{}': element {} from its start belongs to no index, but was written",
                         tensor.name, element);
  }
  return {};
}

}  // namespace ashlar::support

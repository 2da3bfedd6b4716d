#include "tensor_memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ashlar/check.hpp>
#include <cstring>
#include <new>

namespace ashlar::cli {

namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kGuardBytes = 4096;
constexpr unsigned char kGuardValue = 0xA5;
// The oracle keeps a value and a bound per element, and one more of each while it evaluates a node.
constexpr double kOracleBytesPerElement = 32;

std::int64_t bytes_for_elements(const Tensor& tensor, std::int64_t elements) {
  std::int64_t bits = 0;
  if (__builtin_mul_overflow(elements, std::int64_t{bit_width(tensor.dtype)}, &bits) ||
      bits > INT64_MAX - 7)
    throw Error(ErrorCode::size_overflow,
                fmt::format("tensor '{}' does not fit into 63 bits", tensor.name));
  return (bits + 7) / 8;
}

// Calls visit(row-major index, offset in memory in elements) for every element.
template <class Visit>
void for_each_element(const Tensor& tensor, const std::vector<std::int64_t>& row_starts,
                      Visit&& visit) {
  const std::int64_t count = element_count(tensor.dims);
  const int rank = tensor.dims.rank();
  Dims index = Dims::filled(rank, 0);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < rank; ++axis)
      offset += axis == 0 && !row_starts.empty() ? row_starts[static_cast<std::size_t>(index[0])]
                                                 : index[axis] * tensor.strides[axis];
    visit(i, offset);
    for (int axis = rank; axis-- > 0;) {
      if (++index[axis] < tensor.dims[axis]) break;
      index[axis] = 0;
    }
  }
}

// The bits of an element narrower than a byte.
unsigned bits_at(DType dtype, const std::byte* data, std::int64_t index) {
  const std::int64_t bit = index * bit_width(dtype);
  return std::to_integer<unsigned>(data[bit / 8]) >> (bit % 8) & ((1u << bit_width(dtype)) - 1);
}

void set_bits(DType dtype, std::byte* data, std::int64_t index, unsigned value) {
  const std::int64_t bit = index * bit_width(dtype);
  const unsigned mask = ((1u << bit_width(dtype)) - 1) << (bit % 8);
  const unsigned kept = std::to_integer<unsigned>(data[bit / 8]) & ~mask;
  data[bit / 8] = static_cast<std::byte>(kept | (value << (bit % 8) & mask));
}

// Copies one element between two memories of the same dtype.
void copy_element(DType dtype, std::byte* to, std::int64_t to_index, const std::byte* from,
                  std::int64_t from_index) {
  if (bit_width(dtype) < 8) return set_bits(dtype, to, to_index, bits_at(dtype, from, from_index));
  const std::int64_t size = bit_width(dtype) / 8;
  std::memcpy(to + to_index * size, from + from_index * size, static_cast<std::size_t>(size));
}

// An element narrower than a byte <-> the byte that stands for it in an array file.
std::byte widened(DType dtype, unsigned bits) {
  if (dtype == DType::i4 && bits >= 8) bits |= 0xF0u;
  return static_cast<std::byte>(bits);
}
unsigned narrowed(const Tensor& tensor, std::byte value) {
  const auto bits = std::to_integer<unsigned>(value);
  if (tensor.dtype == DType::boolean) return bits != 0;
  if (widened(tensor.dtype, bits & 0xFu) != value)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("input '{}' is {}, for which the .npy values must be {}, got {}", tensor.name,
                    to_string(tensor.dtype), tensor.dtype == DType::i4 ? "-8 to 7" : "0 to 15",
                    tensor.dtype == DType::i4 ? static_cast<int>(static_cast<signed char>(bits))
                                              : static_cast<int>(bits)));
  return bits & 0xFu;
}

std::vector<std::int64_t> shape_of(const Tensor& tensor) {
  return {tensor.dims.begin(), tensor.dims.end()};
}

}  // namespace

Buffer::Buffer(std::int64_t size) : size_(size) {
  if (size > INT64_MAX / 2) throw std::bad_alloc();
  const auto total = static_cast<std::size_t>(size + 2 * kGuardBytes);
  memory_.reset(static_cast<std::byte*>(::operator new (total, std::align_val_t{kAlignment})));
  std::memset(memory_.get(), 0, total);
  std::memset(memory_.get(), kGuardValue, kGuardBytes);
  std::memset(memory_.get() + kGuardBytes + size, kGuardValue, kGuardBytes);
  data_ = memory_.get() + kGuardBytes;
}

void Buffer::Free::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{kAlignment});
}

void Buffer::fill(unsigned char value) const {
  std::memset(data_, value, static_cast<std::size_t>(size_));
}

bool Buffer::guards_intact() const {
  const auto intact = [](const std::byte* zone) {
    return std::all_of(zone, zone + kGuardBytes,
                       [](std::byte b) { return b == std::byte{kGuardValue}; });
  };
  return !memory_ || (intact(memory_.get()) && intact(data_ + size_));
}

TensorMemory::TensorMemory(const Graph& graph)
    : graph_(graph), tensors_(graph.bound_tensors()), buffers_(tensors_.size()) {}

void TensorMemory::allocate(std::size_t position) {
  const Tensor& tensor = graph_.tensor(tensors_[position]);
  std::int64_t bytes = byte_size(tensor);
  const std::vector<std::int64_t> starts = row_starts(tensors_[position]);
  if (!starts.empty()) {
    const std::int64_t furthest = *std::max_element(starts.begin(), starts.end());
    bytes = std::max(bytes, bytes_for_elements(tensor, furthest + row_span(tensor)));
  }
  buffers_[position] = Buffer(bytes);
}

std::size_t TensorMemory::position_of(TensorId tensor) const {
  const auto found = std::find(tensors_.begin(), tensors_.end(), tensor);
  if (found == tensors_.end())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("tensor '{}' is computed inside the graph, expected an input",
                            graph_.tensor(tensor).name));
  return static_cast<std::size_t>(found - tensors_.begin());
}

std::vector<void*> TensorMemory::pointers() const {
  std::vector<void*> result;
  for (const Buffer& buffer : buffers_) result.push_back(buffer.data());
  return result;
}

std::vector<std::int64_t> TensorMemory::row_starts(TensorId id) const {
  const Tensor& tensor = graph_.tensor(id);
  if (tensor.ragged_offset == kNoTensor) return {};
  const Tensor& offsets = graph_.tensor(tensor.ragged_offset);
  const void* data = at(position_of(tensor.ragged_offset));
  const std::int64_t rows = tensor.dims[0];
  if (element_count(offsets.dims) < rows)
    throw Error(ErrorCode::invalid_graph,
                fmt::format("tensor '{}' has {} rows, its offsets '{}' only {} values", tensor.name,
                            rows, offsets.name, element_count(offsets.dims)));
  const std::int64_t limit = rows * row_span(tensor);
  std::vector<std::int64_t> starts;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double start = read_element(offsets, data, row);
    if (!(start >= 0 && start <= static_cast<double>(limit)))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("row {} of tensor '{}' starts at {} by '{}', expected 0 to {}", row,
                              tensor.name, start, offsets.name, limit));
    starts.push_back(static_cast<std::int64_t>(start));
  }
  return starts;
}

std::int64_t row_span(const Tensor& tensor) {
  std::int64_t span = 1;
  for (int axis = 1; axis < tensor.dims.rank(); ++axis) {
    if (tensor.dims[axis] == 0) return 0;
    span += (tensor.dims[axis] - 1) * tensor.strides[axis];
  }
  return span;
}

std::vector<std::byte> gather(const TensorMemory& memory, std::size_t position) {
  const TensorId id = memory.tensors()[position];
  const Tensor& tensor = memory.graph().tensor(id);
  std::vector<std::byte> result(
      static_cast<std::size_t>(bytes_for_elements(tensor, element_count(tensor.dims))));
  const auto* from = static_cast<const std::byte*>(memory.at(position));
  for_each_element(tensor, memory.row_starts(id), [&](std::int64_t index, std::int64_t offset) {
    copy_element(tensor.dtype, result.data(), index, from, offset);
  });
  return result;
}

std::string_view npy_type_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return "f8";
    case DType::f32: return "f4";
    case DType::f16: return "f2";
    case DType::bf16: return "u2";
    case DType::e4m3:
    case DType::e5m2:
    case DType::e8m0:
    case DType::e2m1: return "u1";
    case DType::i64: return "i8";
    case DType::i32: return "i4";
    case DType::i8: return "i1";
    case DType::u8: return "u1";
    case DType::u32: return "u4";
    case DType::i4: return "i1";
    case DType::u4: return "u1";
    case DType::boolean: return "b1";
    case DType::complex_f32: return "c8";
    case DType::complex_f64: return "c16";
  }
  return "u1";
}

NpyArray to_npy(const TensorMemory& memory, std::size_t position) {
  const Tensor& tensor = memory.graph().tensor(memory.tensors()[position]);
  NpyArray array{std::string(npy_type_of(tensor.dtype)), shape_of(tensor),
                 gather(memory, position)};
  if (bit_width(tensor.dtype) < 8) {
    std::vector<std::byte> expanded(static_cast<std::size_t>(element_count(tensor.dims)));
    for (std::size_t i = 0; i < expanded.size(); ++i)
      expanded[i] = widened(tensor.dtype,
                            bits_at(tensor.dtype, array.data.data(), static_cast<std::int64_t>(i)));
    array.data = std::move(expanded);
  }
  return array;
}

void from_npy(const NpyArray& array, const TensorMemory& memory, std::size_t position) {
  const TensorId id = memory.tensors()[position];
  const Tensor& tensor = memory.graph().tensor(id);
  if (array.type != npy_type_of(tensor.dtype))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("input '{}' is {}, for which the .npy element type must be {}, got {}",
                    tensor.name, to_string(tensor.dtype), npy_type_of(tensor.dtype), array.type));
  if (array.shape != shape_of(tensor))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("input '{}' has dims {}, the .npy shape is [{}]", tensor.name,
                            to_string(tensor.dims), fmt::join(array.shape, ", ")));
  auto* to = static_cast<std::byte*>(memory.at(position));
  for_each_element(tensor, memory.row_starts(id), [&](std::int64_t index, std::int64_t offset) {
    if (bit_width(tensor.dtype) < 8)
      set_bits(tensor.dtype, to, offset,
               narrowed(tensor, array.data[static_cast<std::size_t>(index)]));
    else
      copy_element(tensor.dtype, to, offset, array.data.data(), index);
  });
}

double bytes_needed(const Graph& graph, bool with_oracle) {
  double bytes = 0;
  for (const Tensor& tensor : graph.tensors()) {
    bytes += static_cast<double>(byte_size(tensor));
    if (with_oracle) bytes += kOracleBytesPerElement * static_cast<double>(number_count(tensor));
  }
  return bytes;
}

void require_memory(const Graph& graph, bool with_oracle) {
  const double needed = bytes_needed(graph, with_oracle);
  const double present =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed > present)
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format("graph '{}' needs {:.3g} GB{}, this machine has {:.3g} GB", graph.name(),
                    needed / 1e9, with_oracle ? " with the oracle's values" : "", present / 1e9));
}

}  // namespace ashlar::cli

// Memory of the tensors a graph is run with, and its exchange with row-major arrays.
#pragma once

#include <ashlar/graph.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "npy.hpp"

namespace ashlar::cli {

// 64-byte aligned bytes with a guard zone on either side.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t size);
  void* data() const { return data_; }
  std::int64_t size() const { return size_; }
  void fill(unsigned char value) const;
  bool guards_intact() const;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::byte* data_ = nullptr;
  std::int64_t size_ = 0;
};

// The buffers of a graph's bound tensors, in the order of Graph::bound_tensors().
class TensorMemory {
 public:
  explicit TensorMemory(const Graph& graph);

  const Graph& graph() const { return graph_; }
  const std::vector<TensorId>& tensors() const { return tensors_; }
  // A ragged tensor must be allocated after its offsets are filled: they say how far it reaches.
  void allocate(std::size_t position);
  void* at(std::size_t position) const { return buffers_[position].data(); }
  const Buffer& buffer(std::size_t position) const { return buffers_[position]; }
  std::size_t position_of(TensorId tensor) const;  // of a bound tensor
  std::vector<void*> pointers() const;
  // Where each row of axis 0 begins, in elements; empty when the tensor is not ragged.
  std::vector<std::int64_t> row_starts(TensorId tensor) const;

 private:
  const Graph& graph_;
  std::vector<TensorId> tensors_;
  std::vector<Buffer> buffers_;
};

// Elements from the first to past the last that one row of axis 0 touches.
std::int64_t row_span(const Tensor& tensor);

// The elements row-major without gaps, as an array file holds them. Booleans stay bits,
// 4-bit types halves of bytes.
std::vector<std::byte> gather(const TensorMemory& memory, std::size_t position);

// The NumPy type that stands for a dtype; bf16, fp8, fp4 and e8m0, which NumPy lacks, are raw
// unsigned integers; a 4-bit number takes a byte.
std::string_view npy_type_of(DType dtype);
NpyArray to_npy(const TensorMemory& memory, std::size_t position);
// Throws Error(invalid_argument) unless type and shape are the tensor's.
void from_npy(const NpyArray& array, const TensorMemory& memory, std::size_t position);

// Bytes of all bound tensors, and of what the oracle keeps when it is asked too.
double bytes_needed(const Graph& graph, bool with_oracle);
// Throws Error(out_of_memory) when the machine has less than that.
void require_memory(const Graph& graph, bool with_oracle);

}  // namespace ashlar::cli

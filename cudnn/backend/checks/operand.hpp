// Operand: assertions of finalize about an operation's tensors. A failed one throws Failure with
// "ATTRIBUTE (tensor uid): got value, expected value".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/record.hpp"

namespace ashlar::cudnn {

using Extents = std::vector<std::int64_t>;
using ExtentsView = std::span<const std::int64_t>;

// "[2, 3]"
std::string text_of(ExtentsView extents);

// The tensor that an attribute of an operation names. Every assertion about a tensor that is not
// set passes.
class Operand {
 public:
  Operand(const Record& operation, cudnnBackendAttributeName_t name)
      : Operand(operation.record_or_null(name), name) {}
  // One of several tensors that an attribute names.
  Operand(const Record* tensor, cudnnBackendAttributeName_t name);

  // The same tensor with `axis` and the next axis as one.
  Operand merged(int axis) const;

  bool is_set() const { return tensor_ != nullptr; }
  // In elements, also where the descriptor counts vectors.
  ExtentsView dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims().size()); }
  std::int64_t extent(int axis) const { return dims()[static_cast<std::size_t>(axis)]; }
  cudnnDataType_t type() const;
  bool has_one_element() const;
  // Whether the data type is an x4 or x32 type.
  bool is_vector_type() const;
  bool has_vectors() const;  // a vector type, or a vector count above 1
  bool is_virtual() const;

  const Operand& require_set() const;
  const Operand& require_rank(int min, int max = CUDNN_DIM_MAX) const;
  const Operand& require_dims(ExtentsView expected, const char* whose = "") const;
  // Every extent is 1 or that of `target`. A tensor of one element broadcasts whatever its rank.
  const Operand& require_broadcastable(ExtentsView target) const;
  // The same for `tensor_dims` in place of the operand's own dims.
  const Operand& require_broadcastable(ExtentsView target, ExtentsView tensor_dims) const;
  // Every extent divides that of `target`.
  const Operand& require_divisor(ExtentsView target) const;
  const Operand& require_one_element() const;
  const Operand& require_integer() const;
  const Operand& require_floating() const;

  // "ATTRIBUTE (tensor 7): got ..., expected ...", SHAPE_MISMATCH.
  [[noreturn]] void fail_shape(const std::string& got, const std::string& expected) const;

 private:
  std::string start() const;

  cudnnBackendAttributeName_t name_;
  const Record* tensor_;
  Extents dims_;
};

// "ATTRIBUTE: got 7, expected at least 8", OUT_OF_BOUND.
[[noreturn]] void fail_bound(cudnnBackendAttributeName_t name, const std::string& got,
                             const std::string& expected);
void require_min(const Record& record, cudnnBackendAttributeName_t name, std::int64_t min);
// Throws Failure for an attribute that is not set and has no default.
void require_set(const Record& record, std::initializer_list<cudnnBackendAttributeName_t> names);
// Every element lies in [min, max].
void require_within(const Record& record, cudnnBackendAttributeName_t name, std::int64_t min,
                    std::int64_t max);
// Throws Failure(SHAPE_MISMATCH) unless got == count; `whose` names the attribute that determines
// the count.
void require_count(std::size_t got, cudnnBackendAttributeName_t name, std::int64_t count,
                   const char* whose);

}  // namespace ashlar::cudnn

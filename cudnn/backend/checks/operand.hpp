// What the checks of finalize ask of an operation's tensors. Each question names the attribute, the
// tensor's uid, what was got and what was expected.
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

// The tensor that an attribute of an operation names; all questions to one that was not set pass.
class Operand {
 public:
  Operand(const Record& operation, cudnnBackendAttributeName_t name)
      : Operand(operation.record_or_null(name), name) {}
  // One of several that an attribute names.
  Operand(const Record* tensor, cudnnBackendAttributeName_t name);

  bool is_set() const { return tensor_ != nullptr; }
  // In elements, where the descriptor counts vectors.
  ExtentsView dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims().size()); }
  std::int64_t extent(int axis) const { return dims()[static_cast<std::size_t>(axis)]; }
  cudnnDataType_t type() const;
  bool has_one_element() const;
  // Of a data type that is a vector itself.
  bool is_vector_type() const;
  bool is_virtual() const;

  const Operand& require_set() const;
  const Operand& require_rank(int least, int most = CUDNN_DIM_MAX) const;
  const Operand& require_dims(ExtentsView expected, const char* whose = "") const;
  // Every extent is 1 or that of `whole`; a single element fits whatever its rank.
  const Operand& require_broadcastable(ExtentsView whole) const;
  // The same for the dims `taken`, which this operand is taken to have.
  const Operand& require_broadcastable(ExtentsView whole, ExtentsView taken) const;
  // Every extent divides that of `whole`.
  const Operand& require_divisor(ExtentsView whole) const;
  const Operand& require_one_element() const;
  const Operand& require_integer() const;
  const Operand& require_floating() const;

  // The sentence starts "ATTRIBUTE (tensor 7): got ".
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
void require_least(const Record& record, cudnnBackendAttributeName_t name, std::int64_t least);
// Fails with the name when the attribute was not set and has no default.
void require_set(const Record& record, std::initializer_list<cudnnBackendAttributeName_t> names);
// Each of the elements is within bounds.
void require_within(const Record& record, cudnnBackendAttributeName_t name, std::int64_t least,
                    std::int64_t most);
// Set, with `count` elements, SHAPE_MISMATCH; `whose` tells what the count comes from.
void require_count(std::size_t got, cudnnBackendAttributeName_t name, std::int64_t count,
                   const char* whose);

}  // namespace ashlar::cudnn

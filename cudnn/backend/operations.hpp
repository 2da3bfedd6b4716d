// The tensors that each operation of the graph API reads and writes.
#pragma once

#include <span>
#include <vector>

#include "backend/record.hpp"

namespace ashlar::cudnn {

// A tensor of an operation: the attribute that names it, and its descriptor.
struct NamedTensor {
  cudnnBackendAttributeName_t attribute;
  const Record* tensor;
};

// The tensors an operation writes, and those it reads, as far as they are set. Ragged offsets are
// read.
std::vector<NamedTensor> results_of(const Record& operation);
std::vector<NamedTensor> operands_of(const Record& operation);

// The operations in topological order, stable with respect to the caller's order. Throws
// Failure(BAD_PARAM) for a tensor with two producers and for a cycle.
std::vector<const Record*> topological_order(std::span<const RecordRef> operations);

std::int64_t uid_of(const Record& tensor);

}  // namespace ashlar::cudnn

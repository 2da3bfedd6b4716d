// What every operation of the graph interface reads and writes.
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

// The tensors an operation writes and those it reads, as far as they are set. Offsets of ragged
// tensors count as read.
std::vector<NamedTensor> results_of(const Record& operation);
std::vector<NamedTensor> operands_of(const Record& operation);

// The operations so that each stands after those whose results it reads, otherwise in the order
// given. Throws Failure(BAD_PARAM) for a tensor with two producers and for a circle.
std::vector<const Record*> in_order(std::span<const RecordRef> operations);

std::int64_t uid_of(const Record& tensor);

}  // namespace ashlar::cudnn

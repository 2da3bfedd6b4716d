// The operations the generic engine knows: one function each, in the file of its family, which
// names the kernel file, gives it its constants and arguments, and counts units and passes.
#pragma once

#include <concepts>

#include "cuda/engines/generic/generic_kernel.hpp"

namespace ashlar::cuda {

// movement.cpp
void describe(const Reshape& op, GenericKernel& kernel);
void describe(const Transpose& op, GenericKernel& kernel);
void describe(const Slice& op, GenericKernel& kernel);
void describe(const Concat& op, GenericKernel& kernel);
void describe(const TensorTransform& op, GenericKernel& kernel);

template <class OpType>
concept Described = requires(const OpType& op, GenericKernel& kernel) {
  { describe(op, kernel) } -> std::same_as<void>;
};

}  // namespace ashlar::cuda

// Scratch memory of a loop nest, for both scalar types.
#pragma once

#include <vector>

#include "base/checked.hpp"
#include "reference/dense_operands.hpp"
#include "reference/memory_operands.hpp"

namespace ashlar::reference {

struct ScratchNeed {
  std::int64_t numbers = 0, integers = 0;
  // As doubles and 64-bit integers.
  std::int64_t bytes() const { return checked_mul(8, checked_add(numbers, integers)); }
};

template <class Operands>
class Scratch;

// Provided by the caller of evaluate_node.
template <>
class Scratch<MemoryOperands> {
 public:
  Scratch(const MemoryOperands& operands, const ScratchNeed& need)
      : integers_(static_cast<std::int64_t*>(operands.scratch())),
        numbers_(reinterpret_cast<double*>(integers_ + need.integers)) {}
  std::int64_t* integers() const { return integers_; }
  double* numbers() const { return numbers_; }

 private:
  std::int64_t* integers_;
  double* numbers_;
};

template <Arithmetic A>
class Scratch<DenseOperands<A>> {
 public:
  Scratch(const DenseOperands<A>&, const ScratchNeed& need)
      : integers_(static_cast<std::size_t>(need.integers)),
        numbers_(static_cast<std::size_t>(need.numbers)) {}
  std::int64_t* integers() { return integers_.data(); }
  Approx<A>* numbers() { return numbers_.data(); }

 private:
  std::vector<std::int64_t> integers_;
  std::vector<Approx<A>> numbers_;
};

}  // namespace ashlar::reference

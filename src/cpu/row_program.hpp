// Runs a PointwiseProgram over rows: runs of consecutive elements along one axis of its iteration
// space. Every CPU engine reads its operands and writes its results through this, so dtypes,
// strides, broadcasts and fusion live in one place.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "cpu/random_row.hpp"
#include "plan/kernel.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cpu {

// Where a program's results go: through the caches, for a reader that is close; or past them, where
// they would not stay anyway (see store_to.hpp).
enum class StoreTo : std::uint8_t { caches, memory };

// T is float or double: the type values have in registers (see PointwiseProgram::precision).
template <class T>
class RowProgram {
  struct Code;  // steps in execution form

 public:
  RowProgram() = default;
  // Compiles `program` for rows along `axis`. Done at build; may allocate. Ragged views are
  // honoured when `graph` is given (it knows the type of their offsets); their rows must not leave
  // the valid part. `step`: elements of a row are this many positions of the axis apart.
  RowProgram(const PointwiseProgram& program, int axis, const Graph* graph = nullptr,
             std::int64_t step = 1, StoreTo store_to = StoreTo::caches);

  // The program with this run's pointers. Lives on the stack, allocates nothing, is safe to share
  // by threads.
  class Bound {
   public:
    // Epilogue: `accumulator` holds `count` values, for the row that starts at `coords` (one index
    // per axis of the space). Computes and stores. For a program without accumulator pass nullptr.
    void store(const std::int64_t* coords, std::int64_t count, const T* accumulator) const;
    // Prologue: writes `count` values of the program's result to `destination`, contiguously.
    void load(const std::int64_t* coords, std::int64_t count, T* destination) const;
    // A program on rows in registers: `rows` are its accumulators, by Step::row. `destination` may
    // be one of them if the program's last step is its result.
    void apply(const std::int64_t* coords, std::int64_t count,
               const std::array<const T*, kMaxProgramRows>& rows, T* destination) const;
    // Where a row of results may be written without store(): the memory at `coords`, when it holds
    // them as they are and nothing else is to be done, else null.
    struct Place {
      T* memory = nullptr;
      bool stream = false;  // worth going past the caches
    };
    Place place(const std::int64_t* coords) const;
    // Prologue without a copy where memory already holds the values as they are.
    const T* view(const std::int64_t* coords, std::int64_t count, T* buffer) const;
    // Whether view() never copies: a plain load of elements that are T and lie together.
    bool is_memory() const;

   private:
    friend class RowProgram;
    friend struct RowProgram<T>::Code;
    const typename RowProgram<T>::Code* code_ = nullptr;
    // By load, then by store.
    std::array<std::byte*, kMaxProgramLoads + kMaxProgramStores> pointers_;
    std::array<const void*, kMaxProgramLoads + kMaxProgramStores> ragged_offsets_;
    std::array<RandomStream, kMaxProgramRandoms> streams_;
  };
  Bound bind(const KernelContext& context) const;  // valid while this object lives
  int axis() const;

 private:
  std::shared_ptr<const Code> code_;
};

// How many of the program's tensors lie contiguously along an axis.
int contiguous_views(const PointwiseProgram& program, int axis);

extern template class RowProgram<float>;
extern template class RowProgram<double>;

}  // namespace ashlar::cpu

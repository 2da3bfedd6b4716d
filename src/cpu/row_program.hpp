// Executes a PointwiseProgram over rows: runs of elements along one axis of its iteration space.
// Every CPU engine reads its operands and writes its results through this, so that dtypes, strides,
// broadcasts and fusion are handled in one place.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "cpu/random_row.hpp"
#include "plan/kernel.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cpu {

// Cached stores, or non-temporal stores for results that would not stay in the caches anyway (see
// store_to.hpp).
enum class StoreTo : std::uint8_t { caches, memory };

// T is float or double: the type of values in registers (see PointwiseProgram::precision).
template <class T>
class RowProgram {
  struct Code;  // the compiled steps

 public:
  RowProgram() = default;
  // Compiles `program` for rows along `axis`. Called at build time; may allocate. Ragged views need
  // `graph` (for the dtype of their offsets); their rows must stay inside the valid part. `step`:
  // distance of a row's elements along the axis.
  RowProgram(const PointwiseProgram& program, int axis, const Graph* graph = nullptr,
             std::int64_t step = 1, StoreTo store_to = StoreTo::caches);

  // The program bound to the pointers of one run. Lives on the stack, allocates nothing and may be
  // shared by threads.
  class Bound {
   public:
    // Epilogue: computes and stores the row that starts at `coords` (one index per axis of the
    // space) from `count` accumulator values. A program without accumulator takes nullptr.
    void store(const std::int64_t* coords, std::int64_t count, const T* accumulator) const;
    // Prologue: writes `count` values of the program's result to `destination`, contiguously.
    void load(const std::int64_t* coords, std::int64_t count, T* destination) const;
    // Runs the program on rows: `rows` are its accumulators, by Step::row. `destination` may alias
    // one of them if the program's last step is its result.
    void apply(const std::int64_t* coords, std::int64_t count,
               const std::array<const T*, kMaxProgramRows>& rows, T* destination) const;
    // Memory that a row of results may be written to directly, without store(): null unless the
    // program is one plain store of elements of type T.
    struct Place {
      T* memory = nullptr;
      bool stream = false;  // use non-temporal stores
    };
    Place place(const std::int64_t* coords) const;
    // Prologue without a copy if memory already holds the values as T.
    const T* view(const std::int64_t* coords, std::int64_t count, T* buffer) const;
    // Whether view() never copies: a plain load of contiguous elements of type T.
    bool is_memory() const;

   private:
    friend class RowProgram;
    friend struct RowProgram<T>::Code;
    const typename RowProgram<T>::Code* code_ = nullptr;
    // Loads first, then stores.
    std::array<std::byte*, kMaxProgramLoads + kMaxProgramStores> pointers_;
    std::array<const void*, kMaxProgramLoads + kMaxProgramStores> ragged_offsets_;
    std::array<RandomStream, kMaxProgramRandoms> streams_;
  };
  Bound bind(const KernelContext& context) const;  // valid as long as this object lives
  int axis() const;

 private:
  std::shared_ptr<const Code> code_;
};

// Number of the program's views that have stride 1 along an axis.
int contiguous_views(const PointwiseProgram& program, int axis);

extern template class RowProgram<float>;
extern template class RowProgram<double>;

}  // namespace ashlar::cpu

// Rows of an operand that may be ragged: elements past the end of a ragged row read as 0 and are
// not written.
#pragma once

#include <algorithm>

#include "cpu/operand.hpp"

namespace ashlar::cpu {

template <class T>
class RaggedRows {
 public:
  RaggedRows() = default;  // absent
  RaggedRows(const PointwiseProgram& program, int axis, const Graph& graph)
      : present_(!program.empty()) {
    if (!present_) return;
    program_ = RowProgram<T>(program, axis, &graph);
    const auto guard = [&](const View& view) {
      if (view.ragged_offset == kNoTensor) return;
      offsets_ = view.ragged_offset;
      wide_offsets_ = graph.tensor(view.ragged_offset).dtype == i64;
      strides_ = view.strides;
    };
    for (const auto& step : program.steps)
      if (step.kind == PointwiseProgram::Step::Kind::load) guard(step.view);
    for (const auto& store : program.stores) guard(store.view);
  }
  bool present() const { return present_; }

  class Bound {
   public:
    bool present() const { return rows_->present_; }
    void load(const Coords& coords, std::int64_t count, T* destination) const {
      if (inside(coords)) return bound_.load(coords.data(), count, destination);
      std::fill(destination, destination + count, T{0});
    }
    // The address of the row, where memory holds the values that load() would write; null where
    // load() converts, computes or gathers, or where rows are ragged. Reads nothing, so that
    // `coords` may be one row past the last.
    const T* in_place(const Coords& coords) const {
      if (!rows_->present_ || offsets_ != nullptr || !bound_.is_memory()) return nullptr;
      return bound_.view(coords.data(), 0, nullptr);
    }
    void store(const Coords& coords, std::int64_t count, const T* values) const {
      if (rows_->present_ && inside(coords)) bound_.store(coords.data(), count, values);
    }

   private:
    friend class RaggedRows;
    std::int64_t start(std::int64_t row) const {
      return rows_->wide_offsets_ ? static_cast<const std::int64_t*>(offsets_)[row]
                                  : static_cast<const std::int32_t*>(offsets_)[row];
    }
    bool inside(const Coords& coords) const {
      if (offsets_ == nullptr) return true;
      std::int64_t index = start(coords[0]);
      for (int axis = 1; axis < rows_->strides_.rank(); ++axis)
        index += coords[static_cast<std::size_t>(axis)] * rows_->strides_[axis];
      return index < start(coords[0] + 1);
    }
    const RaggedRows* rows_ = nullptr;
    const void* offsets_ = nullptr;
    typename RowProgram<T>::Bound bound_;
  };
  Bound bind(const KernelContext& context) const {
    Bound bound;
    bound.rows_ = this;
    if (present_) bound.bound_ = program_.bind(context);
    if (offsets_ != kNoTensor) bound.offsets_ = context.pointer(offsets_);
    return bound;
  }

 private:
  bool present_ = false;
  TensorId offsets_ = kNoTensor;
  bool wide_offsets_ = false;
  Dims strides_;
  RowProgram<T> program_;
};

}  // namespace ashlar::cpu

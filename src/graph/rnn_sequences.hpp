// Sequence lengths of an RNN batch, and the rows of its time steps.
#pragma once

#include "graph/rnn_shapes.hpp"

namespace ashlar {

// Lengths are untrusted data: they are clamped to the extents of the tensors. In the packed layout
// rows are ordered by time step, then by sequence; sequences end where the rows run out.
class RnnSequences {
 public:
  // Number of integers in the caller's buffer.
  static std::int64_t integers(const RnnShape& shape) {
    return checked_add(shape.batch, checked_add(shape.steps, 1));
  }

  // given(n) is the unclamped length of sequence n.
  template <class Given>
  RnnSequences(const RnnShape& shape, std::int64_t* memory, const Given& given)
      : packed_(shape.packed),
        batch_(shape.batch),
        lengths_(memory),
        starts_(memory + shape.batch) {
    for (std::int64_t n = 0; n < batch_; ++n)
      lengths_[n] = std::clamp<std::int64_t>(given(n), 0, shape.steps);
    starts_[0] = 0;
    for (std::int64_t rows = 0;; ++steps_) {
      const std::int64_t before = rows;
      for (std::int64_t n = 0; n < batch_; ++n) {
        if (lengths_[n] <= steps_) continue;
        if (rows == shape.rows)
          lengths_[n] = steps_;
        else
          ++rows;
      }
      if (rows == before) break;
      starts_[steps_ + 1] = rows;
    }
  }

  std::int64_t steps() const { return steps_; }  // of the longest sequence
  std::int64_t length(std::int64_t n) const { return lengths_[n]; }
  bool runs(std::int64_t step, std::int64_t n) const { return step >= 0 && lengths_[n] > step; }
  // Rows in use before `step`, counted without padding.
  std::int64_t start(std::int64_t step) const { return starts_[step]; }
  std::int64_t used_rows() const { return starts_[steps_]; }

  // The row of x, y and the records that holds this step of sequence n.
  std::int64_t row(std::int64_t step, std::int64_t n) const {
    if (!packed_) return step * batch_ + n;
    std::int64_t result = starts_[step];
    for (std::int64_t other = 0; other < n; ++other) result += lengths_[other] > step ? 1 : 0;
    return result;
  }

 private:
  bool packed_;
  std::int64_t batch_;
  std::int64_t* lengths_;
  std::int64_t* starts_;  // steps_ + 1 entries
  std::int64_t steps_ = 0;
};

}  // namespace ashlar

// Dropout of attention weights: from a mask, or drawn from a Philox stream.
#pragma once

#include <cmath>

#include "base/dropout.hpp"
#include "cpu/engines/attention_shape.hpp"
#include "cpu/integer_operand.hpp"
#include "cpu/kernels/philox.hpp"
#include "cpu/kernels/pointwise.hpp"
#include "cpu/ragged_rows.hpp"

namespace ashlar::cpu {

template <class T, class Attention>
class AttentionDropout {
 public:
  AttentionDropout(const Graph& graph, const Region& region, const AttentionShape& shape)
      : shape_(shape),
        probability_(region.anchor_as<Attention>()->dropout),
        mask_(input_program(region, Attention::dropout_mask), 3, graph),
        seed_(input_program(region, Attention::dropout_seed)),
        offset_(input_program(region, Attention::dropout_offset)),
        philox_(philox_row()),
        select_(pointwise_row<T>(PointwiseMode::binary_select, f32)) {
    // bernoulli() compares (k + 0.5) 2^-23 with a float, for 23-bit k: exact.
    const auto keep = static_cast<double>(static_cast<float>(1.0 - probability_));
    keep_below_ = static_cast<std::uint32_t>(std::max(std::ceil(keep * 0x1p23 - 0.5), 0.0));
  }

  class Bound {
   public:
    Bound(const AttentionDropout& dropout, const KernelContext& context)
        : dropout_(&dropout),
          mask_(dropout.mask_.bind(context)),
          seed_(static_cast<std::uint64_t>(dropout.seed_.load(context, {}, 0))),
          offset_(static_cast<std::uint64_t>(dropout.offset_.load(context, {}, 0))) {}

    bool present() const { return dropout_->probability_ > 0.0; }
    // Keep mask of the columns of one tile from at = {b, h, i, j} on: nonzero where the weight is
    // kept (1 if drawn).
    void draw(const Coords& at, std::int64_t count, T* kept) const {
      if (mask_.present()) return mask_.load(at, count, kept);
      const AttentionShape& shape = dropout_->shape_;
      const std::int64_t position =
          ((at[0] * shape.heads + at[1]) * shape.queries + at[2]) * shape.keys + at[3];
      std::uint32_t bits[kKeyTile];
      dropout_->philox_(seed_, offset_, static_cast<std::uint64_t>(position), count, bits);
      for (std::int64_t j = 0; j < count; ++j)
        kept[j] = bits[j] >> 9 < dropout_->keep_below_ ? T{1} : T{0};
    }
    // row = row / (1 - probability) where kept, else 0 even for NaN.
    void apply(const T* kept, std::int64_t count, T* row) const {
      static constexpr T kZeros[kKeyTile] = {};
      const T factor = static_cast<T>(1.0 / (1.0 - dropout_->probability_));
      scale_row(factor, row, count, row);
      dropout_->select_({}, row, kZeros, kept, count, row);
    }

   private:
    const AttentionDropout* dropout_;
    typename RaggedRows<T>::Bound mask_;
    std::uint64_t seed_, offset_;
  };

 private:
  AttentionShape shape_;
  double probability_;
  RaggedRows<T> mask_;
  IntegerOperand seed_, offset_;
  PhiloxRow philox_;
  PointwiseRow<T> select_;
  std::uint32_t keep_below_ = 0;  // a weight is kept if its 23 bits are below this
};

}  // namespace ashlar::cpu

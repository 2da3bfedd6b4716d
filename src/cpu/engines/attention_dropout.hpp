// Dropout of attention weights: from a mask, or drawn from a Philox stream.
#pragma once

#include <cmath>

#include "base/dropout.hpp"
#include "cpu/engines/attention_shape.hpp"
#include "cpu/guarded_rows.hpp"
#include "cpu/integer_operand.hpp"
#include "cpu/kernels/philox.hpp"

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
        philox_(philox_row()) {
    // bernoulli() compares (k + 0.5) 2^-23 with a float, for the 23 bits k: all of it exact.
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
    // For columns (of one tile) of a row: 0, or 1 / (1 - probability).
    void factors(std::int64_t b, std::int64_t h, std::int64_t i, Columns columns,
                 T* destination) const {
      const T keep = static_cast<T>(1.0 / (1.0 - dropout_->probability_));
      decide(b, h, i, columns, keep, destination);
    }
    // 1 where the weight is kept, else 0.
    void kept(std::int64_t b, std::int64_t h, std::int64_t i, Columns columns,
              T* destination) const {
      decide(b, h, i, columns, T{1}, destination);
    }

   private:
    void decide(std::int64_t b, std::int64_t h, std::int64_t i, Columns columns, T keep,
                T* destination) const {
      const std::int64_t count = columns.size();
      if (mask_.present()) {
        mask_.load({b, h, i, columns.begin}, count, destination);
        for (std::int64_t j = 0; j < count; ++j)
          destination[j] = destination[j] != T{0} ? keep : T{0};
        return;
      }
      const AttentionShape& shape = dropout_->shape_;
      const std::int64_t position =
          ((b * shape.heads + h) * shape.queries + i) * shape.keys + columns.begin;
      std::uint32_t bits[kKeyTile];
      dropout_->philox_(seed_, offset_, static_cast<std::uint64_t>(position), count, bits);
      for (std::int64_t j = 0; j < count; ++j)
        destination[j] = bits[j] >> 9 < dropout_->keep_below_ ? keep : T{0};
    }

    const AttentionDropout* dropout_;
    typename GuardedRows<T>::Bound mask_;
    std::uint64_t seed_, offset_;
  };

 private:
  AttentionShape shape_;
  double probability_;
  GuardedRows<T> mask_;
  IntegerOperand seed_, offset_;
  PhiloxRow philox_;
  std::uint32_t keep_below_ = 0;  // a weight is kept when its 23 bits are below this
};

}  // namespace ashlar::cpu

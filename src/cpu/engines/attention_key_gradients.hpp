// Store of dk or dv rows: scaled and stored, or, for paged keys, buffered until all keys of a page
// are accumulated.
#pragma once

#include "cpu/engines/attention_backward_tiles.hpp"

namespace ashlar::cpu {

template <class T>
class KeyGradientRows {
 public:
  KeyGradientRows(const Region& region, const Graph& graph, int output, int container, int table,
                  std::initializer_list<int> descales, int scale, const AttentionShape& shape,
                  ScratchLayout& scratch_layout)
      : batch_(shape.batch),
        keys_(shape.keys),
        pages_(region, container, table),
        rows_(output_program(region.anchor->outputs, output), 3, graph),
        descale_(region, descales),
        scale_(region, {scale}) {
    const Dims& dims = region.anchor->inputs[static_cast<std::size_t>(container)].dims;
    blocks_ = dims[0], heads_ = dims[1], width_ = dims[3];
    if (!rows_.present() || !pages_.present()) return;
    const std::int64_t rows = checked_mul(checked_mul(batch_, heads_), keys_);
    reservation_ = scratch_layout.add(
        "gradients of keys",
        checked_mul(checked_mul(rows, width_), static_cast<std::int64_t>(sizeof(T))));
    row_reservation_ = scratch_layout.add("gradient of a page", checked_mul(width_, sizeof(T)));
  }
  bool present() const { return rows_.present(); }

  class Bound {
   public:
    // `factor`: remaining scale besides the descales; `which`: amax slot.
    Bound(const KeyGradientRows& owner, const KernelContext& context,
          const ScratchLayout& scratch_layout, T factor, int which,
          const typename AmaxOutputs<T, kBackwardAmaxCount>::Bound& largest)
        : owner_(&owner),
          context_(&context),
          largest_(&largest),
          which_(which),
          factor_(factor * owner.descale_.load(context)),
          scale_(owner.scale_.load(context)),
          rows_(owner.rows_.bind(context)) {
      if (owner.reservation_ < 0) return;
      kept_ = context.scratch<T>(scratch_layout, owner.reservation_);
      sum_ = context.scratch<T>(scratch_layout, owner.row_reservation_);
    }
    // Stores the row of key j; overwrites `row`.
    void store(std::int64_t b, std::int64_t head, std::int64_t j, T* row, int thread) const {
      if (kept_ != nullptr)
        std::copy_n(row, owner_->width_, kept_row(b, head, j));
      else
        finish({b, head, j, 0}, row, thread);
    }
    // Paged: every row of the container is the sum over the keys mapped to it.
    void gather() const {
      if (kept_ == nullptr) return;
      const std::int64_t size = owner_->pages_.page_size();
      for (std::int64_t block = 0; block < owner_->blocks_; ++block)
        for (std::int64_t head = 0; head < owner_->heads_; ++head)
          for (std::int64_t row = 0; row < size; ++row) {
            std::fill_n(sum_, owner_->width_, T{0});
            for (std::int64_t b = 0; b < owner_->batch_; ++b)
              for (std::int64_t j = row; j < owner_->keys_; j += size)
                if (owner_->pages_.block(*context_, b, j) == block)
                  row_ops<T>().fold_into(Fold::sum, Premap::identity, kept_row(b, head, j),
                                         owner_->width_, sum_);
            finish({block, head, row, 0}, sum_, 0);
          }
    }

   private:
    T* kept_row(std::int64_t b, std::int64_t head, std::int64_t j) const {
      return kept_ + ((b * owner_->heads_ + head) * owner_->keys_ + j) * owner_->width_;
    }
    void finish(const Coords& at, T* row, int thread) const {
      const std::int64_t width = owner_->width_;
      const RowOps<T>& ops = row_ops<T>();
      if (factor_ != T{1}) ops.multiply(row, {&factor_, false}, width, row);
      largest_->add(which_, thread, row, width);
      if (owner_->scale_.present()) ops.multiply(row, {&scale_, false}, width, row);
      rows_.store(at, width, row);
    }

    const KeyGradientRows* owner_;
    const KernelContext* context_;
    const typename AmaxOutputs<T, kBackwardAmaxCount>::Bound* largest_;
    int which_;
    T factor_, scale_;
    typename RaggedRows<T>::Bound rows_;
    T *kept_ = nullptr, *sum_ = nullptr;
  };

 private:
  std::int64_t batch_, keys_, blocks_, heads_, width_;
  PageTable pages_;
  RaggedRows<T> rows_;
  ScaleOperand<T> descale_, scale_;
  int reservation_ = -1, row_reservation_ = -1;
};

}  // namespace ashlar::cpu

// Turns q k^T into scores, row by row: scale, modifier, soft cap, bias, ALiBi.
#pragma once

#include <cmath>

#include "cpu/engines/attention_score_program.hpp"
#include "cpu/kernels/row_ops.hpp"

namespace ashlar::cpu {

// The product of one-element scale operands; absent ones count as 1.
template <class T>
class ScaleOperand {
 public:
  ScaleOperand() = default;
  ScaleOperand(const Region& region, std::initializer_list<int> slots) {
    for (int slot : slots) {
      const PointwiseProgram& program = input_program(region, slot);
      if (!program.empty()) programs_.push_back(RowProgram<T>(program, program.space.rank() - 1));
    }
  }
  bool present() const { return !programs_.empty(); }
  T load(const KernelContext& context) const {
    T product = 1;
    for (const RowProgram<T>& program : programs_)
      product *= load_one(program, true, context, T{1});
    return product;
  }

 private:
  std::vector<RowProgram<T>> programs_;
};

// ALiBi slope of a query head.
inline double alibi_slope(std::int64_t h, std::int64_t heads) {
  std::int64_t power = 1;
  while (power <= heads / 2) power *= 2;
  const auto steps = static_cast<double>(h < power ? 2 * (h + 1) : 2 * (h - power) + 1);
  return std::exp2(-4.0 * steps / static_cast<double>(power));
}

template <class T, class Attention>
class AttentionScores {
 public:
  AttentionScores(const Region& region, const AttentionShape& shape)
      : op_(*region.anchor_as<Attention>()),
        heads_(shape.heads),
        ops_(row_ops<T>()),
        given_scale_(region, {Attention::scale_tensor}),
        descale_(region, {Attention::descale_q, Attention::descale_k}),
        bias_(input_program(region, Attention::bias), shape.scores(), 3) {
    const PointwiseProgram modifier = modifier_program(*region.anchor, op_, shape.scores());
    modified_ = !modifier.empty();
    if (modified_) modifier_ = RowProgram<T>(modifier, 3);
    if constexpr (std::is_same_v<Attention, AttentionBackward>)
      if (modified_)
        gradient_ =
            RowProgram<T>(modifier_gradient_program(*region.anchor, op_, shape.scores()), 3);
  }

  class Bound {
   public:
    Bound(const AttentionScores& scores, const KernelContext& context)
        : scores_(&scores),
          scale_(scores.given_scale_.present() ? scores.given_scale_.load(context)
                                               : static_cast<T>(scores.op_.scale.value_or(1.0))),
          qk_scale_(scale_ * scores.descale_.load(context)),
          bias_(scores.bias_.bind(context)) {
      if (!scores.modified_) return;
      modifier_ = scores.modifier_.bind(context);
      if constexpr (std::is_same_v<Attention, AttentionBackward>)
        gradient_ = scores.gradient_.bind(context);
    }

    T scale() const { return scale_; }  // without fp8 descales
    bool modified() const { return scores_->modified_; }
    // Whether scores are q k^T * qk_scale() and nothing else.
    bool plain() const { return !modified() && !bias_.present() && !scores_->op_.alibi; }
    T qk_scale() const { return qk_scale_; }

    // Turns q k^T into scores, for `count` columns of one tile from at = {b, h, i, j} on.
    void apply(const Coords& at, std::int64_t count, T* row) const {
      scores_->ops_.multiply(row, {&qk_scale_, false}, count, row);
      finish(at, count, row);
    }
    // The same; `scaled` receives the input of the modifier.
    void apply(const Coords& at, std::int64_t count, T* row, T* scaled) const {
      scores_->ops_.multiply(row, {&qk_scale_, false}, count, row);
      std::copy_n(row, count, scaled);
      finish(at, count, row);
    }
    // Turns gradients of scores into gradients of scaled q k^T.
    void apply_gradient(const Coords& at, std::int64_t count, const T* scaled, T* gradients) const {
      if (modified()) gradient_.apply(at.data(), count, {gradients, scaled}, gradients);
    }

   private:
    void finish(const Coords& at, std::int64_t count, T* row) const {
      static constexpr T kOne = 1, kZero = 0;
      if (modified()) modifier_.apply(at.data(), count, {row}, row);
      if (bias_.present()) {
        alignas(64) T buffer[kKeyTile];
        const RowArg<T> bias = bias_.load(at, count, buffer, &kZero);
        scores_->ops_.normalise(row, {&kZero, false}, {&kOne, false}, {&kOne, false}, bias, count,
                                row);
      }
      if (scores_->op_.alibi) {
        alignas(64) T distances[kKeyTile];
        for (std::int64_t j = 0; j < count; ++j) distances[j] = static_cast<T>(at[3] + j - at[2]);
        scores_->ops_.axpy(static_cast<T>(alibi_slope(at[1], scores_->heads_)), distances, count,
                           row);
      }
    }

    const AttentionScores* scores_;
    T scale_, qk_scale_;
    typename Operand<T>::Bound bias_;
    typename RowProgram<T>::Bound modifier_, gradient_;
  };

 private:
  Attention op_;
  std::int64_t heads_;
  const RowOps<T>& ops_;
  ScaleOperand<T> given_scale_, descale_;
  Operand<T> bias_;
  bool modified_ = false;
  RowProgram<T> modifier_, gradient_;
};

}  // namespace ashlar::cpu

// Shared state of attention forward and backward: shape, mask, scores, dropout, keys and values.
#pragma once

#include "cpu/engines/attention_dropout.hpp"
#include "cpu/engines/attention_fp8.hpp"
#include "cpu/engines/attention_mask.hpp"
#include "cpu/engines/attention_rows.hpp"
#include "cpu/engines/attention_scores.hpp"
#include "cpu/threads.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

template <class T, class Attention>
struct AttentionProblem {
  AttentionShape shape;
  AttentionMask<T, Attention> mask;
  AttentionScores<T, Attention> scores;
  AttentionDropout<T, Attention> dropout;
  KeyRows<T> k, v;
  RaggedRows<T> rng_dump;

  AttentionProblem(const Graph& graph, const Region& region)
      : shape(*region.anchor, *region.anchor_as<Attention>()),
        mask(region, shape),
        scores(region, shape),
        dropout(graph, region, shape),
        k(graph, region, Attention::k, Attention::page_table_k),
        v(graph, region, Attention::v, Attention::page_table_v),
        rng_dump(output_program(region.anchor->outputs, Attention::rng_dump), 3, graph) {}

  struct Bound {
    typename AttentionMask<T, Attention>::Bound mask;
    typename AttentionScores<T, Attention>::Bound scores;
    typename AttentionDropout<T, Attention>::Bound dropout;
    typename KeyRows<T>::Bound k, v;

    Bound(const AttentionProblem& problem, const KernelContext& context)
        : mask(problem.mask, context),
          scores(problem.scores, context),
          dropout(problem.dropout, context),
          k(problem.k, context),
          v(problem.v, context) {}
  };

  // Writes the drawn dropout mask, including masked positions.
  void dump_rng(const Bound& bound, const KernelContext& context) const {
    if (!rng_dump.present()) return;
    const auto dump = rng_dump.bind(context);
    parallel_for(shape.batch * shape.heads * shape.queries, kKeyTile,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t row = begin; row < end; ++row) {
                     const std::int64_t i = row % shape.queries,
                                        h = row / shape.queries % shape.heads,
                                        b = row / shape.queries / shape.heads;
                     for (std::int64_t first = 0; first < shape.keys; first += kKeyTile) {
                       const std::int64_t count = std::min(kKeyTile, shape.keys - first);
                       T kept[kKeyTile];
                       bound.dropout.draw({b, h, i, first}, count, kept);
                       dump.store({b, h, i, first}, count, kept);
                     }
                   }
                 });
  }
};

// Operands that neither engine supports.
template <class Attention>
Support supports_operands(const Region& region) {
  const auto ragged = [&](int slot) {
    const auto index = static_cast<std::size_t>(slot);
    return index < region.anchor->inputs.size() &&
           region.anchor->inputs[index].ragged_offset != kNoTensor;
  };
  for (int slot : {Attention::bias, Attention::block_mask, Attention::score_input0,
                   Attention::score_input1, Attention::score_input2, Attention::score_input3})
    if (ragged(slot)) return Support::no("a bias, block mask or score input is ragged");
  return Support::yes();
}

}  // namespace ashlar::cpu

// The non-GEMM steps of tiled attention, on tiles in cache: online softmax, score gradients,
// packing.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// One online-softmax step: rows of queries against `count` more keys.
template <class T>
struct SoftmaxStep {
  std::int64_t rows;  // at most kMaxSoftmaxRows
  T* products;        // in: q k; out: exp(scale * product - largest)
  std::int64_t product_row, count;
  T scale;  // positive
  // per row: running maximum of the scores and sum of their exponentials; updated
  T *largest, *sum;
  T* output;                // output accumulators, rescaled to the new maximum
  std::int64_t output_row;  // row length and stride: whole vectors
};
inline constexpr std::int64_t kMaxSoftmaxRows = 16;

// Backward step of a panel of queries against rows of keys: element i of a row belongs to query i.
template <class T>
struct GradientPanel {
  T* weights;                  // in: q k; out: p = exp(scale * product - stats)
  T* gradients;                // in: do v; out: p (gradient - delta)
  std::int64_t rows, columns;  // columns: whole vectors; rows are contiguous
  T scale;
  const T *stats, *delta;  // per query
  // Queries attend to keys [first_key, end_key): both outputs are 0 elsewhere. Null: no mask.
  const T *first_key, *end_key;
  T key;  // key index of the first row
};

// Dot products of a few query rows with key rows `key_row` apart.
template <class T>
struct KeyDots {
  const T* queries;
  std::int64_t rows, query_row;
  const T* keys;
  std::int64_t count, key_row, width;
  T* products;
  std::int64_t product_row;
};

template <class T>
struct AttentionTileOps {
  // Packs `rows` rows into panels of `columns` elements (whole vectors), each `rows` deep.
  void (*to_panels)(const T* source, std::int64_t source_row, std::int64_t rows,
                    std::int64_t panels, std::int64_t columns, T* destination);
  // Whether all elements are finite; `columns` is a multiple of the vector length.
  bool (*finite)(const T* rows, std::int64_t row, std::int64_t count, std::int64_t columns);
  // Returns false and changes nothing if a product is not finite or a maximum is NaN.
  bool (*softmax_step)(const SoftmaxStep<T>& rows);
  void (*gradient)(const GradientPanel<T>& panel);
  void (*dots)(const KeyDots<T>& dots);
};

// The table for this CPU.
template <class T>
const AttentionTileOps<T>& attention_tile_ops();

}  // namespace ashlar::cpu

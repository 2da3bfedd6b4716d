// What attention does between its products, on tiles that lie in cache.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// Rows of queries meet `count` more keys.
template <class T>
struct SoftmaxStep {
  std::int64_t rows;  // at most kMaxWeighedRows
  T* products;        // q k; become exp(scale * product - largest)
  std::int64_t product_row, count;
  T scale;           // above 0
  T *largest, *sum;  // per row, of the scores so far and of their exponentials; brought up to date
  T* output;         // weighted values so far, brought to the new largest
  std::int64_t output_row;  // whole vectors; as many elements as a row has
};
inline constexpr std::int64_t kMaxWeighedRows = 16;

// A panel of queries meets rows of keys, for gradients: element i of a row belongs to query i.
template <class T>
struct GradientPanel {
  T* weights;                  // q k; become p = exp(scale * product - stats)
  T* gradients;                // do v; become p (gradient - delta)
  std::int64_t rows, columns;  // whole vectors; rows lie one after another
  T scale;
  const T *stats, *delta;  // per query
  // Queries see keys [first_key, end_key): both become 0 elsewhere. Null: all are seen.
  const T *first_key, *end_key;
  T key;  // of the first row
};

// Products of a few rows of queries with rows of keys that lie `key_row` apart.
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
  // `rows` rows to panels of `columns` elements, whole vectors, that are `rows` deep.
  void (*to_panels)(const T* source, std::int64_t source_row, std::int64_t rows,
                    std::int64_t panels, std::int64_t columns, T* destination);
  // Whether all of rows of `columns` elements, whole vectors, are numbers below infinity.
  bool (*finite)(const T* rows, std::int64_t row, std::int64_t count, std::int64_t columns);
  // False, and nothing is done, where a product is no finite number or a largest is NaN.
  bool (*softmax_step)(const SoftmaxStep<T>& rows);
  void (*gradient)(const GradientPanel<T>& panel);
  void (*dots)(const KeyDots<T>& dots);
};

// The table for this processor.
template <class T>
const AttentionTileOps<T>& attention_tile_ops();

}  // namespace ashlar::cpu

// Which keys a query row of attention sees, by lengths and diagonal bounds, and which blocks of
// keys a tile of rows visits. print_attention_mask() prints kBottomRight, kHasLeftBound,
// kHasRightBound, kHas_seq_len_q, kHas_seq_len_kv, seq_len_q() and seq_len_kv(), and adds
// args.queries, keys, left_bound and right_bound, all below 2^29.
#pragma once

#include "lib/integers.cuh"

// Blocks of keys from `begin` to `end`. Those from `whole_begin` to `whole_end` are seen by all
// rows of the tile; the others need a mask.
struct KeyBlocks {
  int begin, whole_begin, whole_end, end;
};

// Blocks of rows from `begin` to `end` that see some key of a block.
struct QueryBlocks {
  int begin, end;
};

// Row i of a batch sees the keys from begin(i) to end(i), which may be an empty range.
struct RowMask {
  int rows, keys;  // lengths
  int left, right;  // keys relative to the row where the range begins and ends

  __device__ RowMask(const Args& args, int b) {
    rows = (int)args.queries;
    keys = (int)args.keys;
    if constexpr (kHas_seq_len_q) rows = within(seq_len_q(args, {(Index)b, 0, 0, 0}), rows);
    if constexpr (kHas_seq_len_kv) keys = within(seq_len_kv(args, {(Index)b, 0, 0, 0}), keys);
    const int shift = kBottomRight ? keys - rows : 0;
    left = shift - (int)args.left_bound + 1;
    right = shift + (int)args.right_bound + 1;
  }
  __device__ int begin(int row) const { return kHasLeftBound ? max(row + left, 0) : 0; }
  __device__ int end(int row) const { return kHasRightBound ? min(row + right, keys) : keys; }
  __device__ bool sees(int row, int key) const { return key >= begin(row) && key < end(row); }

  // The rows that see a key: from first_row(key) to end_row(key), which may be an empty range.
  __device__ int first_row(int key) const { return kHasRightBound ? max(key - right + 1, 0) : 0; }
  __device__ int end_row(int key) const {
    return key >= keys ? 0 : kHasLeftBound ? min(key - left + 1, rows) : rows;
  }

  // For the rows from `first` on, at most kRows. Rows past the length do not count: their results
  // do not depend on keys.
  template <int kRows, int kKeys>
  __device__ KeyBlocks blocks(int first) const {
    const int last = min(first + kRows, rows) - 1;
    KeyBlocks result = {0, 0, 0, 0};
    if (last < first || end(last) <= begin(first)) return result;
    result.end = (end(last) + kKeys - 1) / kKeys;
    if constexpr (kHasLeftBound) {
      result.begin = begin(first) / kKeys;
      result.whole_begin = min((begin(last) + kKeys - 1) / kKeys, result.end);
    }
    result.whole_end = max(max(end(first), 0) / kKeys, result.whole_begin);
    return result;
  }
  // For the keys from `first` on, at most kKeys.
  template <int kRows, int kKeys>
  __device__ QueryBlocks query_blocks(int first) const {
    const int last = min(first + kKeys, keys) - 1;
    if (last < first || end_row(last) <= first_row(first)) return {0, 0};
    return {first_row(first) / kRows, (end_row(last) + kRows - 1) / kRows};
  }
  // Whether some row of a block, the rows past the length aside, does not see some key of a block.
  template <int kRows, int kKeys>
  __device__ bool hides(int row, int key) const {
    return key + kKeys > keys || row < first_row(key + kKeys - 1) ||
           (kHasLeftBound && row + kRows > end_row(key));
  }

 private:
  __device__ static int within(int64 length, int extent) {
    return length < 0 ? 0 : length > extent ? extent : (int)length;
  }
};

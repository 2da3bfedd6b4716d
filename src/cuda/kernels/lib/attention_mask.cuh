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

 private:
  __device__ static int within(int64 length, int extent) {
    return length < 0 ? 0 : length > extent ? extent : (int)length;
  }
};

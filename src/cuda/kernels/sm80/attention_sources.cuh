// Where the rows of Q, K and V of a CTA are: with strides, ragged, or in pages (sm_80 attention).
#pragma once

#include "lib/divide.cuh"
#include "lib/elements.cuh"

// The tile of a CTA. Heads are taken in sections (blockIdx.z) whose keys and values fit L2
// together; within a section the last rows, which see most keys under a causal mask, begin first.
struct TilePosition {
  int batch, head, row;
  __device__ explicit TilePosition(const Args& args) {
    const int index = (int)(blockIdx.z * gridDim.x + blockIdx.x);
    batch = divide(index, args.magic_heads, 0);
    head = index - batch * (int)args.heads;
    row = first_row();
  }
  // Cheap: not worth a register.
  __device__ static int first_row() { return (int)(gridDim.y - 1 - blockIdx.y) * kBlockM; }
  __device__ bool exists(const Args& args) const { return batch < (int)args.batches; }
};

// The rows of one head in memory; strides in elements. `step`: between rows that a thread copies.
struct RowSource {
  static const bool kIsPaged = false, kHasGaps = false;
  const uint16* data;
  int row, element;
  int64 step;
  __device__ static RowSource make(const Args&, const uint16* head, int batch, int64 outer, int row,
                                   int element, int64 step) {
    return {head + batch * outer, row, element, step};
  }
  __device__ bool has(int) const { return true; }
  __device__ const uint16* at(int index) const { return data + (int64)index * row; }
};
// The same of a ragged tensor: Starts::of() is the first element of a batch. Rows that would be
// behind the last element of the batch read as zeros.
template <class Starts>
struct RaggedSource {
  static const bool kIsPaged = false, kHasGaps = true;
  const uint16* data;
  int row, element, rows;
  __device__ static RaggedSource make(const Args& args, const uint16* head, int batch, int64,
                                      int row, int element, int64) {
    const int64 first = Starts::of(args, batch), next = Starts::of(args, batch + 1);
    const int64 elements = next - first - (head - Starts::base(args)) - Starts::kLength;
    const bool has_rows = elements >= 0 && row > 0;
    return {head + first, row, element, has_rows ? (int)(elements / row) + 1 : elements >= 0};
  }
  __device__ bool has(int) const { return true; }
  // Null where there is no row.
  __device__ const uint16* at(int index) const {
    return index < rows ? data + (int64)index * row : nullptr;
  }
};
#define STARTS(Name, x, length)                                                                   \
  struct Name {                                                                                   \
    static const int kLength = length;                                                            \
    __device__ static int64 of(const Args& args, int batch) { return start_of_##x(args, batch); } \
    __device__ static const uint16* base(const Args& args) { return (const uint16*)args.x; }      \
  };
STARTS(QueryStarts, q, kHeadDim)
STARTS(KeyStarts, k, kHeadDim)
STARTS(ValueStarts, v, kValueDim)

// The same in pages: Pages::number() is that of a page of the batch, Pages::size() its rows.
template <class Pages>
struct PagedSource {
  static const bool kIsPaged = true, kHasGaps = true;
  const Args& args;
  const uint16* data;  // of page 0
  int batch, row, element;
  int64 page;
  __device__ static PagedSource make(const Args& args, const uint16* head, int batch, int64 outer,
                                     int row, int element, int64) {
    return {args, head, batch, row, element, outer};
  }
  __device__ bool has(int index) const { return at(index) != nullptr; }
  // Null where there is no page.
  __device__ const uint16* at(int index) const {
    const int size = Pages::size(args), of_batch = index / size;
    const int64 number = Pages::number(args, batch, of_batch);
    if (number < 0 || number >= Pages::count(args)) return nullptr;
    return data + number * page + (int64)(index - of_batch * size) * row;
  }
};
#define PAGES(Name, x)                                                                     \
  struct Name {                                                                            \
    __device__ static int size(const Args& args) { return (int)args.x##_page; }            \
    __device__ static int64 count(const Args& args) { return args.x##_pages; }             \
    __device__ static int64 number(const Args& args, int batch, int index) {               \
      return page_table_##x(args, {(Index)batch, 0, (Index)index, 0});                     \
    }                                                                                      \
  };
PAGES(KeyPages, k)
PAGES(ValuePages, v)
struct NoPages {};
// At most one of both: containers of pages are not ragged.
template <bool kIsPaged, bool kIsRagged, class Pages, class Starts> struct SourceOf {
  typedef RowSource Type;
};
template <class Pages, class Starts> struct SourceOf<true, false, Pages, Starts> {
  typedef PagedSource<Pages> Type;
};
template <class Pages, class Starts> struct SourceOf<false, true, Pages, Starts> {
  typedef RaggedSource<Starts> Type;
};
typedef SourceOf<false, kIsRagged_q != 0, NoPages, QueryStarts>::Type QuerySource;
typedef SourceOf<kHas_page_table_k != 0, kIsRagged_k != 0, KeyPages, KeyStarts>::Type KeySource;
typedef SourceOf<kHas_page_table_v != 0, kIsRagged_v != 0, ValuePages, ValueStarts>::Type
    ValueSource;

// Whether copies of kAccess bytes are aligned: batches of ragged tensors begin anywhere.
__device__ inline bool is_aligned(const Args& args, const TilePosition& position) {
  int64 starts = 0;
  if constexpr (kIsRagged_q) starts |= start_of_q(args, position.batch);
  if constexpr (kIsRagged_k) starts |= start_of_k(args, position.batch);
  if constexpr (kIsRagged_v) starts |= start_of_v(args, position.batch);
  return starts % (kAccess / 2) == 0;
}

#define HEAD_SOURCE(Source, name, of_head)                                                        \
  Source::make(args, (const uint16*)args.name + (of_head) * args.name##_head, position.batch,     \
               args.name##_batch, (int)args.name##_row, (int)args.name##_element, args.name##_step)
__device__ inline QuerySource query_rows(const Args& args, const TilePosition& position) {
  return HEAD_SOURCE(QuerySource, q, position.head);
}
__device__ inline KeySource key_rows(const Args& args, const TilePosition& position) {
  return HEAD_SOURCE(KeySource, k, divide(position.head, args.magic_group_k, 0));
}
__device__ inline ValueSource value_rows(const Args& args, const TilePosition& position) {
  return HEAD_SOURCE(ValueSource, v, divide(position.head, args.magic_group_v, 0));
}

// Tiles of weights and of gradients of scores, computed anew from operands that were packed once.
#pragma once

#include "cpu/engines/attention_problem.hpp"
#include "cpu/kernels/tile_product.hpp"

namespace ashlar::cpu {
template <class T>
void transpose_tile(const T* source, std::int64_t row_length, std::int64_t count,
                    std::int64_t width, T* destination) {
  constexpr std::int64_t kBlock = 16;  // a cache line of either side
  for (std::int64_t r0 = 0; r0 < kKeyTile; r0 += kBlock)
    for (std::int64_t d = 0; d < width; ++d)
      for (std::int64_t r = r0; r < r0 + kBlock; ++r)
        destination[d * kKeyTile + r] = r < count ? source[r * row_length + d] : T{0};
}

inline constexpr std::int64_t kQueryTile = 60;  // a multiple of the product's 6 rows

// What leaves the tiles: see AttentionBackward.
enum BackwardLargest { kAmaxDq, kAmaxDk, kAmaxDv, kAmaxDp, kBackwardLargest };

template <class T>
class BackwardTiles {
  using In = AttentionBackward::In;
  using Out = AttentionBackward::Out;

 public:
  BackwardTiles(const Region& region, const Graph& graph, ScratchBook& book, std::int64_t threads)
      : problem(graph, region),
        ops(row_ops<T>()),
        product(tile_product<T>()),
        d(padded_to_tile<T>(problem.shape.head_dim)),
        dv(padded_to_tile<T>(problem.shape.value_dim)),
        threads_(threads),
        largest_(region, graph, {Out::amax_dq, Out::amax_dk, Out::amax_dv, Out::amax_dp}, book,
                 threads),
        scales_first_(is_fp8(region.anchor->inputs[In::d_o].dtype)),
        p_rounding_(region.anchor->inputs[In::q].dtype),
        ds_rounding_(region.anchor->inputs[scales_first_ ? In::d_o : In::q].dtype),
        p_scale_(region, {In::scale_s}),
        ds_scale_(region, {In::scale_dp}),
        dp_descale_(region, {In::descale_do, In::descale_v}),
        delta_descale_(region, {In::descale_do, In::descale_o}),
        q_(input_program(region, In::q), 3, graph),
        o_(input_program(region, In::o), 3, graph),
        d_o_(input_program(region, In::d_o), 3, graph),
        stats_(input_program(region, In::stats), 3, graph) {
    const AttentionShape& shape = problem.shape;
    const auto add = [&](const char* name, std::int64_t elements) {
      return book.add(name, checked_mul(elements, static_cast<std::int64_t>(sizeof(T))));
    };
    const std::int64_t query_rows =
        checked_mul(checked_mul(shape.batch, shape.heads), shape.queries);
    const std::int64_t key_rows = checked_mul(shape.batch, shape.key_tiles() * kKeyTile);
    packed_q_ = add("packed q", checked_mul(query_rows, d));
    packed_do_ = add("packed do", checked_mul(query_rows, dv));
    packed_k_ = add("packed k", checked_mul(checked_mul(key_rows, shape.k_heads), d));
    packed_kt_ =
        add("transposed k", checked_mul(checked_mul(key_rows, shape.k_heads), shape.head_dim));
    packed_vt_ =
        add("transposed v", checked_mul(checked_mul(key_rows, shape.v_heads), shape.value_dim));
    row_stats_ = add("stats", query_rows);
    row_delta_ = add("delta", query_rows);
    thread_elements_ = 2 * kQueryTile * kKeyTile + kKeyTile * (d + dv) + kQueryTile * (d + dv);
    per_thread_ = add("tiles", checked_mul(threads_, thread_elements_));
  }

  AttentionProblem<T, AttentionBackward> problem;
  const RowOps<T>& ops;
  TileProduct<T> product;
  std::int64_t d, dv;  // head dims padded for the product

  // A tile of queries of one head, and a tile of keys.
  struct Place {
    std::int64_t b, h, first_row, rows, key_tile;
    AttentionBatch batch;
  };
  // Buffers of one thread.
  struct Buffers {
    T *p, *ds;           // [kQueryTile x kKeyTile]
    T *d_k, *d_v;        // [kKeyTile x d], [kKeyTile x dv]
    T *query, *staging;  // [kQueryTile x d], [kQueryTile x dv]
  };

  class Bound {
   public:
    const BackwardTiles& tiles;
    const AttentionShape& shape;
    const RowOps<T>& ops;
    typename AttentionProblem<T, AttentionBackward>::Bound problem;
    typename LargestOutputs<T, kBackwardLargest>::Bound largest;
    T *packed_q, *packed_do, *packed_k, *row_stats, *row_delta;

    Bound(const BackwardTiles& owner, const KernelContext& context, const ScratchBook& book)
        : tiles(owner),
          shape(owner.problem.shape),
          ops(owner.ops),
          problem(owner.problem, context),
          largest(owner.largest_, context, book),
          p_scale_(owner.p_scale_.load(context)),
          ds_scale_(owner.ds_scale_.load(context)),
          dp_descale_(owner.dp_descale_.load(context)),
          delta_descale_(owner.delta_descale_.load(context)),
          q_(owner.q_.bind(context)),
          o_(owner.o_.bind(context)),
          d_o_(owner.d_o_.bind(context)),
          stats_(owner.stats_.bind(context)) {
      const auto scratch = [&](int booking) { return context.scratch<T>(book, booking); };
      packed_q = scratch(owner.packed_q_), packed_do = scratch(owner.packed_do_);
      packed_k = scratch(owner.packed_k_), packed_kt_ = scratch(owner.packed_kt_);
      packed_vt_ = scratch(owner.packed_vt_), buffers_ = scratch(owner.per_thread_);
      row_stats = scratch(owner.row_stats_), row_delta = scratch(owner.row_delta_);
    }

    Buffers buffers_of(int thread) const {
      Buffers t;
      t.p = buffers_ + thread * tiles.thread_elements_;
      t.ds = t.p + kQueryTile * kKeyTile;
      t.d_k = t.ds + kQueryTile * kKeyTile;
      t.d_v = t.d_k + kKeyTile * tiles.d;
      t.query = t.d_v + kKeyTile * tiles.dv;
      t.staging = t.query + kQueryTile * tiles.d;
      return t;
    }
    std::int64_t row_position(std::int64_t b, std::int64_t h, std::int64_t i) const {
      return (b * shape.heads + h) * shape.queries + i;
    }
    std::int64_t tile_position(std::int64_t b, std::int64_t heads, std::int64_t head,
                               std::int64_t tile) const {
      return ((b * heads + head) * shape.key_tiles() + tile) * kKeyTile;
    }
    const T* k_rows(const Place& at) const {
      return packed_k +
             tile_position(at.b, shape.k_heads, shape.k_head_of(at.h), at.key_tile) * tiles.d;
    }
    std::int64_t query_tiles() const { return (shape.queries + kQueryTile - 1) / kQueryTile; }

    // Calls body(item, thread) for all items, no more threads than have buffers.
    template <class Body>
    void over(std::int64_t count, const Body& body) const {
      parallel_for(count, (count + tiles.threads_ - 1) / tiles.threads_,
                   [&](std::int64_t begin, std::int64_t end, int thread) {
                     for (std::int64_t i = begin; i < end; ++i) body(i, thread);
                   });
    }

    void pack() const {
      const std::int64_t key_tiles = shape.key_tiles();
      over(shape.batch * shape.k_heads * key_tiles, [&](std::int64_t at, int) {
        const std::int64_t tile = at % key_tiles, head = at / key_tiles % shape.k_heads,
                           b = at / key_tiles / shape.k_heads;
        const std::int64_t position = tile_position(b, shape.k_heads, head, tile);
        T* k_rows = packed_k + position * tiles.d;
        const std::int64_t rows =
            load_keys(problem.k, b, head, tile, shape.head_dim, tiles.d, k_rows);
        transpose_tile(k_rows, tiles.d, rows, shape.head_dim,
                       packed_kt_ + position * shape.head_dim);
      });
      over(shape.batch * shape.v_heads * key_tiles, [&](std::int64_t at, int thread) {
        const std::int64_t tile = at % key_tiles, head = at / key_tiles % shape.v_heads,
                           b = at / key_tiles / shape.v_heads;
        T* v_rows = buffers_of(thread).d_v;
        const std::int64_t rows =
            load_keys(problem.v, b, head, tile, shape.value_dim, tiles.dv, v_rows);
        transpose_tile(v_rows, tiles.dv, rows, shape.value_dim,
                       packed_vt_ + tile_position(b, shape.v_heads, head, tile) * shape.value_dim);
      });
      over(shape.batch * shape.heads * query_tiles(), [&](std::int64_t at, int thread) {
        pack_queries(at / query_tiles() / shape.heads, at / query_tiles() % shape.heads,
                     at % query_tiles() * kQueryTile, buffers_of(thread).staging);
      });
    }

    // What row r of a tile sees; nothing where its gradients are 0.
    Columns seen_by(const Place& at, std::int64_t r) const {
      if (row_stats[row_position(at.b, at.h, at.first_row + r)] ==
          -std::numeric_limits<T>::infinity())
        return {};
      return problem.mask.columns(at.batch, at.first_row + r).within(columns_of(at));
    }
    Columns columns_of(const Place& at) const {
      return {at.key_tile * kKeyTile, std::min((at.key_tile + 1) * kKeyTile, shape.keys)};
    }
    bool hidden(const Place& at) const {
      const Columns columns =
          problem.mask.columns(at.batch, at.first_row, at.rows).within(columns_of(at));
      return columns.empty() || problem.mask.hides(at.b, at.h, at.first_row, at.rows, columns);
    }

    // Fills buffers.ds with the gradients of the scores as the softmax sees them; 0 where a row
    // does not see.
    void score_gradients(const Place& at, const Buffers& t) const { fill<false>(at, t, 0); }
    // Fills buffers.p and buffers.ds with the factors of the last products. Returns whether some
    // row does not see all of the tile.
    bool factors(const Place& at, const Buffers& t, int thread) const {
      return fill<true>(at, t, thread);
    }
    // What factors() leaves to the last products.
    T p_factor() const { return tiles.p_rounding_.present() ? T{1} : p_scale_; }
    T ds_factor() const {
      return (tiles.scales_first_ ? T{1} : problem.scores.scale()) *
             (tiles.ds_rounding_.present() ? T{1} : ds_scale_);
    }

   private:
    template <class Rows>
    std::int64_t load_keys(const Rows& keys, std::int64_t b, std::int64_t head, std::int64_t tile,
                           std::int64_t width, std::int64_t row_length, T* rows) const {
      const std::int64_t count = std::min(kKeyTile, shape.keys - tile * kKeyTile);
      load_rows<T>(keys, b, head, tile * kKeyTile, count, problem.mask.batch(b).keys, width,
                   row_length, rows);
      return count;
    }
    void pack_queries(std::int64_t b, std::int64_t h, std::int64_t first, T* results) const {
      const std::int64_t rows = std::min(kQueryTile, shape.queries - first), dv = tiles.dv;
      const std::int64_t position = row_position(b, h, first);
      const std::int64_t length = problem.mask.batch(b).queries;
      T* gradients = packed_do + position * dv;
      load_rows<T>(q_, b, h, first, rows, length, shape.head_dim, tiles.d,
                   packed_q + position * tiles.d);
      load_rows<T>(d_o_, b, h, first, rows, length, shape.value_dim, dv, gradients);
      load_rows<T>(o_, b, h, first, rows, length, shape.value_dim, dv, results);
      for (std::int64_t r = 0; r < rows; ++r) {
        row_delta[position + r] =
            delta_descale_ * ops.dot(gradients + r * dv, results + r * dv, shape.value_dim);
        row_stats[position + r] = -std::numeric_limits<T>::infinity();
        if (first + r < length) stats_.load({b, h, first + r, 0}, 1, row_stats + position + r);
      }
    }

    template <bool kAsFactors>
    bool fill(const Place& at, const Buffers& t, int thread) const {
      const std::int64_t position = row_position(at.b, at.h, at.first_row);
      tiles.product(
          {at.rows, kKeyTile, shape.head_dim, packed_q + position * tiles.d, tiles.d, 1,
           packed_kt_ + tile_position(at.b, shape.k_heads, shape.k_head_of(at.h), at.key_tile) *
                            shape.head_dim,
           kKeyTile, t.p, kKeyTile, false});
      tiles.product(
          {at.rows, kKeyTile, shape.value_dim, packed_do + position * tiles.dv, tiles.dv, 1,
           packed_vt_ + tile_position(at.b, shape.v_heads, shape.v_head_of(at.h), at.key_tile) *
                            shape.value_dim,
           kKeyTile, t.ds, kKeyTile, false});
      bool partly_seen = problem.mask.has_holes();
      for (std::int64_t r = 0; r < at.rows; ++r) {
        const Columns seen = seen_by(at, r);
        partly_seen |= seen.size() < columns_of(at).size();
        const std::int64_t before = seen.empty() ? kKeyTile : seen.begin - at.key_tile * kKeyTile;
        const std::int64_t length = seen.empty() ? 0 : seen.size();
        T* p_row = t.p + r * kKeyTile;
        T* ds_row = t.ds + r * kKeyTile;
        if (length > 0)
          fill_row<kAsFactors>({at.b, at.h, at.first_row + r, seen.begin}, seen, position + r,
                               p_row + before, ds_row + before, thread);
        for (T* row : {p_row, ds_row}) {
          std::fill(row, row + before, T{0});
          std::fill(row + before + length, row + kKeyTile, T{0});
        }
      }
      return partly_seen;
    }

    template <bool kAsFactors>
    void fill_row(const Coords& at, Columns seen, std::int64_t position, T* p, T* ds,
                  int thread) const {
      static constexpr T kZero = 0;
      const std::int64_t count = seen.size();
      alignas(64) T scaled[kKeyTile];
      if (problem.scores.modified())
        problem.scores.apply(at, count, p, scaled);
      else
        problem.scores.apply(at, count, p);
      ops.exp_shifted(p, {row_stats + position, false}, count, p);
      if (tiles.dp_descale_.present()) ops.multiply(ds, {&dp_descale_, false}, count, ds);
      alignas(64) T kept[kKeyTile];
      if (problem.dropout.present()) {
        problem.dropout.draw(at, count, kept);
        problem.dropout.apply(kept, count, ds);
      }
      ops.gradient(ds, p, {row_delta + position, false}, {&kZero, false}, {p, true}, count, ds);
      if (kAsFactors) {
        problem.scores.apply_gradient(at, count, scaled, ds);
        if (problem.dropout.present()) problem.dropout.apply(kept, count, p);
        problem.mask.overwrite_holes(at[0], at[1], at[2], seen, T{0}, p);
      }
      problem.mask.overwrite_holes(at[0], at[1], at[2], seen, T{0}, ds);
      if (kAsFactors) narrow(count, p, ds, scaled, thread);
    }
    // fp8: factors as their types hold them.
    void narrow(std::int64_t count, T* p, T* ds, T* buffer, int thread) const {
      const T scale = problem.scores.scale();
      if (tiles.scales_first_) ops.multiply(ds, {&scale, false}, count, ds);
      if (largest.wanted(kAmaxDp)) {
        const T* scaled = ds;
        if (!tiles.scales_first_) {
          ops.multiply(ds, {&scale, false}, count, buffer);
          scaled = buffer;
        }
        largest.add(kAmaxDp, thread, scaled, count);
      }
      if (tiles.ds_rounding_.present()) {
        ops.multiply(ds, {&ds_scale_, false}, count, ds);
        tiles.ds_rounding_.apply(count, ds);
      }
      if (tiles.p_rounding_.present()) {
        ops.multiply(p, {&p_scale_, false}, count, p);
        tiles.p_rounding_.apply(count, p);
      }
    }

    T p_scale_, ds_scale_, dp_descale_, delta_descale_;
    typename GuardedRows<T>::Bound q_, o_, d_o_, stats_;
    T *packed_kt_, *packed_vt_, *buffers_;
  };

 private:
  std::int64_t threads_, thread_elements_;
  LargestOutputs<T, kBackwardLargest> largest_;
  bool scales_first_;  // fp8: the scale belongs to what is rounded
  Fp8Rounding<T> p_rounding_, ds_rounding_;
  FactorOperand<T> p_scale_, ds_scale_, dp_descale_, delta_descale_;
  int packed_q_, packed_do_, packed_k_, packed_kt_, packed_vt_, row_stats_, row_delta_, per_thread_;
  GuardedRows<T> q_, o_, d_o_, stats_;
};

}  // namespace ashlar::cpu

// Recomputed tiles of p and ds for attention backward. They are transposed, a panel of queries wide
// and a tile of keys high, so that every GEMM reads its operands directly:
//   p^T = exp(k q^T ...), dp^T = v do^T, dv += p^T do, dk += ds^T q, dq^T += k^T ds^T
#pragma once

#include <utility>

#include "cpu/engines/attention_problem.hpp"
#include "cpu/work_queue.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kQueryTile = 128;    // queries per tile
inline constexpr std::int64_t kQueryBlock = 1024;  // queries packed at once, of one head

// Amax outputs: see AttentionBackward.
enum BackwardAmax { kAmaxDq, kAmaxDk, kAmaxDv, kAmaxDp, kBackwardAmaxCount };

template <class T>
class BackwardTiles {
  using In = AttentionBackward::In;
  using Out = AttentionBackward::Out;

 public:
  BackwardTiles(const Region& region, const Graph& graph, ScratchLayout& scratch_layout,
                std::int64_t thread_count)
      : problem(graph, region),
        ops(row_ops<T>()),
        tile_ops(attention_tile_ops<T>()),
        d(padded_to_panel<T>(problem.shape.head_dim)),
        dv(padded_to_panel<T>(problem.shape.value_dim)),
        block(block_rows(problem.shape)),
        threads(thread_count),
        largest_(region, graph, {Out::amax_dq, Out::amax_dk, Out::amax_dv, Out::amax_dp},
                 scratch_layout, thread_count),
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
      return scratch_layout.add(name, checked_mul(elements, static_cast<std::int64_t>(sizeof(T))));
    };
    const std::int64_t query_rows =
        checked_mul(checked_mul(shape.batch, shape.heads), shape.queries);
    row_stats_ = add("stats", query_rows);
    row_delta_ = add("delta", query_rows);
    thread_elements_ = thread_elements(shape);
    per_thread_ = add("tiles", checked_mul(threads, thread_elements_));
  }
  static std::int64_t block_rows(const AttentionShape& shape) {
    return std::min(kQueryBlock, (shape.queries + kQueryTile - 1) / kQueryTile * kQueryTile);
  }
  static std::int64_t thread_elements(const AttentionShape& shape) {
    const std::int64_t d = padded_to_panel<T>(shape.head_dim),
                       dv = padded_to_panel<T>(shape.value_dim);
    return block_rows(shape) * (3 * d + 2 * dv + 4) + kKeyTile * (2 * d + dv) +
           2 * kQueryTile * kKeyTile + 2 * kPanelColumnMultiple<T> * kKeyTile +
           kQueryTile * (d + dv);
  }

  AttentionProblem<T, AttentionBackward> problem;
  const RowOps<T>& ops;
  const AttentionTileOps<T>& tile_ops;
  TileGemm<T> gemm;
  std::int64_t d, dv;  // head dims padded to whole panels
  std::int64_t block;  // query rows per buffer
  std::int64_t threads;

  // Packed query rows of one head.
  struct Queries {
    std::int64_t b, h, first, rows;
    AttentionBatch batch;
    T *qt, *dot;  // transposed: panels of queries, head_dim and value_dim deep
    T *q, *d_o;   // tile by tile, panels of head dims
    T* dqt;       // accumulators of dq, laid out as qt
    T *stats, *delta, *first_key, *end_key;  // per query; see GradientPanel
    bool q_finite[kQueryBlock / kQueryTile], do_finite[kQueryBlock / kQueryTile];
  };
  struct Keys {
    std::int64_t tile, count;
    T *k, *v;  // rows
    T* kt;     // [head_dim x kKeyTile]
    bool finite;
  };
  // Per-thread buffers.
  struct Buffers {
    int thread;
    Queries queries;
    Keys keys;
    T *p, *ds;            // [panels of queries x kKeyTile x columns]
    T *p_rows, *ds_rows;  // of one panel: [columns x kKeyTile]
    T* staging;           // query rows, and results
  };

  class Bound {
   public:
    const BackwardTiles& tiles;
    const AttentionShape& shape;
    const RowOps<T>& ops;
    typename AttentionProblem<T, AttentionBackward>::Bound problem;
    typename AmaxOutputs<T, kBackwardAmaxCount>::Bound largest;
    T *row_stats, *row_delta;

    Bound(const BackwardTiles& owner, const KernelContext& context,
          const ScratchLayout& scratch_layout)
        : tiles(owner),
          shape(owner.problem.shape),
          ops(owner.ops),
          problem(owner.problem, context),
          largest(owner.largest_, context, scratch_layout),
          p_scale_(owner.p_scale_.load(context)),
          ds_scale_(owner.ds_scale_.load(context)),
          dp_descale_(owner.dp_descale_.load(context)),
          delta_descale_(owner.delta_descale_.load(context)),
          q_(owner.q_.bind(context)),
          o_(owner.o_.bind(context)),
          d_o_(owner.d_o_.bind(context)),
          stats_(owner.stats_.bind(context)),
          plain_(problem.scores.plain() && !problem.mask.has_holes() &&
                 !problem.dropout.present() && !owner.dp_descale_.present() &&
                 !owner.scales_first_ && !owner.p_rounding_.present() &&
                 !owner.ds_rounding_.present() && !largest.wanted(kAmaxDp)) {
      row_stats = context.scratch<T>(scratch_layout, owner.row_stats_);
      row_delta = context.scratch<T>(scratch_layout, owner.row_delta_);
      buffers_ = context.scratch<T>(scratch_layout, owner.per_thread_);
    }

    Buffers buffers_of(int thread) const {
      T* at = buffers_ + thread * tiles.thread_elements_;
      const auto take = [&](std::int64_t elements) { return std::exchange(at, at + elements); };
      const std::int64_t block = tiles.block, d = tiles.d, dv = tiles.dv;
      Buffers t;
      t.thread = thread;
      Queries& q = t.queries;
      q.qt = take(block * d), q.dot = take(block * dv), q.q = take(block * d);
      q.d_o = take(block * dv), q.dqt = take(block * d);
      q.stats = take(block), q.delta = take(block);
      q.first_key = take(block), q.end_key = take(block);
      t.keys.k = take(kKeyTile * d), t.keys.v = take(kKeyTile * dv), t.keys.kt = take(kKeyTile * d);
      t.p = take(kQueryTile * kKeyTile), t.ds = take(kQueryTile * kKeyTile);
      t.p_rows = take(kPanelColumnMultiple<T> * kKeyTile);
      t.ds_rows = take(kPanelColumnMultiple<T> * kKeyTile);
      t.staging = take(kQueryTile * (d + dv));
      return t;
    }
    std::int64_t row_position(std::int64_t b, std::int64_t h, std::int64_t i) const {
      return (b * shape.heads + h) * shape.queries + i;
    }
    std::int64_t query_tiles() const { return (shape.queries + kQueryTile - 1) / kQueryTile; }
    std::int64_t columns() const { return tiles.gemm.columns(); }
    // Calls body(item, thread) for all items, on no more threads than have buffers.
    template <class Body>
    void over(std::int64_t count, const Body& body) const {
      for_each_item(count, tiles.threads, body);
    }

    // Fills row_stats and row_delta.
    void summarise_rows() const {
      over(shape.batch * shape.heads * query_tiles(), [&](std::int64_t item, int thread) {
        const std::int64_t b = item / query_tiles() / shape.heads,
                           h = item / query_tiles() % shape.heads,
                           first = item % query_tiles() * kQueryTile;
        const std::int64_t rows = std::min(kQueryTile, shape.queries - first), dv = tiles.dv;
        const std::int64_t position = row_position(b, h, first),
                           length = problem.mask.batch(b).queries;
        T* gradients = buffers_of(thread).staging;
        T* results = gradients + kQueryTile * dv;
        if (dv > tiles.d) results = buffers_of(thread).queries.d_o;
        load_rows<T>(d_o_, b, h, first, rows, length, shape.value_dim, dv, gradients);
        load_rows<T>(o_, b, h, first, rows, length, shape.value_dim, dv, results);
        for (std::int64_t r = 0; r < rows; ++r) {
          row_delta[position + r] =
              delta_descale_ * ops.dot(gradients + r * dv, results + r * dv, shape.value_dim);
          row_stats[position + r] = -std::numeric_limits<T>::infinity();
          if (first + r < length) stats_.load({b, h, first + r, 0}, 1, row_stats + position + r);
        }
      });
    }

    // Packs `rows` rows of head h from `first` on, and zeroes the accumulators of dq.
    void pack_queries(std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows,
                      Buffers& t) const {
      Queries& q = t.queries;
      q.b = b, q.h = h, q.first = first, q.rows = rows, q.batch = problem.mask.batch(b);
      const std::int64_t d = tiles.d, dv = tiles.dv;
      for (std::int64_t start = 0, tile = 0; start < rows; start += kQueryTile, ++tile) {
        const std::int64_t count = std::min(kQueryTile, rows - start);
        const auto pack = [&](const auto& source, std::int64_t dim, std::int64_t padded,
                              T* transposed, T* panels) {
          T* staging = t.staging;
          load_rows<T>(source, b, h, first + start, count, q.batch.queries, dim, padded, staging);
          std::fill(staging + count * padded, staging + kQueryTile * padded, T{0});
          transpose_to_panels(staging, padded, kQueryTile, dim, columns(),
                              transposed + start * dim);
          tiles.tile_ops.to_panels(staging, padded, kQueryTile, padded / columns(), columns(),
                                   panels + start * padded);
          return tiles.tile_ops.finite(staging, padded, count, padded);
        };
        q.q_finite[tile] = pack(q_, shape.head_dim, d, q.qt, q.q);
        q.do_finite[tile] = pack(d_o_, shape.value_dim, dv, q.dot, q.d_o);
      }
      const std::int64_t position = row_position(b, h, first);
      for (std::int64_t r = 0; r < (rows + kQueryTile - 1) / kQueryTile * kQueryTile; ++r) {
        // Rows past the end are masked: 0 times a NaN key is not 0.
        const ScoreColumns seen = r < rows ? visible_to(q, r) : ScoreColumns{};
        q.first_key[r] = static_cast<T>(seen.begin), q.end_key[r] = static_cast<T>(seen.end);
        const bool counts = r < rows && !seen.empty();
        q.stats[r] = counts ? row_stats[position + r] : T{0};
        q.delta[r] = counts ? row_delta[position + r] : T{0};
      }
      std::fill_n(q.dqt, (rows + kQueryTile - 1) / kQueryTile * kQueryTile * shape.head_dim, T{0});
    }
    void pack_keys(std::int64_t tile, Buffers& t) const {
      const Queries& q = t.queries;
      Keys& keys = t.keys;
      keys.tile = tile, keys.count = std::min(kKeyTile, shape.keys - tile * kKeyTile);
      load_rows<T>(problem.k, q.b, shape.k_head_of(q.h), tile * kKeyTile, keys.count, q.batch.keys,
                   shape.head_dim, tiles.d, keys.k);
      load_rows<T>(problem.v, q.b, shape.v_head_of(q.h), tile * kKeyTile, keys.count, q.batch.keys,
                   shape.value_dim, tiles.dv, keys.v);
      transpose_rows(keys.k, tiles.d, keys.count, shape.head_dim, keys.kt, kKeyTile);
      keys.finite = tiles.tile_ops.finite(keys.k, tiles.d, keys.count, tiles.d);
    }

    // The keys that packed row r attends to; empty if its gradients are 0.
    ScoreColumns visible_to(const Queries& q, std::int64_t r) const {
      if (row_stats[row_position(q.b, q.h, q.first + r)] == -std::numeric_limits<T>::infinity())
        return {};
      return problem.mask.columns(q.batch, q.first + r);
    }
    ScoreColumns columns_of(const Keys& keys) const {
      return {keys.tile * kKeyTile, keys.tile * kKeyTile + keys.count};
    }
    // Whether all keys are masked for a tile of the packed queries.
    bool hidden(const Buffers& t, std::int64_t tile, ScoreColumns keys) const {
      const Queries& q = t.queries;
      const std::int64_t first = q.first + tile * kQueryTile;
      const std::int64_t rows = std::min(kQueryTile, q.rows - tile * kQueryTile);
      const ScoreColumns columns = problem.mask.columns(q.batch, first, rows).within(keys);
      return columns.empty() || problem.mask.hides(q.b, q.h, first, rows, columns);
    }

    // Key rows that a panel of queries (from packed row `first` on) attends to, in multiples of the
    // micro-kernel's rows; and whether some query is masked or past the end.
    struct KeyRange {
      std::int64_t begin, end;
      bool masked;
    };
    KeyRange key_range(const Buffers& t, std::int64_t first) const {
      const ScoreColumns all = columns_of(t.keys);
      ScoreColumns hull{all.end, all.begin};
      bool masked = problem.mask.has_holes() || first + columns() > t.queries.rows;
      for (std::int64_t r = first; r < std::min(first + columns(), t.queries.rows); ++r) {
        const ScoreColumns own = ScoreColumns{static_cast<std::int64_t>(t.queries.first_key[r]),
                                              static_cast<std::int64_t>(t.queries.end_key[r])}
                                     .within(all);
        masked |= own.size() < all.size();
        if (!own.empty()) hull = {std::min(hull.begin, own.begin), std::max(hull.end, own.end)};
      }
      if (hull.empty()) return {0, 0, masked};
      const std::int64_t rows = tiles.gemm.rows();
      return {(hull.begin - all.begin) / rows * rows,
              std::min((hull.end - all.begin + rows - 1) / rows * rows, all.size()), masked};
    }

    // Recomputes p^T and ds^T of panel `panel` of a tile, the operands of the gradient GEMMs.
    void recompute(Buffers& t, std::int64_t first, const KeyRange& at, std::int64_t panel) const {
      T* p = t.p + panel * kKeyTile * columns();
      T* ds = t.ds + panel * kKeyTile * columns();
      multiply(t, first, at, p, ds);
      if (!plain_) return fill_rows<true>(t, first, at, p, ds);
      const Queries& q = t.queries;
      const std::int64_t skip = at.begin * columns();
      tiles.tile_ops.gradient({p + skip, ds + skip, at.end - at.begin, columns(),
                               problem.scores.qk_scale(), q.stats + first, q.delta + first,
                               at.masked ? q.first_key + first : nullptr, q.end_key + first,
                               static_cast<T>(t.keys.tile * kKeyTile + at.begin)});
    }
    // Fills t.ds_rows with the score gradients (with respect to the softmax input) of a panel's
    // queries; 0 where masked.
    void score_gradients(Buffers& t, std::int64_t first, const KeyRange& at) const {
      multiply(t, first, at, t.p, t.ds);
      fill_rows<false>(t, first, at, t.p, t.ds);
    }
    // Scales that recompute() leaves to the gradient GEMMs.
    T p_operand() const { return tiles.p_rounding_.present() ? T{1} : p_scale_; }
    T ds_operand() const {
      return (tiles.scales_first_ ? T{1} : problem.scores.scale()) *
             (tiles.ds_rounding_.present() ? T{1} : ds_scale_);
    }

   private:
    // p = k q^T, ds = v do^T.
    void multiply(const Buffers& t, std::int64_t first, const KeyRange& at, T* p, T* ds) const {
      const auto gemm = [&](const T* rows, std::int64_t row, std::int64_t k, const T* panel,
                            T* result) {
        for (std::int64_t r = at.begin; r < at.end; r += tiles.gemm.rows())
          tiles.gemm({std::min(tiles.gemm.rows(), at.end - r), k, rows + r * row, row, panel,
                      columns(), result + r * columns(), columns(), false});
      };
      gemm(t.keys.k, tiles.d, shape.head_dim, t.queries.qt + first * shape.head_dim, p);
      gemm(t.keys.v, tiles.dv, shape.value_dim, t.queries.dot + first * shape.value_dim, ds);
    }

    // The general case: transposes the panel to query rows, processes them and transposes back.
    template <bool kForGemm>
    void fill_rows(Buffers& t, std::int64_t first, const KeyRange& at, T* p, T* ds) const {
      const Queries& q = t.queries;
      const std::int64_t skip = at.begin * columns(), count = at.end - at.begin;
      const ScoreColumns met{t.keys.tile * kKeyTile + at.begin, t.keys.tile * kKeyTile + at.end};
      transpose_rows(p + skip, columns(), count, columns(), t.p_rows + at.begin, kKeyTile);
      transpose_rows(ds + skip, columns(), count, columns(), t.ds_rows + at.begin, kKeyTile);
      for (std::int64_t i = 0; i < columns(); ++i) {
        const std::int64_t r = first + i;
        const ScoreColumns seen = r < q.rows ? visible_to(q, r).within(met) : ScoreColumns{};
        const std::int64_t before = seen.empty() ? count : seen.begin - met.begin,
                           length = seen.empty() ? 0 : seen.size();
        T* p_row = t.p_rows + i * kKeyTile + at.begin;
        T* ds_row = t.ds_rows + i * kKeyTile + at.begin;
        if (length > 0)
          fill_row<kForGemm>({q.b, q.h, q.first + r, seen.begin}, seen,
                             row_position(q.b, q.h, q.first + r), p_row + before, ds_row + before,
                             t.thread);
        for (T* row : {p_row, ds_row}) {
          std::fill(row, row + before, T{0});
          std::fill(row + before + length, row + count, T{0});
        }
      }
      if (!kForGemm) return;
      transpose_rows(t.p_rows + at.begin, kKeyTile, columns(), count, p + skip, columns());
      transpose_rows(t.ds_rows + at.begin, kKeyTile, columns(), count, ds + skip, columns());
    }

    template <bool kForGemm>
    void fill_row(const Coords& at, ScoreColumns seen, std::int64_t position, T* p, T* ds,
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
      if (kForGemm) {
        problem.scores.apply_gradient(at, count, scaled, ds);
        if (problem.dropout.present()) problem.dropout.apply(kept, count, p);
        problem.mask.overwrite_holes(at[0], at[1], at[2], seen, T{0}, p);
      }
      problem.mask.overwrite_holes(at[0], at[1], at[2], seen, T{0}, ds);
      if (kForGemm) narrow(count, p, ds, scaled, thread);
    }
    // fp8: rounds p and ds to their types.
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
    typename RaggedRows<T>::Bound q_, o_, d_o_, stats_;
    bool plain_;  // plain softmax: no modifier, mask holes, dropout or fp8
    T* buffers_;
  };

 private:
  std::int64_t thread_elements_;
  AmaxOutputs<T, kBackwardAmaxCount> largest_;
  bool scales_first_;  // fp8: the scale is applied before rounding
  Fp8Rounding<T> p_rounding_, ds_rounding_;
  ScaleOperand<T> p_scale_, ds_scale_, dp_descale_, delta_descale_;
  int row_stats_, row_delta_, per_thread_;
  RaggedRows<T> q_, o_, d_o_, stats_;
};

}  // namespace ashlar::cpu

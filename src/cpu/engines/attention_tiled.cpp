// Attention forward in tiles with an online softmax (Milakov and Gimelshein, 2018): no score
// matrix, memory linear in the sequence length. Weights that are rounded to fp8, or whose amax is
// an output, must be normalised first: such rows take two passes.
#include "cpu/engines/attention_packed_keys.hpp"
#include "cpu/engines/attention_tiling.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/work_queue.hpp"

namespace ashlar::cpu {

namespace {

using ForwardIn = AttentionForward::In;
using ForwardOut = AttentionForward::Out;

template <class T>
class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const Region& region, const Graph& graph, const DeviceProps& device)
      : problem_(graph, region),
        threads_(std::max(device.compute_units, 1)),
        tiling_(problem_.shape, region, threads_),
        ops_(row_ops<T>()),
        tile_ops_(attention_tile_ops<T>()),
        d_(padded_to_panel<T>(problem_.shape.head_dim)),
        dv_(padded_to_panel<T>(problem_.shape.value_dim)),
        largest_(region, graph, {ForwardOut::amax_s, ForwardOut::amax_o}, scratch_layout_,
                 threads_),
        weight_rounding_(region.anchor->inputs[ForwardIn::q].dtype),
        weight_scale_(region, {ForwardIn::scale_s}),
        descale_(region, {ForwardIn::descale_s, ForwardIn::descale_v}),
        o_scale_(region, {ForwardIn::scale_o}),
        sink_(input_program(region, ForwardIn::sink), {1, problem_.shape.heads, 1, 1}, 3),
        two_passes_(needs_two_passes(region)),
        q_(region.prologues[ForwardIn::q], 3, graph),
        o_(region.epilogue, 3, graph) {
    const auto output = [&](int slot) {
      return RaggedRows<T>(output_program(region.anchor->outputs, slot), 3, graph);
    };
    stats_ = output(ForwardOut::stats), max_ = output(ForwardOut::max),
    sum_exp_ = output(ForwardOut::sum_exp);
    const auto reserve_scratch = [&](const char* name, std::int64_t count, std::int64_t elements) {
      return scratch_layout_.add(
          name, checked_mul(checked_mul(count, elements), static_cast<std::int64_t>(sizeof(T))));
    };
    const std::int64_t rows = tiling_.tile_rows();
    thread_elements_ = rows * (d_ + dv_ + kKeyTile) + kKeyTile * (d_ + dv_);
    per_thread_ = reserve_scratch("tiles", threads_, thread_elements_);
    part_elements_ = padded_to_panel<T>(rows * (dv_ + 2));
    const bool split = tiling_.splits > 1;
    parts_ = reserve_scratch("parts", split ? items() * tiling_.splits : 0, part_elements_);
    if (tiling_.packed) packed_.emplace(problem_.shape, scratch_layout_);
  }

  void run(const KernelContext& context) const override {
    const AttentionShape& shape = problem_.shape;
    const Run run(*this, context);
    if (shape.batch > 0 && shape.heads > 0 && shape.queries > 0) run.tiles();
    run.largest.store();
    problem_.dump_rng(run.problem, context);
  }

 private:
  std::int64_t items() const {
    return problem_.shape.batch * tiling_.head_blocks * tiling_.query_tiles;
  }

  struct Run {
    const AttentionKernel& kernel;
    const AttentionShape& shape;
    const AttentionTiling& tiling;
    const RowOps<T>& ops;
    typename AttentionProblem<T, AttentionForward>::Bound problem;
    typename AmaxOutputs<T, 2>::Bound largest;
    T weight_scale, descale, o_scale;
    typename Operand<T>::Bound sink;
    typename RaggedRows<T>::Bound q, o, stats, max, sum_exp;
    T *scratch, *parts;
    std::optional<typename PackedKeys<T>::Bound> packed;
    bool plain;  // plain softmax: no modifier, mask holes or dropout

    Run(const AttentionKernel& owner, const KernelContext& context)
        : kernel(owner),
          shape(owner.problem_.shape),
          tiling(owner.tiling_),
          ops(owner.ops_),
          problem(owner.problem_, context),
          largest(owner.largest_, context, owner.scratch_layout_),
          weight_scale(owner.weight_scale_.load(context)),
          descale(owner.descale_.load(context)),
          o_scale(owner.o_scale_.load(context)),
          sink(owner.sink_.bind(context)),
          q(owner.q_.bind(context)),
          o(owner.o_.bind(context)),
          stats(owner.stats_.bind(context)),
          max(owner.max_.bind(context)),
          sum_exp(owner.sum_exp_.bind(context)),
          scratch(context.scratch<T>(owner.scratch_layout_, owner.per_thread_)),
          parts(context.scratch<T>(owner.scratch_layout_, owner.parts_)),
          plain(problem.scores.plain() && problem.scores.qk_scale() > T{0} &&
                !problem.mask.has_holes() && !problem.dropout.present()) {
      if (owner.packed_) packed.emplace(*owner.packed_, context, owner.scratch_layout_);
    }

    void tiles() const {
      if (packed)
        packed->pack(problem, kernel.threads_,
                     [&](int thread) { return scratch + thread * kernel.thread_elements_; });
      const std::int64_t splits = tiling.splits;
      for_each_item(kernel.items() * splits, kernel.threads_, [&](std::int64_t at, int thread) {
        QueryTile t;
        place(at / splits, thread, t);
        clear(t);
        add_keys(t, at % splits);
        if (splits > 1)
          store_partial(t, at);
        else
          finish(t);
      });
      if (splits == 1) return;
      for_each_item(kernel.items(), kernel.threads_, [&](std::int64_t item, int thread) {
        QueryTile t;
        place(item, thread, t);
        clear(t);
        for (std::int64_t split = 0; split < splits; ++split)
          merge_partial(t, item * splits + split);
        finish(t);
      });
    }

    // A tile of queries: rows [first_row, ...) of heads [first_head, ...), with its running state.
    struct QueryTile {
      int thread;
      std::int64_t b, first_head, first_row, rows, m;
      AttentionBatch batch;
      const T* q;
      std::int64_t q_row;
      T *copies, *o, *scores, *k, *v;       // `copies`: staged queries
      T largest[kMaxRows], sums[kMaxRows];  // running maximum, and sum of exp(score - maximum)
      ScoreColumns seen[kMaxRows];
      std::int64_t head_of(std::int64_t r) const { return first_head + r / rows; }
      std::int64_t row_of(std::int64_t r) const { return first_row + r % rows; }
      // Columns visible to any row of a micro-kernel block, and to any row at all.
      ScoreColumns block_visible[kMaxRows], all_visible;
    };
    struct KeyTile {
      ScoreColumns columns;
      TilePanels<T> values;
      bool partly_masked;  // some row is masked inside the tile
    };

    // Last query tiles first: with a causal mask they take longest.
    void place(std::int64_t item, int thread, QueryTile& t) const {
      const std::int64_t tile = tiling.query_tiles - 1 - item % tiling.query_tiles;
      const std::int64_t block = item / tiling.query_tiles;
      t.thread = thread, t.b = block / tiling.head_blocks;
      t.first_head = block % tiling.head_blocks * tiling.heads;
      t.first_row = tile * tiling.rows;
      t.rows = std::min(tiling.rows, shape.queries - t.first_row);
      t.m = t.rows * tiling.heads, t.batch = problem.mask.batch(t.b);
      t.copies = scratch + thread * kernel.thread_elements_;
      t.o = t.copies + tiling.tile_rows() * kernel.d_;
      t.scores = t.o + tiling.tile_rows() * kernel.dv_;
      t.k = t.scores + tiling.tile_rows() * kKeyTile;
      t.v = t.k + kKeyTile * kernel.d_;
    }
    void clear(QueryTile& t) const {
      std::fill(t.o, t.o + t.m * kernel.dv_, T{0});
      std::fill(t.largest, t.largest + t.m, -std::numeric_limits<T>::infinity());
      std::fill(t.sums, t.sums + t.m, T{0});
    }

    void add_keys(QueryTile& t, std::int64_t split) const {
      see(t);
      const std::int64_t part = tiling.tiles_per_split * kKeyTile;
      const ScoreColumns seen =
          t.all_visible.within({split * part, std::min((split + 1) * part, shape.keys)});
      if (!seen.empty()) load_queries(t);
      for_key_tiles(t, seen, [&](KeyTile& keys) {
        softmax_step(t, keys);
        if (!kernel.two_passes_) add_values(t, keys);
      });
      if (!kernel.two_passes_) return;
      for (std::int64_t r = 0; r < t.m; ++r) add_sink(t, r);
      for_key_tiles(t, seen, [&](KeyTile& keys) {
        for (std::int64_t r = 0; r < t.m; ++r) normalise_weights(t, keys, r);
        add_values(t, keys);
      });
    }

    // Queries are read in place if rows are dense enough for a block of them to fit L1.
    void load_queries(QueryTile& t) const {
      if (tiling.heads == 1 && t.first_row + t.rows <= t.batch.queries) {
        const T* first = q.in_place({t.b, t.first_head, t.first_row, 0});
        const T* second =
            q.in_place({t.b, t.first_head, t.first_row + 1, 0});  // may be past the end
        if (first != nullptr && second - first == shape.head_dim) {
          t.q = first, t.q_row = shape.head_dim;
          return;
        }
      }
      T* copies = t.copies;
      t.q = copies, t.q_row = kernel.d_;
      for (std::int64_t h = 0; h < tiling.heads; ++h, copies += t.rows * kernel.d_)
        load_rows<T>(q, t.b, t.first_head + h, t.first_row, t.rows, t.batch.queries, shape.head_dim,
                     kernel.d_, copies);
    }

    void see(QueryTile& t) const {
      const std::int64_t block = kernel.gemm_.rows();
      const ScoreColumns nothing{shape.keys, 0};
      t.all_visible = nothing;
      for (std::int64_t r = 0; r < t.m; ++r) {
        t.seen[r] = problem.mask.columns(t.batch, t.row_of(r));
        ScoreColumns& hull = t.block_visible[r / block];
        if (r % block == 0) hull = nothing;
        if (t.seen[r].empty()) continue;
        hull = {std::min(hull.begin, t.seen[r].begin), std::max(hull.end, t.seen[r].end)};
        t.all_visible = {std::min(hull.begin, t.all_visible.begin),
                         std::max(hull.end, t.all_visible.end)};
      }
    }

    // Calls body with q k^T of every key tile that some row attends to.
    template <class Body>
    void for_key_tiles(QueryTile& t, ScoreColumns seen, const Body& body) const {
      if (seen.empty()) return;
      for (std::int64_t tile = seen.begin / kKeyTile; tile * kKeyTile < seen.end; ++tile) {
        const std::int64_t first = tile * kKeyTile;
        KeyTile keys{{first, std::min(first + kKeyTile, shape.keys)}, {}, false};
        const ScoreColumns here = t.all_visible.within(keys.columns);
        if (here.empty() || hidden(t, here)) continue;
        if (packed)
          multiply_packed(t, keys, tile);
        else
          multiply_rows(t, keys, here);
        body(keys);
      }
    }
    bool hidden(const QueryTile& t, ScoreColumns columns) const {
      for (std::int64_t h = 0; h < tiling.heads; ++h)
        if (!problem.mask.hides(t.b, t.first_head + h, t.first_row, t.rows, columns)) return false;
      return true;
    }
    // A key panel stays in L1 while query rows pass; panels that no row of a block attends to, and
    // unneeded halves, are skipped.
    void multiply_packed(const QueryTile& t, KeyTile& keys, std::int64_t tile) const {
      keys.values = packed->v_tile(t.b, shape.v_head_of(t.first_head), tile);
      const TilePanels<T> panels = packed->k_tile(t.b, shape.k_head_of(t.first_head), tile);
      const TileGemm<T>& gemm = kernel.gemm_;
      const std::int64_t width = gemm.columns();
      for (std::int64_t p = 0; p < gemm.panels(keys.columns.size()); ++p) {
        const std::int64_t first = keys.columns.begin + p * width;
        for (std::int64_t r = 0; r < t.m; r += gemm.rows()) {
          const std::int64_t count = std::min(gemm.rows(), t.m - r);
          const ScoreColumns seen = t.block_visible[r / gemm.rows()].within({first, first + width});
          if (seen.empty()) continue;
          // Half a panel is whole vectors too.
          const bool half = seen.end <= first + width / 2;
          gemm({count, shape.head_dim, t.q + r * t.q_row, t.q_row, panels.data + p * panels.panel,
                panels.row, t.scores + r * kKeyTile + p * width, kKeyTile, false,
                half ? width / 2 : width});
        }
      }
    }
    // Few queries: streams keys and values once, in place if possible.
    void multiply_rows(const QueryTile& t, KeyTile& keys, ScoreColumns seen) const {
      const std::int64_t k_head = shape.k_head_of(t.first_head),
                         v_head = shape.v_head_of(t.first_head);
      const std::int64_t first = keys.columns.begin, count = keys.columns.size(),
                         before = seen.begin - first;
      auto [k, k_row] = problem.k.in_place({t.b, k_head, first, 0});
      if (k == nullptr) {
        load_rows<T>(problem.k, t.b, k_head, first, count, t.batch.keys, shape.head_dim, kernel.d_,
                     t.k);
        k = t.k, k_row = kernel.d_;
      }
      kernel.tile_ops_.dots({t.q, t.m, t.q_row, k + before * k_row, seen.size(), k_row,
                             shape.head_dim, t.scores + before, kKeyTile});
      auto [v, v_row] = problem.v.in_place({t.b, v_head, first, 0});
      if (v == nullptr || shape.value_dim % kernel.gemm_.columns() != 0) {
        load_rows<T>(problem.v, t.b, v_head, first, count, t.batch.keys, shape.value_dim,
                     kernel.dv_, t.v);
        v = t.v, v_row = kernel.dv_;
      }
      keys.values = {v, kernel.gemm_.columns(), v_row};
    }

    // Turns q k^T of a row into scores, -inf where masked. Returns their columns; the caller
    // overwrites the columns outside.
    ScoreColumns score(const QueryTile& t, KeyTile& keys, std::int64_t r) const {
      const ScoreColumns seen = t.seen[r].within(keys.columns);
      keys.partly_masked |= seen.size() < keys.columns.size() || problem.mask.has_holes();
      if (seen.empty()) return seen;
      const Coords at = {t.b, t.head_of(r), t.row_of(r), seen.begin};
      T* row = t.scores + r * kKeyTile + (seen.begin - keys.columns.begin);
      problem.scores.apply(at, seen.size(), row);
      problem.mask.overwrite_holes(at[0], at[1], at[2], seen, -std::numeric_limits<T>::infinity(),
                                   row);
      return seen;
    }
    void zero_masked(const KeyTile& keys, ScoreColumns seen, T* row) const {
      const std::int64_t count = keys.columns.size();
      if (seen.empty()) return std::fill(row, row + count, T{0});
      std::fill(row, row + (seen.begin - keys.columns.begin), T{0});
      std::fill(row + (seen.end - keys.columns.begin), row + count, T{0});
    }
    void drop(const QueryTile& t, std::int64_t r, ScoreColumns seen, T* weights) const {
      if (!problem.dropout.present()) return;
      alignas(64) T kept[kKeyTile];
      problem.dropout.draw({t.b, t.head_of(r), t.row_of(r), seen.begin}, seen.size(), kept);
      problem.dropout.apply(kept, seen.size(), weights);
    }

    // One online-softmax step: exponentials relative to the new running maximum, accumulators
    // rescaled to it.
    void softmax_step(QueryTile& t, KeyTile& keys) const {
      if (!plain) {
        for (std::int64_t r = 0; r < t.m; ++r) softmax_step_general(t, keys, r);
        return;
      }
      for (std::int64_t r = 0, count; r < t.m; r += count) {
        // Rows with the same visible columns are processed together.
        const ScoreColumns seen = t.seen[r].within(keys.columns);
        const std::int64_t most = std::min(t.m - r, kMaxSoftmaxRows);
        for (count = 1; count < most; ++count) {
          const ScoreColumns other = t.seen[r + count].within(keys.columns);
          if (other.begin != seen.begin || other.end != seen.end) break;
        }
        softmax_step_plain(t, keys, r, count, seen);
      }
    }
    void softmax_step_plain(QueryTile& t, KeyTile& keys, std::int64_t r, std::int64_t count,
                            ScoreColumns seen) const {
      T* row = t.scores + r * kKeyTile;
      // Non-finite products take the general path.
      if (seen.empty() ||
          !kernel.tile_ops_.softmax_step({count, row + (seen.begin - keys.columns.begin), kKeyTile,
                                          seen.size(), problem.scores.qk_scale(), t.largest + r,
                                          t.sums + r, t.o + r * kernel.dv_, kernel.dv_})) {
        for (std::int64_t i = r; i < r + count; ++i) softmax_step_general(t, keys, i);
        return;
      }
      if (seen.size() == keys.columns.size()) return;
      keys.partly_masked = true;
      for (std::int64_t i = 0; i < count; ++i) zero_masked(keys, seen, row + i * kKeyTile);
    }
    void softmax_step_general(QueryTile& t, KeyTile& keys, std::int64_t r) const {
      T* row = t.scores + r * kKeyTile;
      ScoreColumns seen = score(t, keys, r);
      T* weights = row + (seen.begin - keys.columns.begin);
      if (!seen.empty()) {
        const T here = ops.fold(Fold::maximum, Premap::identity, weights, seen.size());
        raise_maximum(t, r, here);
        if (t.largest[r] == -std::numeric_limits<T>::infinity()) seen = {};
      }
      zero_masked(keys, seen, row);
      if (seen.empty()) return;
      t.sums[r] += ops.exp_shifted(weights, {&t.largest[r], false}, seen.size(), weights);
      drop(t, r, seen, weights);
    }
    void raise_maximum(QueryTile& t, std::int64_t r, T candidate) const {
      const T before = t.largest[r];
      t.largest[r] = maximum_or_nan(before, candidate);
      if (t.largest[r] == before || t.largest[r] == -std::numeric_limits<T>::infinity()) return;
      const T factor = std::exp(before - t.largest[r]);
      t.sums[r] *= factor;
      if (factor != T{0} || before != -std::numeric_limits<T>::infinity())
        ops.multiply(t.o + r * kernel.dv_, {&factor, false}, kernel.dv_, t.o + r * kernel.dv_);
    }
    // The attention sink: one more key without a value.
    void add_sink(QueryTile& t, std::int64_t r) const {
      if (!sink.present() || t.row_of(r) >= t.batch.queries) return;
      T value;
      static constexpr T kAbsent = 0;
      sink.load({0, t.head_of(r), 0, 0}, 1, &value, &kAbsent);
      raise_maximum(t, r, value);
      if (t.largest[r] != -std::numeric_limits<T>::infinity())
        ops.exp_shifted(&value, {&t.largest[r], false}, 1, &value), t.sums[r] += value;
    }
    // Second pass: the final weights, now that the sums are known.
    void normalise_weights(QueryTile& t, KeyTile& keys, std::int64_t r) const {
      T* row = t.scores + r * kKeyTile;
      ScoreColumns seen = score(t, keys, r);
      if (t.largest[r] == -std::numeric_limits<T>::infinity()) seen = {};
      zero_masked(keys, seen, row);
      if (seen.empty()) return;
      T* weights = row + (seen.begin - keys.columns.begin);
      ops.exp_shifted(weights, {&t.largest[r], false}, seen.size(), weights);
      drop(t, r, seen, weights);
      const T factor = 1 / t.sums[r];
      ops.multiply(weights, {&factor, false}, seen.size(), weights);
      largest.add(kAmaxS, t.thread, weights, seen.size());
      if (!kernel.weight_rounding_.present()) return;
      ops.multiply(weights, {&weight_scale, false}, seen.size(), weights);
      kernel.weight_rounding_.apply(seen.size(), weights);
    }

    // o += weights v. A zero weight does not cancel NaN or infinity, so a non-finite value is
    // multiplied only with the rows that attend to it.
    void add_values(QueryTile& t, const KeyTile& keys) const {
      const std::int64_t rows = kernel.gemm_.rows();
      if (!keys.partly_masked || finite(t, keys)) {
        for (std::int64_t p = 0; p < kernel.gemm_.panels(shape.value_dim); ++p)
          for (std::int64_t r = 0; r < t.m; r += rows) {
            const std::int64_t count = std::min(rows, t.m - r);
            const ScoreColumns seen = t.block_visible[r / rows].within(keys.columns);
            if (!seen.empty()) add_block(t, keys, r, count, seen, p);
          }
        return;
      }
      for (std::int64_t r = 0; r < t.m; ++r)
        problem.mask.for_each_run(
            t.b, t.head_of(r), t.row_of(r), t.seen[r].within(keys.columns), [&](ScoreColumns run) {
              for (std::int64_t p = 0; p < kernel.gemm_.panels(shape.value_dim); ++p)
                add_block(t, keys, r, 1, run, p);
            });
    }
    void add_block(const QueryTile& t, const KeyTile& keys, std::int64_t r, std::int64_t count,
                   ScoreColumns run, std::int64_t p) const {
      const std::int64_t at = run.begin - keys.columns.begin;
      const TilePanels<T>& v = keys.values;
      kernel.gemm_({count, run.size(), t.scores + r * kKeyTile + at, kKeyTile,
                    v.data + p * v.panel + at * v.row, v.row,
                    t.o + r * kernel.dv_ + p * kernel.gemm_.columns(), kernel.dv_, true});
    }
    // Whether all visible values are finite.
    bool finite(const QueryTile& t, const KeyTile& keys) const {
      const ScoreColumns seen = t.all_visible.within(keys.columns);
      const TilePanels<T>& v = keys.values;
      for (std::int64_t p = 0; p < kernel.gemm_.panels(shape.value_dim); ++p)
        if (!kernel.tile_ops_.finite(
                v.data + p * v.panel + (seen.begin - keys.columns.begin) * v.row, v.row,
                seen.size(), kernel.gemm_.columns()))
          return false;
      return true;
    }

    // Partial state of a key split: rows of o, then maxima and sums.
    void store_partial(const QueryTile& t, std::int64_t at) const {
      T* part = parts + at * kernel.part_elements_;
      part = std::copy_n(t.o, t.m * kernel.dv_, part);
      part = std::copy_n(t.largest, t.m, part);
      std::copy_n(t.sums, t.m, part);
    }
    void merge_partial(QueryTile& t, std::int64_t at) const {
      const T* part = parts + at * kernel.part_elements_;
      const T *most = part + t.m * kernel.dv_, *sums = most + t.m;
      for (std::int64_t r = 0; r < t.m; ++r) {
        if (most[r] == -std::numeric_limits<T>::infinity()) continue;
        raise_maximum(t, r, most[r]);
        const T factor = most[r] == t.largest[r] ? T{1} : std::exp(most[r] - t.largest[r]);
        t.sums[r] += factor * sums[r];
        ops.axpy(factor, part + r * kernel.dv_, kernel.dv_, t.o + r * kernel.dv_);
      }
    }

    void finish(QueryTile& t) const {
      for (std::int64_t r = 0; r < t.m; ++r) {
        if (!kernel.two_passes_) add_sink(t, r);
        finish(t, r);
      }
    }
    void finish(QueryTile& t, std::int64_t r) const {
      T* row = t.o + r * kernel.dv_;
      const Coords at = {t.b, t.head_of(r), t.row_of(r), 0};
      const T most = t.largest[r], sum = t.sums[r];
      const bool sees_nothing = most == -std::numeric_limits<T>::infinity();
      // Scales that the second pass has not applied yet.
      const T factor = (kernel.two_passes_ ? T{1} : 1 / sum) *
                       (kernel.weight_rounding_.present() ? T{1} : weight_scale) * descale;
      if (sees_nothing)
        std::fill(row, row + shape.value_dim, T{0});
      else
        ops.multiply(row, {&factor, false}, shape.value_dim, row);
      largest.add(kAmaxO, t.thread, row, shape.value_dim);
      if (kernel.o_scale_.present()) ops.multiply(row, {&o_scale, false}, shape.value_dim, row);
      o.store(at, shape.value_dim, row);
      if (stats.present()) {
        const T row_stats = sees_nothing ? most : most + std::log(sum);
        stats.store(at, 1, &row_stats);
      }
      max.store(at, 1, &most);
      sum_exp.store(at, 1, &sum);
    }
  };
  enum { kAmaxS, kAmaxO };  // slots of largest_

  AttentionProblem<T, AttentionForward> problem_;
  std::int64_t threads_;
  AttentionTiling tiling_;
  const RowOps<T>& ops_;
  const AttentionTileOps<T>& tile_ops_;
  TileGemm<T> gemm_;
  std::int64_t d_, dv_;  // head dims padded to whole panels
  std::int64_t thread_elements_, part_elements_;
  AmaxOutputs<T, 2> largest_;
  Fp8Rounding<T> weight_rounding_;
  ScaleOperand<T> weight_scale_, descale_, o_scale_;
  Operand<T> sink_;
  bool two_passes_;
  int per_thread_, parts_;
  std::optional<PackedKeys<T>> packed_;
  RaggedRows<T> q_, o_, stats_, max_, sum_exp_;
};

class AttentionEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.attention_tiled"; }
  EngineKind kind() const override { return EngineKind::specialised_fusion; }
  std::string_view description() const override { return "tiled attention with online softmax"; }

  Support supports(const Region& region, const DeviceProps&) const override {
    const auto* op = region.anchor_as<AttentionForward>();
    if (!op) return Support::other_operation("the anchor is not attention forward");
    const AttentionShape shape(*region.anchor, *op);
    if (Support fit = fits(modifier_program(*region.anchor, *op, shape.scores())); !fit) return fit;
    return supports_operands<AttentionForward>(region);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const AttentionShape shape(*region.anchor, *region.anchor_as<AttentionForward>());
    const std::int64_t threads = std::max(device.compute_units, 1);
    const AttentionTiling tiling(shape, region, threads);
    const std::int64_t element = bit_width(region.precision()) / 8;
    const std::int64_t rows = tiling.tile_rows();
    std::int64_t elements = threads * (rows * (shape.head_dim + shape.value_dim + kKeyTile) +
                                       kKeyTile * (shape.head_dim + shape.value_dim));
    if (tiling.splits > 1)
      elements += shape.batch * tiling.head_blocks * tiling.query_tiles * tiling.splits * rows *
                  (shape.value_dim + 2);
    if (tiling.packed)
      elements += shape.batch * shape.key_tiles() * kKeyTile *
                  (shape.k_heads * shape.head_dim + shape.v_heads * shape.value_dim);
    const Cost cost{.flops = region.flops(),
                    .bytes = region.bytes(),
                    .flops_fraction = tiling.packed ? 0.7 : 0.1,
                    .bytes_fraction = 0.7};
    return {
        make_config({{"rows", tiling.rows}, {"heads", tiling.heads}}, cost, elements * element)};
  }

  std::unique_ptr<Kernel> build(const Graph& graph, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    return build_for_precision<AttentionKernel>(region, graph, device);
  }
};

}  // namespace

const Engine& attention_tiled_engine() {
  static const AttentionEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

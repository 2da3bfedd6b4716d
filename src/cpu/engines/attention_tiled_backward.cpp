// Attention backward in tiles, with recomputed scores. A thread owns some keys of one head,
// iterates over all queries that attend to them and accumulates dk and dv. If there are fewer heads
// than threads, the keys of a head are split into parts, whose partials of dq are added in a fixed
// order. Every accumulator belongs to one thread and one order: results are bitwise reproducible.
//   p = exp(s - stats), dp = keep (do v^T), delta = sum(do o), dm = p (dp - delta)
//   ds = dm * modifier' * cap', dq = scale ds k, dk = scale ds^T q, dv = (keep p)^T do
//   dbias = dm, dsink = -sum(exp(sink - stats) delta)
#include "cpu/engines/attention_key_gradients.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/gemm/gemm.hpp"

namespace ashlar::cpu {

namespace {

using BackwardIn = AttentionBackward::In;
using BackwardOut = AttentionBackward::Out;

// Number of parts of the keys of a head.
std::int64_t key_parts(const AttentionShape& shape, std::int64_t threads) {
  constexpr std::int64_t kMost = 8;  // each needs a partial dq
  const std::int64_t heads =
      std::max<std::int64_t>(shape.batch * std::min(shape.k_heads, shape.v_heads), 1);
  const std::int64_t wanted = heads >= 2 * threads ? 1 : divide_up(2 * threads, heads);
  return std::clamp<std::int64_t>(wanted, 1, std::clamp<std::int64_t>(shape.key_tiles(), 1, kMost));
}

template <class T>
class AttentionBackwardKernel final : public Kernel {
 public:
  AttentionBackwardKernel(const Region& region, const Graph& graph, const DeviceProps& device)
      : tiles_(region, graph, scratch_layout_, std::max(device.compute_units, 1)),
        parts_(key_parts(tiles_.problem.shape, tiles_.threads)),
        dk_(region, graph, BackwardOut::dk, BackwardIn::k, BackwardIn::page_table_k,
            {BackwardIn::descale_dp, BackwardIn::descale_q}, BackwardIn::scale_dk,
            tiles_.problem.shape, scratch_layout_),
        dv_(region, graph, BackwardOut::dv, BackwardIn::v, BackwardIn::page_table_v,
            {BackwardIn::descale_s, BackwardIn::descale_do}, BackwardIn::scale_dv,
            tiles_.problem.shape, scratch_layout_),
        dq_descale_(region, {BackwardIn::descale_dp, BackwardIn::descale_k}),
        dq_scale_(region, {BackwardIn::scale_dq}),
        dq_(region.epilogue, 3, graph),
        dbias_(output_program(region.anchor->outputs, BackwardOut::dbias), 3, graph),
        dsink_(output_program(region.anchor->outputs, BackwardOut::dsink), 3, graph),
        sink_(input_program(region, BackwardIn::sink), {1, tiles_.problem.shape.heads, 1, 1}, 3) {
    const AttentionShape& shape = tiles_.problem.shape;
    const auto reserve_scratch = [&](const char* name, std::int64_t count, std::int64_t elements) {
      return scratch_layout_.add(
          name, checked_mul(checked_mul(count, elements), static_cast<std::int64_t>(sizeof(T))));
    };
    part_tiles_ = divide_up(shape.key_tiles(), parts_);
    sum_elements_ = part_tiles_ * kKeyTile * (tiles_.d + tiles_.dv);
    sums_ = reserve_scratch("gradients of keys", tiles_.threads, sum_elements_);
    const bool apart = parts_ > 1 && dq_.present();
    padded_queries_ = round_up(shape.queries, kQueryTile);
    dq_parts_ =
        reserve_scratch("gradients of queries", apart ? shape.batch * shape.heads * parts_ : 0,
                        checked_mul(padded_queries_, shape.head_dim));
    if (!dbias_.present()) return;
    bias_dims_ = region.anchor->outputs[BackwardOut::dbias].dims;
    bias_sums_ = reserve_scratch("gradients of the bias", tiles_.threads, kQueryTile * kKeyTile);
  }

  void run(const KernelContext& context) const override {
    const Run run(*this, context);
    run.summarise_rows();
    const AttentionShape& shape = tiles_.problem.shape;
    const bool dq = dq_.present(), dk = dk_.present(), dv = dv_.present();
    if (shape.k_heads == shape.v_heads) {
      run.gradients(shape.k_heads, dq, dk, dv);
    } else {
      run.gradients(shape.k_heads, dq, dk, false);
      run.gradients(shape.v_heads, false, false, dv);
    }
    run.dk.gather();
    run.dv.gather();
    if (dbias_.present()) run.bias_gradients();
    if (dsink_.present()) run.sink_gradients();
    run.largest.store();
    tiles_.problem.dump_rng(run.problem, context);
  }

 private:
  using Tiles = BackwardTiles<T>;
  using Buffers = typename Tiles::Buffers;
  using Queries = typename Tiles::Queries;
  using KeyRange = typename Tiles::Bound::KeyRange;
  // Maximum panels per query tile: the portable target's NR of 2.
  static constexpr std::int64_t kMaxPanels = kQueryTile / 2;

  struct Run : Tiles::Bound {
    using Tiles::Bound::largest;
    using Tiles::Bound::ops;
    using Tiles::Bound::problem;
    using Tiles::Bound::query_tiles;
    using Tiles::Bound::shape;
    using Tiles::Bound::tiles;
    const AttentionBackwardKernel& kernel;
    T dq_factor, dq_scale;
    typename KeyGradientRows<T>::Bound dk, dv;
    typename RaggedRows<T>::Bound dq, dbias, dsink;
    typename Operand<T>::Bound sink;
    T *sums, *dq_parts, *bias_sums;

    Run(const AttentionBackwardKernel& owner, const KernelContext& context)
        : Tiles::Bound(owner.tiles_, context, owner.scratch_layout_),
          kernel(owner),
          dq_factor(this->ds_operand() * owner.dq_descale_.load(context)),
          dq_scale(owner.dq_scale_.load(context)),
          dk(owner.dk_, context, owner.scratch_layout_, this->ds_operand(), kAmaxDk, largest),
          dv(owner.dv_, context, owner.scratch_layout_, this->p_operand(), kAmaxDv, largest),
          dq(owner.dq_.bind(context)),
          dbias(owner.dbias_.bind(context)),
          dsink(owner.dsink_.bind(context)),
          sink(owner.sink_.bind(context)),
          sums(context.scratch<T>(owner.scratch_layout_, owner.sums_)),
          dq_parts(context.scratch<T>(owner.scratch_layout_, owner.dq_parts_)),
          bias_sums(context.scratch<T>(owner.scratch_layout_, owner.bias_sums_)) {}

    // Outputs of a pass over `heads` heads of keys, of values, or of both if they agree.
    struct Wanted {
      bool dq, dk, dv;
    };
    void gradients(std::int64_t heads, bool want_dq, bool want_dk, bool want_dv) const {
      const Wanted wanted{want_dq, want_dk, want_dv};
      if (!want_dq && !want_dk && !want_dv) return;
      const std::int64_t parts = kernel.parts_;
      this->over(shape.batch * heads * parts, [&](std::int64_t item, int thread) {
        key_part(wanted, heads, item / parts / heads, item / parts % heads, item % parts, thread);
      });
      if (want_dq && parts > 1) add_query_parts();
    }

    // Key tile of `slot` of a part. Tiles are dealt to the parts back and forth (boustrophedon),
    // which balances causal masks.
    std::int64_t tile_of(std::int64_t part, std::int64_t slot) const {
      return slot * kernel.parts_ + (slot % 2 == 0 ? part : kernel.parts_ - 1 - part);
    }

    void key_part(const Wanted& wanted, std::int64_t heads, std::int64_t b, std::int64_t head,
                  std::int64_t part, int thread) const {
      Buffers t = this->buffers_of(thread);
      T* d_k = sums + thread * kernel.sum_elements_;
      T* d_v = d_k + kernel.part_tiles_ * kKeyTile * tiles.d;
      std::fill_n(d_k, kernel.sum_elements_, T{0});
      const std::int64_t group = shape.heads / heads;
      for (std::int64_t h = head * group; h < (head + 1) * group; ++h)
        for (std::int64_t first = 0; first < shape.queries; first += tiles.block) {
          this->pack_queries(b, h, first, std::min(tiles.block, shape.queries - first), t);
          for (std::int64_t slot = 0; slot < kernel.part_tiles_; ++slot) {
            const std::int64_t tile = tile_of(part, slot);
            if (tile < shape.key_tiles())
              key_tile(wanted, t, tile, d_k + slot * kKeyTile * tiles.d,
                       d_v + slot * kKeyTile * tiles.dv);
          }
          if (wanted.dq) finish_queries(t, part);
        }
      for (std::int64_t slot = 0; slot < kernel.part_tiles_; ++slot) {
        const std::int64_t first = tile_of(part, slot) * kKeyTile;
        for (std::int64_t r = 0; r < kKeyTile && first + r < shape.keys; ++r) {
          const std::int64_t at = slot * kKeyTile + r;
          if (wanted.dk) dk.store(b, head, first + r, d_k + at * tiles.d, thread);
          if (wanted.dv) dv.store(b, head, first + r, d_v + at * tiles.dv, thread);
        }
      }
    }

    void key_tile(const Wanted& wanted, Buffers& t, std::int64_t tile, T* d_k, T* d_v) const {
      const ScoreColumns keys{tile * kKeyTile, std::min((tile + 1) * kKeyTile, shape.keys)};
      bool packed = false;
      for (std::int64_t q = 0; q * kQueryTile < t.queries.rows; ++q) {
        if (this->hidden(t, q, keys)) continue;
        if (!std::exchange(packed, true)) this->pack_keys(tile, t);
        const std::int64_t panels =
            tiles.gemm.panels(std::min(kQueryTile, t.queries.rows - q * kQueryTile));
        KeyRange meetings[kMaxPanels];
        bool masked = false;
        for (std::int64_t p = 0; p < panels; ++p) {
          const std::int64_t first = q * kQueryTile + p * this->columns();
          meetings[p] = this->key_range(t, first);
          masked |= meetings[p].masked;
          if (meetings[p].begin < meetings[p].end) this->recompute(t, first, meetings[p], p);
        }
        const Queries& rows = t.queries;
        if (wanted.dv)
          add_queries(t, q, panels, meetings, t.p, rows.d_o + q * kQueryTile * tiles.dv, tiles.dv,
                      !masked || rows.do_finite[q], d_v);
        if (wanted.dk)
          add_queries(t, q, panels, meetings, t.ds, rows.q + q * kQueryTile * tiles.d, tiles.d,
                      !masked || rows.q_finite[q], d_k);
        if (wanted.dq) add_keys(t, q, panels, meetings, !masked || t.keys.finite);
      }
    }

    // key_acc += factors^T rows, for p^T do and ds^T q. A zero factor does not cancel NaN or
    // infinity: unless `safe`, a row is multiplied only with the keys that its query attends to.
    void add_queries(const Buffers& t, std::int64_t tile, std::int64_t panels,
                     const KeyRange* meetings, const T* recompute, const T* rows,
                     std::int64_t width, bool safe, T* key_acc) const {
      const std::int64_t columns = this->columns(), step = tiles.gemm.rows();
      if (!safe) {
        for_each_run(t, tile, [&](std::int64_t r, std::int64_t j) {
          const T factor = recompute[(r / columns * kKeyTile + j) * columns + r % columns];
          for (std::int64_t w = 0; w < width; w += columns)
            ops.axpy(factor, rows + w * kQueryTile + r * columns, columns, key_acc + j * width + w);
        });
        return;
      }
      std::int64_t offsets[kMaxPanels];
      for (std::int64_t p = 0; p < panels; ++p) offsets[p] = p * kKeyTile * columns;
      const auto meets = [&](std::int64_t p, std::int64_t r) {
        return p < panels && meetings[p].begin <= r && r < meetings[p].end;
      };
      for (std::int64_t w = 0; w < width; w += columns)
        for (std::int64_t r = 0; r < t.keys.count; r += step)
          for (std::int64_t p = 0, end; p < panels; p = end + 1) {
            for (end = p; meets(end, r);) ++end;
            if (end > p)
              tiles.gemm.multiply(
                  {std::min(step, t.keys.count - r), columns, recompute + r * columns, columns,
                   rows + w * kQueryTile + p * columns * columns, columns, key_acc + r * width + w,
                   width, true},
                  end - p, offsets + p);
          }
    }
    // dq^T += k^T ds^T, with the same care for NaN.
    void add_keys(Buffers& t, std::int64_t tile, std::int64_t panels, const KeyRange* meetings,
                  bool safe) const {
      const std::int64_t columns = this->columns(), step = tiles.gemm.rows();
      T* dqt = t.queries.dqt + tile * kQueryTile * shape.head_dim;
      if (!safe) {
        for_each_run(t, tile, [&](std::int64_t r, std::int64_t j) {
          const T factor = t.ds[(r / columns * kKeyTile + j) * columns + r % columns];
          T* sum = dqt + r / columns * columns * shape.head_dim + r % columns;
          for (std::int64_t l = 0; l < shape.head_dim; ++l)
            sum[l * columns] += factor * t.keys.k[j * tiles.d + l];
        });
        return;
      }
      for (std::int64_t p = 0; p < panels; ++p) {
        const KeyRange& at = meetings[p];
        if (at.begin == at.end) continue;
        for (std::int64_t l = 0; l < shape.head_dim; l += step)
          tiles.gemm({std::min(step, shape.head_dim - l), at.end - at.begin,
                      t.keys.kt + l * kKeyTile + at.begin, kKeyTile,
                      t.ds + (p * kKeyTile + at.begin) * columns, columns,
                      dqt + (p * shape.head_dim + l) * columns, columns, true});
      }
    }
    // Calls body(row, key) for all unmasked pairs of a tile, relative to the tiles.
    template <class Body>
    void for_each_run(const Buffers& t, std::int64_t tile, const Body& body) const {
      const Queries& q = t.queries;
      const ScoreColumns keys = this->columns_of(t.keys);
      for (std::int64_t r = 0; r < std::min(kQueryTile, q.rows - tile * kQueryTile); ++r) {
        const std::int64_t row = tile * kQueryTile + r;
        problem.mask.for_each_run(q.b, q.h, q.first + row, this->visible_to(q, row).within(keys),
                                  [&](ScoreColumns run) {
                                    for (std::int64_t j = run.begin; j < run.end; ++j)
                                      body(r, j - keys.begin);
                                  });
      }
    }

    T* query_part(std::int64_t b, std::int64_t h, std::int64_t part, std::int64_t row) const {
      return dq_parts +
             (((b * shape.heads + h) * kernel.parts_ + part) * kernel.padded_queries_ + row) *
                 shape.head_dim;
    }
    // Stores dq of the packed queries after all keys of the part.
    void finish_queries(const Buffers& t, std::int64_t part) const {
      const Queries& q = t.queries;
      if (kernel.parts_ > 1) {
        std::copy_n(q.dqt, round_up(q.rows, kQueryTile) * shape.head_dim,
                    query_part(q.b, q.h, part, q.first));
        return;
      }
      for (std::int64_t first = 0; first < q.rows; first += this->columns())
        store_queries(q.b, q.h, q.first + first, q.dqt + first * shape.head_dim, t.staging,
                      t.thread);
    }
    void add_query_parts() const {
      this->over(shape.batch * shape.heads * query_tiles(), [&](std::int64_t item, int thread) {
        const std::int64_t row = item % query_tiles() * kQueryTile,
                           h = item / query_tiles() % shape.heads,
                           b = item / query_tiles() / shape.heads;
        T* sum = query_part(b, h, 0, row);
        for (std::int64_t part = 1; part < kernel.parts_; ++part)
          ops.fold_into(Fold::sum, Premap::identity, query_part(b, h, part, row),
                        kQueryTile * shape.head_dim, sum);
        for (std::int64_t r = 0; r < kQueryTile && row + r < shape.queries; r += this->columns())
          store_queries(b, h, row + r, sum + r * shape.head_dim, this->buffers_of(thread).staging,
                        thread);
      });
    }
    // Stores a panel of dq^T.
    void store_queries(std::int64_t b, std::int64_t h, std::int64_t first, const T* panel, T* rows,
                       int thread) const {
      transpose_rows(panel, this->columns(), shape.head_dim, this->columns(), rows, tiles.d);
      for (std::int64_t r = 0; r < std::min(this->columns(), shape.queries - first); ++r) {
        T* row = rows + r * tiles.d;
        ops.multiply(row, {&dq_factor, false}, shape.head_dim, row);
        largest.add(kAmaxDq, thread, row, shape.head_dim);
        if (kernel.dq_scale_.present()) ops.multiply(row, {&dq_scale, false}, shape.head_dim, row);
        dq.store({b, h, first + r, 0}, shape.head_dim, row);
      }
    }

    // Every row of dbias (a single row if bias broadcasts along queries) sums over the batches and
    // heads it broadcasts to.
    void bias_gradients() const {
      const Dims& bias = kernel.bias_dims_;
      const bool per_row = bias[2] != 1, per_column = bias[3] != 1;
      const std::int64_t row_tiles = per_row ? query_tiles() : 1,
                         column_tiles = per_column ? shape.key_tiles() : 1;
      this->over(bias[0] * bias[1] * row_tiles * column_tiles, [&](std::int64_t item, int thread) {
        const std::int64_t column_tile = item % column_tiles,
                           row_tile = item / column_tiles % row_tiles;
        const std::int64_t bias_h = item / column_tiles / row_tiles % bias[1],
                           bias_b = item / column_tiles / row_tiles / bias[1];
        Buffers t = this->buffers_of(thread);
        T* sum_rows = bias_sums + thread * kQueryTile * kKeyTile;
        const std::int64_t count =
            per_row ? std::min(kQueryTile, shape.queries - row_tile * kQueryTile) : 1;
        std::fill_n(sum_rows, count * kKeyTile, T{0});
        // The range of an axis that an element of bias broadcasts to.
        const auto served = [](std::int64_t extent, std::int64_t own, std::int64_t all) {
          return extent == 1 ? ScoreColumns{0, all} : ScoreColumns{own, own + 1};
        };
        const ScoreColumns batches = served(bias[0], bias_b, shape.batch),
                           heads = served(bias[1], bias_h, shape.heads),
                           rows = served(bias[2], row_tile, query_tiles()),
                           columns = served(bias[3], column_tile, shape.key_tiles());
        for (std::int64_t b = batches.begin; b < batches.end; ++b)
          for (std::int64_t h = heads.begin; h < heads.end; ++h)
            for (std::int64_t row = rows.begin; row < rows.end; ++row) {
              this->pack_queries(b, h, row * kQueryTile,
                                 std::min(kQueryTile, shape.queries - row * kQueryTile), t);
              for (std::int64_t tile = columns.begin; tile < columns.end; ++tile)
                add_bias_tile(t, tile, per_row, per_column, sum_rows);
            }
        const std::int64_t first_column = column_tile * kKeyTile;
        const std::int64_t width = per_column ? std::min(kKeyTile, shape.keys - first_column) : 1;
        for (std::int64_t r = 0; r < count; ++r)
          dbias.store({bias_b, bias_h, row_tile * kQueryTile + r, first_column}, width,
                      sum_rows + r * kKeyTile);
      });
    }
    // Adds the score gradients of a tile of queries and a tile of keys.
    void add_bias_tile(Buffers& t, std::int64_t tile, bool per_row, bool per_column,
                       T* sum_rows) const {
      const ScoreColumns keys{tile * kKeyTile, std::min((tile + 1) * kKeyTile, shape.keys)};
      if (this->hidden(t, 0, keys)) return;
      this->pack_keys(tile, t);
      for (std::int64_t first = 0; first < t.queries.rows; first += this->columns()) {
        const KeyRange at = this->key_range(t, first);
        if (at.begin == at.end) continue;
        this->score_gradients(t, first, at);
        for (std::int64_t i = 0; i < std::min(this->columns(), t.queries.rows - first); ++i) {
          T* sum = sum_rows + (per_row ? first + i : 0) * kKeyTile;
          const T* ds = t.ds_rows + i * kKeyTile + at.begin;
          if (per_column)
            ops.fold_into(Fold::sum, Premap::identity, ds, at.end - at.begin, sum + at.begin);
          else
            sum[0] += ops.fold(Fold::sum, Premap::identity, ds, at.end - at.begin);
        }
      }
    }

    void sink_gradients() const {
      this->over(shape.heads, [&](std::int64_t h, int) {
        T value;
        static constexpr T kAbsent = 0;
        sink.load({0, h, 0, 0}, 1, &value, &kAbsent);
        T sum = 0;
        for (std::int64_t b = 0; b < shape.batch; ++b)
          for (std::int64_t i = 0; i < shape.queries; ++i) {
            const std::int64_t position = this->row_position(b, h, i);
            const T stats = this->row_stats[position];
            if (stats != -std::numeric_limits<T>::infinity())
              sum -= std::exp(value - stats) * this->row_delta[position];
          }
        dsink.store({0, h, 0, 0}, 1, &sum);
      });
    }
  };

  Tiles tiles_;
  std::int64_t parts_, part_tiles_, sum_elements_, padded_queries_;
  int sums_, dq_parts_, bias_sums_ = 0;
  KeyGradientRows<T> dk_, dv_;
  ScaleOperand<T> dq_descale_, dq_scale_;
  Dims bias_dims_;
  RaggedRows<T> dq_, dbias_, dsink_;
  Operand<T> sink_;
};

class AttentionBackwardEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.attention_tiled_backward"; }
  EngineKind kind() const override { return EngineKind::specialised_fusion; }
  std::string_view description() const override {
    return "tiled attention backward with recomputed scores";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    const auto* op = region.anchor_as<AttentionBackward>();
    if (!op) return Support::other_operation("the anchor is not attention backward");
    const Dims scores = AttentionShape(*region.anchor, *op).scores();
    if (Support fit = fits(modifier_program(*region.anchor, *op, scores)); !fit) return fit;
    if (Support fit = fits(modifier_gradient_program(*region.anchor, *op, scores)); !fit)
      return fit;
    return supports_operands<AttentionBackward>(region);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const AttentionShape shape(*region.anchor, *region.anchor_as<AttentionBackward>());
    const std::int64_t element = bit_width(region.precision()) / 8;
    const std::int64_t threads = std::max(device.compute_units, 1);
    const std::int64_t parts = key_parts(shape, threads);
    const std::int64_t rows = shape.batch * shape.heads * shape.queries;
    const std::int64_t elements =
        2 * rows + (parts > 1 ? parts * rows * shape.head_dim : 0) +
        threads * (BackwardTiles<float>::thread_elements(shape) +
                   divide_up(shape.keys, parts) * (shape.head_dim + shape.value_dim));
    const Cost cost{.flops = region.flops(),
                    .bytes = 2 * region.bytes(),
                    .flops_fraction = 0.6,
                    .bytes_fraction = 0.5};
    return {make_config({}, cost, elements * element)};
  }

  std::unique_ptr<Kernel> build(const Graph& graph, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    return build_for_precision<AttentionBackwardKernel>(region, graph, device);
  }
};

}  // namespace

const Engine& attention_tiled_backward_engine() {
  static const AttentionBackwardEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

// Attention backward in tiles, with scores computed anew: one pass over queries for dq, one over
// keys for dk and dv, one over the bias. Every sum belongs to one thread and one order, so results
// repeat bit by bit.
//   p = exp(s - stats), dp = keep (do v^T), delta = sum(do o), dm = p (dp - delta)
//   ds = dm * modifier' * cap', dq = scale ds k, dk = scale ds^T q, dv = (keep p)^T do
//   dbias = dm, dsink = -sum(exp(sink - stats) delta)
#include "cpu/engines/attention_key_gradients.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"

namespace ashlar::cpu {

namespace {

using In = AttentionBackward::In;
using Out = AttentionBackward::Out;

template <class T>
class AttentionBackwardKernel final : public Kernel {
 public:
  AttentionBackwardKernel(const Region& region, const Graph& graph, const DeviceProps& device)
      : tiles_(region, graph, scratch_book_, std::max(device.compute_units, 1)),
        dk_(region, graph, Out::dk, In::k, In::page_table_k, {In::descale_dp, In::descale_q},
            In::scale_dk, tiles_.problem.shape, scratch_book_),
        dv_(region, graph, Out::dv, In::v, In::page_table_v, {In::descale_s, In::descale_do},
            In::scale_dv, tiles_.problem.shape, scratch_book_),
        dq_descale_(region, {In::descale_dp, In::descale_k}),
        dq_scale_(region, {In::scale_dq}),
        dq_(region.epilogue, 3, graph),
        dbias_(output_program(region.anchor->outputs, Out::dbias), 3, graph),
        dsink_(output_program(region.anchor->outputs, Out::dsink), 3, graph),
        sink_(input_program(region, In::sink), {1, tiles_.problem.shape.heads, 1, 1}, 3) {
    if (dbias_.present()) bias_dims_ = region.anchor->outputs[Out::dbias].dims;
  }

  void run(const KernelContext& context) const override {
    const Run run(*this, context);
    run.pack();
    if (dq_.present()) run.query_gradients();
    const AttentionShape& shape = tiles_.problem.shape;
    if (shape.k_heads == shape.v_heads) {
      run.key_gradients(shape.k_heads, dk_.present(), dv_.present());
    } else {
      run.key_gradients(shape.k_heads, dk_.present(), false);
      run.key_gradients(shape.v_heads, false, dv_.present());
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
  using Place = typename Tiles::Place;
  using Buffers = typename Tiles::Buffers;

  struct Run : Tiles::Bound {
    using Tiles::Bound::largest;
    using Tiles::Bound::ops;
    using Tiles::Bound::packed_do;
    using Tiles::Bound::packed_q;
    using Tiles::Bound::problem;
    using Tiles::Bound::query_tiles;
    using Tiles::Bound::shape;
    using Tiles::Bound::tiles;
    const AttentionBackwardKernel& kernel;
    T dq_factor, dq_scale;
    typename KeyGradientRows<T>::Bound dk, dv;
    typename GuardedRows<T>::Bound dq, dbias, dsink;
    typename Operand<T>::Bound sink;

    Run(const AttentionBackwardKernel& owner, const KernelContext& context)
        : Tiles::Bound(owner.tiles_, context, owner.scratch_book_),
          kernel(owner),
          dq_factor(this->ds_factor() * owner.dq_descale_.load(context)),
          dq_scale(owner.dq_scale_.load(context)),
          dk(owner.dk_, context, owner.scratch_book_, this->ds_factor(), kAmaxDk, largest),
          dv(owner.dv_, context, owner.scratch_book_, this->p_factor(), kAmaxDv, largest),
          dq(owner.dq_.bind(context)),
          dbias(owner.dbias_.bind(context)),
          dsink(owner.dsink_.bind(context)),
          sink(owner.sink_.bind(context)) {}

    Place place(std::int64_t b, std::int64_t h, std::int64_t first_row, std::int64_t tile) const {
      return {b,         h,
              first_row, std::min(kQueryTile, shape.queries - first_row),
              tile,      problem.mask.batch(b)};
    }

    void query_gradients() const {
      const std::int64_t d = tiles.d;
      this->over(shape.batch * shape.heads * query_tiles(), [&](std::int64_t item, int thread) {
        Place at = place(item / query_tiles() / shape.heads, item / query_tiles() % shape.heads,
                         item % query_tiles() * kQueryTile, 0);
        const Buffers t = this->buffers_of(thread);
        const Columns seen = problem.mask.columns(at.batch, at.first_row, at.rows);
        std::fill(t.query, t.query + at.rows * d, T{0});
        for (at.key_tile = seen.empty() ? 0 : seen.begin / kKeyTile;
             at.key_tile * kKeyTile < seen.end; ++at.key_tile)
          if (!this->hidden(at)) add_keys(at, t, this->factors(at, t, thread));
        for (std::int64_t r = 0; r < at.rows; ++r) {
          T* row = t.query + r * d;
          ops.multiply(row, {&dq_factor, false}, shape.head_dim, row);
          largest.add(kAmaxDq, thread, row, shape.head_dim);
          if (kernel.dq_scale_.present())
            ops.multiply(row, {&dq_scale, false}, shape.head_dim, row);
          dq.store({at.b, at.h, at.first_row + r, 0}, shape.head_dim, row);
        }
      });
    }
    // query += ds k. A gradient of 0 does not stop NaN or infinity, so that a key which some rows
    // do not see meets only those that do.
    void add_keys(const Place& at, const Buffers& t, bool partly_seen) const {
      const std::int64_t d = tiles.d, count = this->columns_of(at).size();
      const T* keys = this->k_rows(at);
      if (!partly_seen || all_finite(ops, keys, count * d)) {
        tiles.product({at.rows, d, count, t.ds, kKeyTile, 1, keys, d, t.query, d, true});
        return;
      }
      for_each_run(at, [&](std::int64_t r, std::int64_t first, std::int64_t length) {
        tiles.product({1, d, length, t.ds + r * kKeyTile + first, kKeyTile, 1, keys + first * d, d,
                       t.query + r * d, d, true});
      });
    }
    // sums += factors^T rows, for ds^T q and p^T do; careful in the same way.
    void add_queries(const Place& at, const T* factors, const T* rows, std::int64_t width,
                     bool partly_seen, T* sums) const {
      if (!partly_seen || all_finite(ops, rows, at.rows * width)) {
        tiles.product({this->columns_of(at).size(), width, at.rows, factors, 1, kKeyTile, rows,
                       width, sums, width, true});
        return;
      }
      for_each_run(at, [&](std::int64_t r, std::int64_t first, std::int64_t length) {
        tiles.product({length, width, 1, factors + r * kKeyTile + first, 1, kKeyTile,
                       rows + r * width, width, sums + first * width, width, true});
      });
    }
    // Calls body(row, first column, columns) for what the rows of a tile see, relative to the tile.
    template <class Body>
    void for_each_run(const Place& at, const Body& body) const {
      for (std::int64_t r = 0; r < at.rows; ++r)
        problem.mask.for_each_run(
            at.b, at.h, at.first_row + r, this->seen_by(at, r),
            [&](Columns run) { body(r, run.begin - at.key_tile * kKeyTile, run.size()); });
    }

    // `heads` of keys, of values, or of both where they agree.
    void key_gradients(std::int64_t heads, bool want_dk, bool want_dv) const {
      if (!want_dk && !want_dv) return;
      const std::int64_t key_tiles = shape.key_tiles(), d = tiles.d, dv_padded = tiles.dv;
      const std::int64_t group = shape.heads / std::max<std::int64_t>(heads, 1);
      this->over(shape.batch * heads * key_tiles, [&](std::int64_t item, int thread) {
        const std::int64_t tile = item % key_tiles, head = item / key_tiles % heads,
                           b = item / key_tiles / heads;
        const std::int64_t count = std::min(kKeyTile, shape.keys - tile * kKeyTile);
        const Buffers t = this->buffers_of(thread);
        std::fill(t.d_k, t.d_k + count * d, T{0});
        std::fill(t.d_v, t.d_v + count * dv_padded, T{0});
        for (std::int64_t h = head * group; h < (head + 1) * group; ++h)
          for (std::int64_t first = 0; first < shape.queries; first += kQueryTile) {
            const Place at = place(b, h, first, tile);
            if (this->hidden(at)) continue;
            const bool partly_seen = this->factors(at, t, thread);
            const std::int64_t position = this->row_position(b, h, first);
            if (want_dk) add_queries(at, t.ds, packed_q + position * d, d, partly_seen, t.d_k);
            if (want_dv)
              add_queries(at, t.p, packed_do + position * dv_padded, dv_padded, partly_seen, t.d_v);
          }
        for (std::int64_t r = 0; r < count; ++r) {
          const std::int64_t j = tile * kKeyTile + r;
          if (want_dk) dk.store(b, head, j, t.d_k + r * d, thread);
          if (want_dv) dv.store(b, head, j, t.d_v + r * dv_padded, thread);
        }
      });
    }

    // Every row of dbias (a single one where bias broadcasts along queries) gathers from the
    // batches and heads it serves.
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
        const Buffers t = this->buffers_of(thread);
        alignas(64) T sums[kQueryTile][kKeyTile] = {};
        const std::int64_t sum_rows =
            per_row ? std::min(kQueryTile, shape.queries - row_tile * kQueryTile) : 1;
        const auto gather = [&](const Place& at) {
          if (this->hidden(at)) return;
          this->score_gradients(at, t);
          const std::int64_t count = this->columns_of(at).size();
          for (std::int64_t r = 0; r < at.rows; ++r) {
            T* sum = sums[per_row ? r : 0];
            const T* ds = t.ds + r * kKeyTile;
            if (per_column)
              ops.fold_into(Fold::sum, Premap::identity, ds, count, sum);
            else
              sum[0] += ops.fold(Fold::sum, Premap::identity, ds, count);
          }
        };
        // Along an axis where bias has extent 1, all positions; else its own.
        const auto served = [](std::int64_t extent, std::int64_t own, std::int64_t all) {
          return extent == 1 ? Columns{0, all} : Columns{own, own + 1};
        };
        const Columns batches = served(bias[0], bias_b, shape.batch),
                      heads = served(bias[1], bias_h, shape.heads),
                      rows = served(bias[2], row_tile, query_tiles()),
                      columns = served(bias[3], column_tile, shape.key_tiles());
        for (std::int64_t b = batches.begin; b < batches.end; ++b)
          for (std::int64_t h = heads.begin; h < heads.end; ++h)
            for (std::int64_t row = rows.begin; row < rows.end; ++row)
              for (std::int64_t column = columns.begin; column < columns.end; ++column)
                gather(place(b, h, row * kQueryTile, column));
        const std::int64_t first_column = column_tile * kKeyTile;
        const std::int64_t width = per_column ? std::min(kKeyTile, shape.keys - first_column) : 1;
        for (std::int64_t r = 0; r < sum_rows; ++r)
          dbias.store({bias_b, bias_h, row_tile * kQueryTile + r, first_column}, width, sums[r]);
      });
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
  KeyGradientRows<T> dk_, dv_;
  FactorOperand<T> dq_descale_, dq_scale_;
  Dims bias_dims_;
  GuardedRows<T> dq_, dbias_, dsink_;
  Operand<T> sink_;
};

class AttentionBackwardEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.attention_tiled_backward"; }
  EngineKind kind() const override { return EngineKind::specialised_fusion; }
  std::string_view description() const override {
    return "gradients of attention in tiles, scores computed anew";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    const auto* op = region.anchor_as<AttentionBackward>();
    if (!op) return Support::other_operation("the anchor is no attention gradient");
    const Dims scores = AttentionShape(*region.anchor, *op).scores();
    if (Support fit = fits(modifier_program(*region.anchor, *op, scores)); !fit) return fit;
    if (Support fit = fits(modifier_gradient_program(*region.anchor, *op, scores)); !fit)
      return fit;
    return supports_operands<AttentionBackward>(region);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const AttentionShape shape(*region.anchor, *region.anchor_as<AttentionBackward>());
    const std::int64_t element = bit_width(region.precision()) / 8;
    const std::int64_t dims = shape.head_dim + shape.value_dim;
    const std::int64_t tiles = 2 * kQueryTile * kKeyTile + (kQueryTile + kKeyTile) * dims;
    const std::int64_t elements =
        shape.batch * shape.heads * shape.queries * (dims + 2) +
        shape.batch * shape.keys *
            (2 * shape.k_heads * shape.head_dim + shape.v_heads * shape.value_dim) +
        std::max(device.compute_units, 1) * tiles;
    // Scores and their gradients are computed twice: seven products for the five that are needed.
    const Cost cost{.flops = 1.4 * region.flops(),
                    .bytes = 2 * region.bytes(),
                    .flops_fraction = 0.5,
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

// Attention backward in tiles, with scores computed anew: one pass over queries for dq, one over
// keys for dk and dv, one over the bias. Every sum belongs to one thread and one order, so results
// repeat bit by bit.
//   p = exp(s - stats), dp = keep (do v^T), delta = sum(do o), ds = p (dp - delta)
//   dq = scale ds k     dk = scale ds^T q     dv = (keep p)^T do     dbias = ds
#include "cpu/engines/attention_problem.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

using In = AttentionBackward::In;
using Out = AttentionBackward::Out;

constexpr std::int64_t kQueryTile = 60;  // a multiple of the product's 6 rows

template <class T>
class AttentionBackwardKernel final : public Kernel {
 public:
  AttentionBackwardKernel(const Region& region, const Graph& graph, const DeviceProps& device)
      : problem_(graph, region),
        ops_(row_ops<T>()),
        product_(tile_product<T>()),
        d_(padded_to_tile<T>(problem_.shape().head_dim)),
        dv_(padded_to_tile<T>(problem_.shape().value_dim)),
        threads_(std::max(device.compute_units, 1)) {
    const auto input = [&](int slot) {
      return GuardedRows<T>(input_program(region, slot), 3, graph);
    };
    const auto output = [&](int slot) {
      return GuardedRows<T>(output_program(region.anchor->outputs, slot), 3, graph);
    };
    q_ = input(In::q), k_ = input(In::k), v_ = input(In::v);
    o_ = input(In::o), d_o_ = input(In::d_o), stats_ = input(In::stats);
    dq_ = GuardedRows<T>(region.epilogue, 3, graph);
    dk_ = output(Out::dk), dv_out_ = output(Out::dv), dbias_ = output(Out::dbias);
    if (dbias_.present()) bias_dims_ = region.anchor->outputs[Out::dbias].dims;

    const AttentionShape& shape = problem_.shape();
    const auto book = [&](const char* name, std::int64_t elements) {
      return scratch_book_.add(name, checked_mul(elements, static_cast<std::int64_t>(sizeof(T))));
    };
    const std::int64_t query_rows =
        checked_mul(checked_mul(shape.batch, shape.heads), shape.queries);
    const std::int64_t key_rows = checked_mul(shape.batch, shape.key_tiles() * kKeyTile);
    packed_q_ = book("packed q", checked_mul(query_rows, d_));
    packed_do_ = book("packed do", checked_mul(query_rows, dv_));
    packed_k_ = book("packed k", checked_mul(checked_mul(key_rows, shape.k_heads), d_));
    packed_kt_ =
        book("transposed k", checked_mul(checked_mul(key_rows, shape.k_heads), shape.head_dim));
    packed_vt_ =
        book("transposed v", checked_mul(checked_mul(key_rows, shape.v_heads), shape.value_dim));
    row_stats_ = book("stats", query_rows);
    row_delta_ = book("delta", query_rows);
    thread_elements_ = 2 * kQueryTile * kKeyTile + kKeyTile * (d_ + dv_) + kQueryTile * (d_ + dv_);
    per_thread_ = book("tiles", checked_mul(threads_, thread_elements_));
  }

  void run(const KernelContext& context) const override {
    const Run run(*this, context);
    run.pack();
    if (dq_.present()) run.query_gradients();
    const AttentionShape& shape = problem_.shape();
    if (shape.k_heads == shape.v_heads) {
      run.key_gradients(shape.k_heads, dk_.present(), dv_out_.present());
    } else {
      run.key_gradients(shape.k_heads, dk_.present(), false);
      run.key_gradients(shape.v_heads, false, dv_out_.present());
    }
    if (dbias_.present()) run.bias_gradients();
  }

 private:
  struct Run {
    const AttentionBackwardKernel& kernel;
    const AttentionShape& shape;
    const RowOps<T>& ops;
    typename AttentionProblem<T, AttentionBackward>::Bound problem;
    typename GuardedRows<T>::Bound q, k, v, o, d_o, stats, dq, dk, dv, dbias;
    T *packed_q, *packed_do, *packed_k, *packed_kt, *packed_vt, *row_stats, *row_delta, *tiles;

    Run(const AttentionBackwardKernel& owner, const KernelContext& context)
        : kernel(owner),
          shape(owner.problem_.shape()),
          ops(owner.ops_),
          problem(owner.problem_, context),
          q(owner.q_.bind(context)),
          k(owner.k_.bind(context)),
          v(owner.v_.bind(context)),
          o(owner.o_.bind(context)),
          d_o(owner.d_o_.bind(context)),
          stats(owner.stats_.bind(context)),
          dq(owner.dq_.bind(context)),
          dk(owner.dk_.bind(context)),
          dv(owner.dv_out_.bind(context)),
          dbias(owner.dbias_.bind(context)) {
      const auto scratch = [&](int booking) {
        return context.scratch<T>(owner.scratch_book_, booking);
      };
      packed_q = scratch(owner.packed_q_), packed_do = scratch(owner.packed_do_),
      packed_k = scratch(owner.packed_k_);
      packed_kt = scratch(owner.packed_kt_), packed_vt = scratch(owner.packed_vt_);
      row_stats = scratch(owner.row_stats_), row_delta = scratch(owner.row_delta_),
      tiles = scratch(owner.per_thread_);
    }

    // Buffers of one thread.
    struct Tiles {
      T *p, *ds;           // [kQueryTile x kKeyTile]
      T *d_k, *d_v;        // [kKeyTile x d], [kKeyTile x dv]
      T *query, *staging;  // [kQueryTile x d], [kQueryTile x dv]
    };
    Tiles tiles_of(int thread) const {
      T* base = tiles + thread * kernel.thread_elements_;
      Tiles t;
      t.p = base;
      t.ds = t.p + kQueryTile * kKeyTile;
      t.d_k = t.ds + kQueryTile * kKeyTile;
      t.d_v = t.d_k + kKeyTile * kernel.d_;
      t.query = t.d_v + kKeyTile * kernel.dv_;
      t.staging = t.query + kQueryTile * kernel.d_;
      return t;
    }

    std::int64_t row_position(std::int64_t b, std::int64_t h, std::int64_t i) const {
      return (b * shape.heads + h) * shape.queries + i;
    }
    std::int64_t tile_position(std::int64_t b, std::int64_t heads, std::int64_t head,
                               std::int64_t tile) const {
      return ((b * heads + head) * shape.key_tiles() + tile) * kKeyTile;
    }

    // Calls body(index, thread) for every index below count, on no more threads than have tiles.
    template <class Body>
    void over(std::int64_t count, Body&& body) const {
      parallel_for(count,
                   (count + kernel.threads_ - 1) / std::max<std::int64_t>(kernel.threads_, 1),
                   [&](std::int64_t begin, std::int64_t end, int thread) {
                     for (std::int64_t i = begin; i < end; ++i) body(i, thread);
                   });
    }

    void pack() const {
      const std::int64_t d = kernel.d_, dv_padded = kernel.dv_, key_tiles = shape.key_tiles();
      over(shape.batch * shape.k_heads * key_tiles, [&](std::int64_t at, int) {
        const std::int64_t tile = at % key_tiles, head = at / key_tiles % shape.k_heads,
                           b = at / key_tiles / shape.k_heads;
        const std::int64_t position = tile_position(b, shape.k_heads, head, tile);
        const std::int64_t rows = std::min(kKeyTile, shape.keys - tile * kKeyTile);
        T* k_rows = packed_k + position * d;
        load_rows<T>(k, b, head, tile * kKeyTile, rows, problem.batch(b).keys, shape.head_dim, d,
                     k_rows);
        transpose_tile(k_rows, d, rows, shape.head_dim, packed_kt + position * shape.head_dim);
      });
      over(shape.batch * shape.v_heads * key_tiles, [&](std::int64_t at, int thread) {
        const std::int64_t tile = at % key_tiles, head = at / key_tiles % shape.v_heads,
                           b = at / key_tiles / shape.v_heads;
        const std::int64_t rows = std::min(kKeyTile, shape.keys - tile * kKeyTile);
        T* v_rows = tiles_of(thread).d_v;
        load_rows<T>(v, b, head, tile * kKeyTile, rows, problem.batch(b).keys, shape.value_dim,
                     dv_padded, v_rows);
        transpose_tile(v_rows, dv_padded, rows, shape.value_dim,
                       packed_vt + tile_position(b, shape.v_heads, head, tile) * shape.value_dim);
      });
      const std::int64_t query_tiles = this->query_tiles();
      over(shape.batch * shape.heads * query_tiles, [&](std::int64_t at, int thread) {
        const std::int64_t first = at % query_tiles * kQueryTile,
                           h = at / query_tiles % shape.heads;
        const std::int64_t b = at / query_tiles / shape.heads,
                           rows = std::min(kQueryTile, shape.queries - first);
        const std::int64_t position = row_position(b, h, first);
        const std::int64_t length = problem.batch(b).queries;
        T* gradients = packed_do + position * dv_padded;
        load_rows<T>(q, b, h, first, rows, length, shape.head_dim, d, packed_q + position * d);
        load_rows<T>(d_o, b, h, first, rows, length, shape.value_dim, dv_padded, gradients);
        T* results = tiles_of(thread).staging;
        load_rows<T>(o, b, h, first, rows, length, shape.value_dim, dv_padded, results);
        for (std::int64_t r = 0; r < rows; ++r)
          row_delta[position + r] =
              ops.dot(gradients + r * dv_padded, results + r * dv_padded, shape.value_dim);
        for (std::int64_t r = 0; r < rows; ++r)
          stats.load({b, h, first + r, 0}, 1, row_stats + position + r);
      });
    }

    std::int64_t query_tiles() const { return (shape.queries + kQueryTile - 1) / kQueryTile; }

    // q k^T of a tile, unscaled.
    void products(std::int64_t b, std::int64_t h, std::int64_t first_row, std::int64_t rows,
                  std::int64_t key_tile, T* scores) const {
      const std::int64_t head = shape.k_head_of(h);
      kernel.product_({rows, kKeyTile, shape.head_dim,
                       packed_q + row_position(b, h, first_row) * kernel.d_, kernel.d_, 1,
                       packed_kt + tile_position(b, shape.k_heads, head, key_tile) * shape.head_dim,
                       kKeyTile, scores, kKeyTile, false});
    }

    Columns in_tile(const typename AttentionProblem<T, AttentionBackward>::Bound::Batch& batch,
                    std::int64_t i, std::int64_t tile) const {
      return problem.columns(batch, i).within({tile * kKeyTile, (tile + 1) * kKeyTile});
    }

    // Fills p with the (dropped) weights and ds with the gradients of the scores; 0 where a row
    // does not see.
    void gradients(std::int64_t b, std::int64_t h, std::int64_t first_row, std::int64_t rows,
                   std::int64_t tile,
                   const typename AttentionProblem<T, AttentionBackward>::Bound::Batch& batch,
                   const Tiles& t) const {
      static constexpr T kZero = 0;
      products(b, h, first_row, rows, tile, t.p);
      kernel.product_(
          {rows, kKeyTile, shape.value_dim, packed_do + row_position(b, h, first_row) * kernel.dv_,
           kernel.dv_, 1,
           packed_vt + tile_position(b, shape.v_heads, shape.v_head_of(h), tile) * shape.value_dim,
           kKeyTile, t.ds, kKeyTile, false});
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t position = row_position(b, h, first_row + r);
        T* p_row = t.p + r * kKeyTile;
        T* ds_row = t.ds + r * kKeyTile;
        const Columns seen = in_tile(batch, first_row + r, tile);
        if (seen.empty() || row_stats[position] == -std::numeric_limits<T>::infinity()) {
          std::fill(p_row, p_row + kKeyTile, T{0});
          std::fill(ds_row, ds_row + kKeyTile, T{0});
          continue;
        }
        const std::int64_t before = seen.begin - tile * kKeyTile, length = seen.end - seen.begin;
        problem.finish_scores(ops, b, h, first_row + r, seen, tile * kKeyTile, p_row);
        T* p = p_row + before;
        T* ds = ds_row + before;
        ops.exp_shifted(p, {row_stats + position, false}, length, p);
        alignas(64) T factors[kKeyTile];
        if (problem.drops()) {
          problem.dropout_factors(b, h, first_row + r, seen, factors);
          ops.multiply(ds, {factors, true}, length, ds);
        }
        ops.gradient(ds, p, {row_delta + position, false}, {&kZero, false}, {p, true}, length, ds);
        if (problem.drops()) ops.multiply(p, {factors, true}, length, p);
        for (T* row : {p_row, ds_row}) {
          std::fill(row, row + before, T{0});
          std::fill(row + before + length, row + kKeyTile, T{0});
        }
      }
    }

    void query_gradients() const {
      const std::int64_t query_tiles = this->query_tiles(), d = kernel.d_;
      const T scale = problem.scale();
      over(shape.batch * shape.heads * query_tiles, [&](std::int64_t at, int thread) {
        const std::int64_t first = at % query_tiles * kQueryTile,
                           h = at / query_tiles % shape.heads;
        const std::int64_t b = at / query_tiles / shape.heads,
                           rows = std::min(kQueryTile, shape.queries - first);
        const Tiles t = tiles_of(thread);
        const auto batch = problem.batch(b);
        const Columns seen = problem.columns(batch, first, rows);
        std::fill(t.query, t.query + rows * d, T{0});
        for (std::int64_t tile = seen.empty() ? 0 : seen.begin / kKeyTile;
             tile * kKeyTile < seen.end; ++tile) {
          gradients(b, h, first, rows, tile, batch, t);
          const std::int64_t count = std::min(kKeyTile, shape.keys - tile * kKeyTile);
          kernel.product_({rows, d, count, t.ds, kKeyTile, 1,
                           packed_k + tile_position(b, shape.k_heads, shape.k_head_of(h), tile) * d,
                           d, t.query, d, true});
        }
        for (std::int64_t r = 0; r < rows; ++r) {
          ops.multiply(t.query + r * d, {&scale, false}, shape.head_dim, t.query + r * d);
          dq.store({b, h, first + r, 0}, shape.head_dim, t.query + r * d);
        }
      });
    }

    // `heads` of keys, of values, or of both where they agree.
    void key_gradients(std::int64_t heads, bool want_dk, bool want_dv) const {
      if (!want_dk && !want_dv) return;
      const std::int64_t key_tiles = shape.key_tiles(), d = kernel.d_, dv_padded = kernel.dv_;
      const std::int64_t group = shape.heads / std::max<std::int64_t>(heads, 1);
      const T scale = problem.scale();
      over(shape.batch * heads * key_tiles, [&](std::int64_t at, int thread) {
        const std::int64_t tile = at % key_tiles, head = at / key_tiles % heads,
                           b = at / key_tiles / heads;
        const std::int64_t count = std::min(kKeyTile, shape.keys - tile * kKeyTile);
        const Tiles t = tiles_of(thread);
        const auto batch = problem.batch(b);
        std::fill(t.d_k, t.d_k + count * d, T{0});
        std::fill(t.d_v, t.d_v + count * dv_padded, T{0});
        for (std::int64_t h = head * group; h < (head + 1) * group; ++h)
          for (std::int64_t first = 0; first < shape.queries; first += kQueryTile) {
            const std::int64_t rows = std::min(kQueryTile, shape.queries - first);
            const Columns tile_columns{tile * kKeyTile, tile * kKeyTile + count};
            if (problem.columns(batch, first, rows).within(tile_columns).empty()) continue;
            gradients(b, h, first, rows, tile, batch, t);
            const std::int64_t position = row_position(b, h, first);
            if (want_dk)
              kernel.product_(
                  {count, d, rows, t.ds, 1, kKeyTile, packed_q + position * d, d, t.d_k, d, true});
            if (want_dv)
              kernel.product_({count, dv_padded, rows, t.p, 1, kKeyTile,
                               packed_do + position * dv_padded, dv_padded, t.d_v, dv_padded,
                               true});
          }
        for (std::int64_t r = 0; r < count; ++r) {
          const Coords row = {b, head, tile * kKeyTile + r, 0};
          if (want_dk) {
            ops.multiply(t.d_k + r * d, {&scale, false}, shape.head_dim, t.d_k + r * d);
            dk.store(row, shape.head_dim, t.d_k + r * d);
          }
          if (want_dv) dv.store(row, shape.value_dim, t.d_v + r * dv_padded);
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
      over(bias[0] * bias[1] * row_tiles * column_tiles, [&](std::int64_t at, int thread) {
        const std::int64_t column_tile = at % column_tiles,
                           row_tile = at / column_tiles % row_tiles;
        const std::int64_t bias_h = at / column_tiles / row_tiles % bias[1],
                           bias_b = at / column_tiles / row_tiles / bias[1];
        const Tiles t = tiles_of(thread);
        alignas(64) T sums[kQueryTile][kKeyTile] = {};
        const std::int64_t sum_rows =
            per_row ? std::min(kQueryTile, shape.queries - row_tile * kQueryTile) : 1;
        const auto gather = [&](std::int64_t b, std::int64_t h, std::int64_t first,
                                std::int64_t tile) {
          const std::int64_t rows = std::min(kQueryTile, shape.queries - first);
          const auto batch = problem.batch(b);
          const std::int64_t count = std::min(kKeyTile, shape.keys - tile * kKeyTile);
          if (problem.columns(batch, first, rows)
                  .within({tile * kKeyTile, tile * kKeyTile + count})
                  .empty())
            return;
          gradients(b, h, first, rows, tile, batch, t);
          for (std::int64_t r = 0; r < rows; ++r) {
            T* sum = sums[per_row ? r : 0];
            const T* ds = t.ds + r * kKeyTile;
            if (per_column)
              ops.fold_into(Fold::sum, Premap::identity, ds, count, sum);
            else
              sum[0] += ops.fold(Fold::sum, Premap::identity, ds, count);
          }
        };
        for (std::int64_t b = bias[0] == 1 ? 0 : bias_b;
             b < (bias[0] == 1 ? shape.batch : bias_b + 1); ++b)
          for (std::int64_t h = bias[1] == 1 ? 0 : bias_h;
               h < (bias[1] == 1 ? shape.heads : bias_h + 1); ++h)
            for (std::int64_t q_tile = per_row ? row_tile : 0;
                 q_tile < (per_row ? row_tile + 1 : query_tiles()); ++q_tile)
              for (std::int64_t tile = per_column ? column_tile : 0;
                   tile < (per_column ? column_tile + 1 : shape.key_tiles()); ++tile)
                gather(b, h, q_tile * kQueryTile, tile);
        const std::int64_t first_column = column_tile * kKeyTile;
        const std::int64_t columns = per_column ? std::min(kKeyTile, shape.keys - first_column) : 1;
        for (std::int64_t r = 0; r < sum_rows; ++r)
          dbias.store({bias_b, bias_h, row_tile * kQueryTile + r, first_column}, columns, sums[r]);
      });
    }
  };

  AttentionProblem<T, AttentionBackward> problem_;
  const RowOps<T>& ops_;
  TileProduct<T> product_;
  std::int64_t d_, dv_;  // head dims padded for the product
  std::int64_t threads_, thread_elements_;
  int packed_q_, packed_do_, packed_k_, packed_kt_, packed_vt_, row_stats_, row_delta_, per_thread_;
  Dims bias_dims_;
  GuardedRows<T> q_, k_, v_, o_, d_o_, stats_, dq_, dk_, dv_out_, dbias_;
};

class AttentionBackwardEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.attention_tiled_backward"; }
  EngineKind kind() const override { return EngineKind::specialised_fusion; }
  std::string_view description() const override {
    return "gradients of attention in tiles, scores computed anew";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<AttentionBackward>())
      return Support::no("the anchor is no attention gradient");
    if (const char* option = unknown_option<AttentionBackward>(region))
      return Support::no("{} is not in tiles", option);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const AttentionShape shape(*region.anchor);
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

// Attention forward without a matrix of scores: tiles of queries meet tiles of keys, and a running
// maximum and sum keep the softmax (Milakov and Gimelshein, 2018). Memory is linear in the sequence
// length.
#include "cpu/engines/attention_problem.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kMostRows =
    96;  // rows of queries in a tile: a multiple of the product's 6 rows
constexpr std::int64_t kFewRows =
    4;  // up to this many queries, transposing keys costs more than it saves

// How the queries are cut: a tile has `rows` rows of each of `heads` heads that share keys and
// values.
struct Tiling {
  std::int64_t rows, heads;
  bool packed;  // keys transposed and values widened once, for all tiles

  explicit Tiling(const AttentionShape& shape) {
    rows = std::min(kMostRows, std::max<std::int64_t>(shape.queries, 1));
    const std::int64_t group =
        shape.k_heads == shape.v_heads && shape.k_heads > 0 ? shape.heads / shape.k_heads : 1;
    heads = shape.queries <= kFewRows && group * rows <= kMostRows
                ? std::max<std::int64_t>(group, 1)
                : 1;
    packed = heads * rows > kFewRows;
  }
};

template <class T>
class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const Region& region, const Graph& graph, const DeviceProps& device)
      : problem_(graph, region),
        tiling_(problem_.shape()),
        ops_(row_ops<T>()),
        product_(tile_product<T>()),
        d_(padded_to_tile<T>(problem_.shape().head_dim)),
        dv_(padded_to_tile<T>(problem_.shape().value_dim)),
        q_(region.prologues[AttentionForward::q], 3, graph),
        k_(region.prologues[AttentionForward::k], 3, graph),
        v_(region.prologues[AttentionForward::v], 3, graph),
        o_(region.epilogue, 3, graph),
        stats_(output_program(region.anchor->outputs, AttentionForward::stats), 3, graph) {
    const AttentionShape& shape = problem_.shape();
    const std::int64_t m = tiling_.rows * tiling_.heads;
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
    const auto book = [&](const char* name, std::int64_t elements) {
      return scratch_book_.add(name, checked_mul(elements, kSize));
    };
    threads_ = std::max(device.compute_units, 1);
    thread_elements_ = m * (d_ + dv_ + kKeyTile) + kKeyTile * (d_ + dv_);
    per_thread_ = book("tiles", checked_mul(threads_, thread_elements_));
    if (!tiling_.packed) return;
    const std::int64_t tiles = checked_mul(shape.batch, shape.key_tiles());
    packed_k_ =
        book("packed k", checked_mul(checked_mul(tiles, shape.k_heads), shape.head_dim * kKeyTile));
    packed_v_ = book("packed v", checked_mul(checked_mul(tiles, shape.v_heads), dv_ * kKeyTile));
  }

  void run(const KernelContext& context) const override {
    const AttentionShape& shape = problem_.shape();
    if (shape.batch == 0 || shape.heads == 0 || shape.queries == 0) return;
    const Run run(*this, context);
    if (tiling_.packed) run.pack();
    const std::int64_t query_tiles = (shape.queries + tiling_.rows - 1) / tiling_.rows;
    const std::int64_t head_blocks = shape.heads / tiling_.heads;
    const std::int64_t items = shape.batch * head_blocks * query_tiles;
    parallel_for(items, grain(items), [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t item = begin; item < end; ++item) {
        // Causal tiles grow with the query: pairing first and last evens out the shares of threads.
        const std::int64_t turn = item % query_tiles;
        const std::int64_t tile = turn % 2 == 0 ? turn / 2 : query_tiles - 1 - turn / 2;
        const std::int64_t block = item / query_tiles;
        run.tile(thread, block / head_blocks, block % head_blocks * tiling_.heads,
                 tile * tiling_.rows);
      }
    });
  }

 private:
  // At least so many items per thread that no more threads run than have tiles.
  std::int64_t grain(std::int64_t items) const { return (items + threads_ - 1) / threads_; }

  struct Run {
    const AttentionKernel& kernel;
    const AttentionShape& shape;
    typename AttentionProblem<T, AttentionForward>::Bound problem;
    typename GuardedRows<T>::Bound q, k, v, o, stats;
    T *tiles, *packed_k = nullptr, *packed_v = nullptr;

    Run(const AttentionKernel& owner, const KernelContext& context)
        : kernel(owner),
          shape(owner.problem_.shape()),
          problem(owner.problem_, context),
          q(owner.q_.bind(context)),
          k(owner.k_.bind(context)),
          v(owner.v_.bind(context)),
          o(owner.o_.bind(context)),
          stats(owner.stats_.bind(context)),
          tiles(context.scratch<T>(owner.scratch_book_, owner.per_thread_)) {
      if (!owner.tiling_.packed) return;
      packed_k = context.scratch<T>(owner.scratch_book_, owner.packed_k_);
      packed_v = context.scratch<T>(owner.scratch_book_, owner.packed_v_);
    }

    T* k_tile(std::int64_t b, std::int64_t head, std::int64_t tile) const {
      return packed_k +
             ((b * shape.k_heads + head) * shape.key_tiles() + tile) * shape.head_dim * kKeyTile;
    }
    T* v_tile(std::int64_t b, std::int64_t head, std::int64_t tile) const {
      return packed_v +
             ((b * shape.v_heads + head) * shape.key_tiles() + tile) * kernel.dv_ * kKeyTile;
    }

    void pack() const {
      const std::int64_t tiles_per_head = shape.key_tiles();
      const auto for_tiles = [&](std::int64_t heads, auto&& body) {
        const std::int64_t count = shape.batch * heads * tiles_per_head;
        parallel_for(
            count, kernel.grain(count), [&](std::int64_t begin, std::int64_t end, int thread) {
              for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t tile = i % tiles_per_head, head = i / tiles_per_head % heads;
                body(thread, i / tiles_per_head / heads, head, tile,
                     std::min(kKeyTile, shape.keys - tile * kKeyTile));
              }
            });
      };
      for_tiles(shape.k_heads, [&](int thread, std::int64_t b, std::int64_t head, std::int64_t tile,
                                   std::int64_t rows) {
        T* staging = tiles + thread * kernel.thread_elements_;
        load_rows<T>(k, b, head, tile * kKeyTile, rows, problem.batch(b).keys, shape.head_dim,
                     kernel.d_, staging);
        transpose_tile(staging, kernel.d_, rows, shape.head_dim, k_tile(b, head, tile));
      });
      for_tiles(shape.v_heads,
                [&](int, std::int64_t b, std::int64_t head, std::int64_t tile, std::int64_t rows) {
                  load_rows<T>(v, b, head, tile * kKeyTile, rows, problem.batch(b).keys,
                               shape.value_dim, kernel.dv_, v_tile(b, head, tile));
                });
    }

    // Rows [first_row, ...) of heads [first_head, ...).
    void tile(int thread, std::int64_t b, std::int64_t first_head, std::int64_t first_row) const {
      const std::int64_t d = kernel.d_, dv = kernel.dv_;
      const std::int64_t rows = std::min(kernel.tiling_.rows, shape.queries - first_row);
      const std::int64_t m = rows * kernel.tiling_.heads;
      T* q_rows = tiles + thread * kernel.thread_elements_;
      T* o_rows = q_rows + tile_rows() * d;
      T* scores = o_rows + tile_rows() * dv;
      T* k_rows = scores + tile_rows() * kKeyTile;
      T* v_rows = k_rows + kKeyTile * d;
      T largest[kMostRows], sums[kMostRows];
      const auto head_of = [&](std::int64_t r) { return first_head + r / rows; };
      const auto row_of = [&](std::int64_t r) { return first_row + r % rows; };

      const auto batch = problem.batch(b);
      const Columns seen = problem.columns(batch, first_row, rows);
      std::fill(o_rows, o_rows + m * dv, T{0});
      std::fill(largest, largest + m, -std::numeric_limits<T>::infinity());
      std::fill(sums, sums + m, T{0});
      if (!seen.empty())
        for (std::int64_t h = 0; h < kernel.tiling_.heads; ++h)
          load_rows<T>(q, b, first_head + h, first_row, rows, batch.queries, shape.head_dim, d,
                       q_rows + h * rows * d);

      for (std::int64_t tile = seen.empty() ? 0 : seen.begin / kKeyTile; tile * kKeyTile < seen.end;
           ++tile) {
        const std::int64_t first = tile * kKeyTile;
        const std::int64_t count = std::min(kKeyTile, shape.keys - first);
        const T* values = v_rows;
        if (kernel.tiling_.packed) {
          values = v_tile(b, shape.v_head_of(first_head), tile);
          kernel.product_({m, kKeyTile, shape.head_dim, q_rows, d, 1,
                           k_tile(b, shape.k_head_of(first_head), tile), kKeyTile, scores, kKeyTile,
                           false});
        } else {
          load_rows<T>(k, b, shape.k_head_of(first_head), first, count, batch.keys, shape.head_dim,
                       d, k_rows);
          load_rows<T>(v, b, shape.v_head_of(first_head), first, count, batch.keys, shape.value_dim,
                       dv, v_rows);
          for (std::int64_t r = 0; r < m; ++r)
            for (std::int64_t j = 0; j < count; ++j)
              scores[r * kKeyTile + j] =
                  kernel.ops_.dot(q_rows + r * d, k_rows + j * d, shape.head_dim);
        }
        for (std::int64_t r = 0; r < m; ++r) {
          const Columns row_seen = problem.columns(batch, row_of(r)).within({first, first + count});
          weigh(b, head_of(r), row_of(r), row_seen, first, count, scores + r * kKeyTile,
                o_rows + r * dv, largest[r], sums[r]);
        }
        kernel.product_({m, dv, count, scores, kKeyTile, 1, values, dv, o_rows, dv, true});
      }
      for (std::int64_t r = 0; r < m; ++r)
        finish(b, head_of(r), row_of(r), largest[r], sums[r], o_rows + r * dv);
    }

    std::int64_t tile_rows() const { return kernel.tiling_.rows * kernel.tiling_.heads; }

    // Turns products into weights relative to the running maximum, and brings what was summed
    // before to it.
    void weigh(std::int64_t b, std::int64_t h, std::int64_t i, Columns seen, std::int64_t first,
               std::int64_t count, T* row, T* o_row, T& largest, T& sum) const {
      const RowOps<T>& ops = kernel.ops_;
      if (seen.empty()) return std::fill(row, row + count, T{0});
      const std::int64_t length = seen.end - seen.begin;
      T* weights = row + (seen.begin - first);
      problem.finish_scores(ops, b, h, i, seen, first, row);
      const T before = largest;
      const T here = ops.fold(Fold::maximum, Premap::identity, weights, length);
      largest = here > before || here != here ? here : before;
      if (largest == -std::numeric_limits<T>::infinity()) return std::fill(row, row + count, T{0});
      if (largest != before) {
        const T factor = std::exp(before - largest);
        sum *= factor;
        if (factor != T{0} || before != -std::numeric_limits<T>::infinity())
          ops.multiply(o_row, {&factor, false}, kernel.dv_, o_row);
      }
      sum += ops.exp_shifted(weights, {&largest, false}, length, weights);
      std::fill(row, weights, T{0});
      std::fill(weights + length, row + count, T{0});
      if (!problem.drops()) return;
      alignas(64) T factors[kKeyTile];
      problem.dropout_factors(b, h, i, seen, factors);
      ops.multiply(weights, {factors, true}, length, weights);
    }

    void finish(std::int64_t b, std::int64_t h, std::int64_t i, T largest, T sum, T* o_row) const {
      const bool sees_nothing = largest == -std::numeric_limits<T>::infinity();
      const T factor = 1 / sum;
      if (sees_nothing)
        std::fill(o_row, o_row + shape.value_dim, T{0});
      else
        kernel.ops_.multiply(o_row, {&factor, false}, shape.value_dim, o_row);
      o.store({b, h, i, 0}, shape.value_dim, o_row);
      const T row_stats = sees_nothing ? largest : largest + std::log(sum);
      stats.store({b, h, i, 0}, 1, &row_stats);
    }
  };

  AttentionProblem<T, AttentionForward> problem_;
  Tiling tiling_;
  const RowOps<T>& ops_;
  TileProduct<T> product_;
  std::int64_t d_, dv_;  // head dims padded for the product
  std::int64_t threads_, thread_elements_;
  int per_thread_, packed_k_ = -1, packed_v_ = -1;
  GuardedRows<T> q_, k_, v_, o_, stats_;
};

class AttentionEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.attention_tiled"; }
  EngineKind kind() const override { return EngineKind::specialised_fusion; }
  std::string_view description() const override {
    return "attention in tiles with a running softmax";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<AttentionForward>()) return Support::no("the anchor is no attention");
    if (const char* option = unknown_option<AttentionForward>(region))
      return Support::no("{} is not in tiles", option);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const AttentionShape shape(*region.anchor);
    const Tiling tiling(shape);
    const std::int64_t element = bit_width(region.precision()) / 8;
    const std::int64_t rows = tiling.rows * tiling.heads;
    std::int64_t elements =
        std::max(device.compute_units, 1) * (rows * (shape.head_dim + shape.value_dim + kKeyTile) +
                                             kKeyTile * (shape.head_dim + shape.value_dim));
    if (tiling.packed)
      elements += shape.batch * shape.key_tiles() * kKeyTile *
                  (shape.k_heads * shape.head_dim + shape.v_heads * shape.value_dim);
    const Cost cost{.flops = region.flops(),
                    .bytes = region.bytes(),
                    .flops_fraction = tiling.packed ? 0.5 : 0.1,
                    .bytes_fraction = 0.5};
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

// Attention forward without a matrix of scores: tiles of queries meet tiles of keys, and a running
// maximum and sum keep the softmax (Milakov and Gimelshein, 2018). Memory is linear in the sequence
// length. Weights that are rounded to fp8, or whose largest is asked for, have to be divided by
// their sum first: such rows are passed twice.
#include "cpu/engines/attention_packed_keys.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"

namespace ashlar::cpu {

namespace {

using In = AttentionForward::In;
using Out = AttentionForward::Out;

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
        tiling_(problem_.shape),
        ops_(row_ops<T>()),
        product_(tile_product<T>()),
        d_(padded_to_tile<T>(problem_.shape.head_dim)),
        dv_(padded_to_tile<T>(problem_.shape.value_dim)),
        threads_(std::max(device.compute_units, 1)),
        largest_(region, graph, {Out::amax_s, Out::amax_o}, scratch_book_, threads_),
        weight_rounding_(region.anchor->inputs[In::q].dtype),
        weight_scale_(region, {In::scale_s}),
        descale_(region, {In::descale_s, In::descale_v}),
        o_scale_(region, {In::scale_o}),
        sink_(input_program(region, In::sink), {1, problem_.shape.heads, 1, 1}, 3),
        q_(region.prologues[In::q], 3, graph),
        o_(region.epilogue, 3, graph) {
    const auto output = [&](int slot) {
      return GuardedRows<T>(output_program(region.anchor->outputs, slot), 3, graph);
    };
    stats_ = output(Out::stats), max_ = output(Out::max), sum_exp_ = output(Out::sum_exp);
    const auto amax_s = static_cast<std::size_t>(Out::amax_s);
    two_passes_ = weight_rounding_.present() || (amax_s < region.anchor->outputs.size() &&
                                                 region.anchor->outputs[amax_s].present());
    const std::int64_t m = tiling_.rows * tiling_.heads;
    thread_elements_ = m * (d_ + dv_ + kKeyTile) + kKeyTile * (d_ + dv_);
    per_thread_ = scratch_book_.add("tiles", checked_mul(checked_mul(threads_, thread_elements_),
                                                         static_cast<std::int64_t>(sizeof(T))));
    if (tiling_.packed) packed_.emplace(problem_.shape, scratch_book_);
  }

  void run(const KernelContext& context) const override {
    const AttentionShape& shape = problem_.shape;
    const Run run(*this, context);
    if (shape.batch > 0 && shape.heads > 0 && shape.queries > 0) run.tiles();
    run.largest.store();
    problem_.dump_rng(run.problem, context);
  }

 private:
  struct Run {
    const AttentionKernel& kernel;
    const AttentionShape& shape;
    const RowOps<T>& ops;
    typename AttentionProblem<T, AttentionForward>::Bound problem;
    typename LargestOutputs<T, 2>::Bound largest;
    T weight_scale, descale, o_scale;
    typename Operand<T>::Bound sink;
    typename GuardedRows<T>::Bound q, o, stats, max, sum_exp;
    T* scratch;
    std::optional<typename PackedKeys<T>::Bound> packed;

    Run(const AttentionKernel& owner, const KernelContext& context)
        : kernel(owner),
          shape(owner.problem_.shape),
          ops(owner.ops_),
          problem(owner.problem_, context),
          largest(owner.largest_, context, owner.scratch_book_),
          weight_scale(owner.weight_scale_.load(context)),
          descale(owner.descale_.load(context)),
          o_scale(owner.o_scale_.load(context)),
          sink(owner.sink_.bind(context)),
          q(owner.q_.bind(context)),
          o(owner.o_.bind(context)),
          stats(owner.stats_.bind(context)),
          max(owner.max_.bind(context)),
          sum_exp(owner.sum_exp_.bind(context)),
          scratch(context.scratch<T>(owner.scratch_book_, owner.per_thread_)) {
      if (owner.packed_) packed.emplace(*owner.packed_, context, owner.scratch_book_);
    }

    void tiles() const {
      if (packed)
        packed->pack(problem, kernel.threads_,
                     [&](int thread) { return scratch + thread * kernel.thread_elements_; });
      const Tiling& tiling = kernel.tiling_;
      const std::int64_t query_tiles = (shape.queries + tiling.rows - 1) / tiling.rows;
      const std::int64_t head_blocks = shape.heads / tiling.heads;
      const std::int64_t items = shape.batch * head_blocks * query_tiles;
      // At least so many items per thread that no more threads run than have tiles.
      const std::int64_t grain = (items + kernel.threads_ - 1) / kernel.threads_;
      parallel_for(items, grain, [&](std::int64_t begin, std::int64_t end, int thread) {
        for (std::int64_t item = begin; item < end; ++item) {
          // Causal tiles grow with the query: pairing first and last evens out the shares of
          // threads.
          const std::int64_t turn = item % query_tiles;
          const std::int64_t tile = turn % 2 == 0 ? turn / 2 : query_tiles - 1 - turn / 2;
          const std::int64_t block = item / query_tiles;
          query_tile(thread, block / head_blocks, block % head_blocks * tiling.heads,
                     tile * tiling.rows);
        }
      });
    }

    // Rows [first_row, ...) of heads [first_head, ...), and what is known of them so far.
    struct QueryTile {
      int thread;
      std::int64_t b, first_head, first_row, rows, m;
      AttentionBatch batch;
      T *q, *o, *scores, *k, *v;
      T largest[kMostRows], sums[kMostRows];  // of scores, and of exp(score - largest)
      std::int64_t head_of(std::int64_t r) const { return first_head + r / rows; }
      std::int64_t row_of(std::int64_t r) const { return first_row + r % rows; }
    };
    struct KeyTile {
      std::int64_t first, count;
      const T* values;
      bool partly_seen;  // some row does not see all of it
    };

    void query_tile(int thread, std::int64_t b, std::int64_t first_head,
                    std::int64_t first_row) const {
      const std::int64_t rows = std::min(kernel.tiling_.rows, shape.queries - first_row);
      const std::int64_t tile_rows = kernel.tiling_.rows * kernel.tiling_.heads;
      QueryTile t;
      t.thread = thread, t.b = b, t.first_head = first_head, t.first_row = first_row;
      t.rows = rows, t.m = rows * kernel.tiling_.heads, t.batch = problem.mask.batch(b);
      t.q = scratch + thread * kernel.thread_elements_;
      t.o = t.q + tile_rows * kernel.d_;
      t.scores = t.o + tile_rows * kernel.dv_;
      t.k = t.scores + tile_rows * kKeyTile;
      t.v = t.k + kKeyTile * kernel.d_;
      std::fill(t.o, t.o + t.m * kernel.dv_, T{0});
      std::fill(t.largest, t.largest + t.m, -std::numeric_limits<T>::infinity());
      std::fill(t.sums, t.sums + t.m, T{0});
      const Columns seen = problem.mask.columns(t.batch, first_row, rows);
      if (!seen.empty())
        for (std::int64_t h = 0; h < kernel.tiling_.heads; ++h)
          load_rows<T>(q, b, first_head + h, first_row, rows, t.batch.queries, shape.head_dim,
                       kernel.d_, t.q + h * rows * kernel.d_);

      for_key_tiles(t, seen, [&](KeyTile& keys) {
        for (std::int64_t r = 0; r < t.m; ++r) weigh(t, keys, r);
        if (!kernel.two_passes_) add_values(t, keys);
      });
      for (std::int64_t r = 0; r < t.m; ++r) add_sink(t, r);
      if (kernel.two_passes_)
        for_key_tiles(t, seen, [&](KeyTile& keys) {
          for (std::int64_t r = 0; r < t.m; ++r) weigh_again(t, keys, r);
          add_values(t, keys);
        });
      for (std::int64_t r = 0; r < t.m; ++r) finish(t, r);
    }

    // Calls body with the products q k of every tile of keys that some row sees.
    template <class Body>
    void for_key_tiles(QueryTile& t, Columns seen, const Body& body) const {
      for (std::int64_t tile = seen.empty() ? 0 : seen.begin / kKeyTile; tile * kKeyTile < seen.end;
           ++tile) {
        KeyTile keys{tile * kKeyTile, std::min(kKeyTile, shape.keys - tile * kKeyTile), t.v, false};
        if (hidden(t, seen.within({keys.first, keys.first + keys.count}))) continue;
        const std::int64_t k_head = shape.k_head_of(t.first_head),
                           v_head = shape.v_head_of(t.first_head);
        if (packed) {
          keys.values = packed->v_tile(t.b, v_head, tile);
          kernel.product_({t.m, kKeyTile, shape.head_dim, t.q, kernel.d_, 1,
                           packed->k_tile(t.b, k_head, tile), kKeyTile, t.scores, kKeyTile, false});
        } else {
          load_rows<T>(problem.k, t.b, k_head, keys.first, keys.count, t.batch.keys, shape.head_dim,
                       kernel.d_, t.k);
          load_rows<T>(problem.v, t.b, v_head, keys.first, keys.count, t.batch.keys,
                       shape.value_dim, kernel.dv_, t.v);
          for (std::int64_t r = 0; r < t.m; ++r)
            for (std::int64_t j = 0; j < keys.count; ++j)
              t.scores[r * kKeyTile + j] =
                  ops.dot(t.q + r * kernel.d_, t.k + j * kernel.d_, shape.head_dim);
        }
        body(keys);
      }
    }
    bool hidden(const QueryTile& t, Columns columns) const {
      for (std::int64_t h = 0; h < kernel.tiling_.heads; ++h)
        if (!problem.mask.hides(t.b, t.first_head + h, t.first_row, t.rows, columns)) return false;
      return true;
    }

    Columns seen_by(const QueryTile& t, const KeyTile& keys, std::int64_t r) const {
      return problem.mask.columns(t.batch, t.row_of(r))
          .within({keys.first, keys.first + keys.count});
    }
    // Turns the products of a row into scores, -inf in holes. Returns the columns they stand in;
    // what stands beside them is for the caller to overwrite.
    Columns score(const QueryTile& t, KeyTile& keys, std::int64_t r) const {
      const Columns seen = seen_by(t, keys, r);
      keys.partly_seen |= seen.size() < keys.count || problem.mask.has_holes();
      if (seen.empty()) return seen;
      const Coords at = {t.b, t.head_of(r), t.row_of(r), seen.begin};
      T* row = t.scores + r * kKeyTile + (seen.begin - keys.first);
      problem.scores.apply(at, seen.size(), row);
      problem.mask.overwrite_holes(at[0], at[1], at[2], seen, -std::numeric_limits<T>::infinity(),
                                   row);
      return seen;
    }
    void clear_beside(const KeyTile& keys, Columns seen, T* row) const {
      if (seen.empty()) return std::fill(row, row + keys.count, T{0});
      std::fill(row, row + (seen.begin - keys.first), T{0});
      std::fill(row + (seen.end - keys.first), row + keys.count, T{0});
    }
    void drop(const QueryTile& t, std::int64_t r, Columns seen, T* weights) const {
      if (!problem.dropout.present()) return;
      alignas(64) T kept[kKeyTile];
      problem.dropout.draw({t.b, t.head_of(r), t.row_of(r), seen.begin}, seen.size(), kept);
      problem.dropout.apply(kept, seen.size(), weights);
    }

    // Turns products into weights relative to the running maximum, and brings what was summed
    // before to it.
    void weigh(QueryTile& t, KeyTile& keys, std::int64_t r) const {
      T* row = t.scores + r * kKeyTile;
      Columns seen = score(t, keys, r);
      T* weights = row + (seen.begin - keys.first);
      if (!seen.empty()) {
        const T here = ops.fold(Fold::maximum, Premap::identity, weights, seen.size());
        raise_largest(t, r, here);
        if (t.largest[r] == -std::numeric_limits<T>::infinity()) seen = {};
      }
      clear_beside(keys, seen, row);
      if (seen.empty()) return;
      t.sums[r] += ops.exp_shifted(weights, {&t.largest[r], false}, seen.size(), weights);
      drop(t, r, seen, weights);
    }
    void raise_largest(QueryTile& t, std::int64_t r, T candidate) const {
      const T before = t.largest[r];
      t.largest[r] = maximum_or_nan(before, candidate);
      if (t.largest[r] == before || t.largest[r] == -std::numeric_limits<T>::infinity()) return;
      const T factor = std::exp(before - t.largest[r]);
      t.sums[r] *= factor;
      if (factor != T{0} || before != -std::numeric_limits<T>::infinity())
        ops.multiply(t.o + r * kernel.dv_, {&factor, false}, kernel.dv_, t.o + r * kernel.dv_);
    }
    // One more key, without a value.
    void add_sink(QueryTile& t, std::int64_t r) const {
      if (!sink.present() || t.row_of(r) >= t.batch.queries) return;
      T value;
      static constexpr T kAbsent = 0;
      sink.load({0, t.head_of(r), 0, 0}, 1, &value, &kAbsent);
      raise_largest(t, r, value);
      if (t.largest[r] != -std::numeric_limits<T>::infinity())
        ops.exp_shifted(&value, {&t.largest[r], false}, 1, &value), t.sums[r] += value;
    }
    // Turns products into the weights themselves, now that their sums are known.
    void weigh_again(QueryTile& t, KeyTile& keys, std::int64_t r) const {
      T* row = t.scores + r * kKeyTile;
      Columns seen = score(t, keys, r);
      if (t.largest[r] == -std::numeric_limits<T>::infinity()) seen = {};
      clear_beside(keys, seen, row);
      if (seen.empty()) return;
      T* weights = row + (seen.begin - keys.first);
      ops.exp_shifted(weights, {&t.largest[r], false}, seen.size(), weights);
      drop(t, r, seen, weights);
      const T factor = 1 / t.sums[r];
      ops.multiply(weights, {&factor, false}, seen.size(), weights);
      largest.add(kAmaxS, t.thread, weights, seen.size());
      if (!kernel.weight_rounding_.present()) return;
      ops.multiply(weights, {&weight_scale, false}, seen.size(), weights);
      kernel.weight_rounding_.apply(seen.size(), weights);
    }

    // o += weights v. A weight of 0 does not stop NaN or infinity, so that a value which some rows
    // do not see meets only those that do.
    void add_values(QueryTile& t, const KeyTile& keys) const {
      const std::int64_t dv = kernel.dv_;
      if (!keys.partly_seen || all_finite(ops, keys.values, keys.count * dv)) {
        kernel.product_(
            {t.m, dv, keys.count, t.scores, kKeyTile, 1, keys.values, dv, t.o, dv, true});
        return;
      }
      for (std::int64_t r = 0; r < t.m; ++r)
        problem.mask.for_each_run(
            t.b, t.head_of(r), t.row_of(r), seen_by(t, keys, r), [&](Columns run) {
              const std::int64_t at = run.begin - keys.first;
              kernel.product_({1, dv, run.size(), t.scores + r * kKeyTile + at, kKeyTile, 1,
                               keys.values + at * dv, dv, t.o + r * dv, dv, true});
            });
    }

    void finish(QueryTile& t, std::int64_t r) const {
      T* row = t.o + r * kernel.dv_;
      const Coords at = {t.b, t.head_of(r), t.row_of(r), 0};
      const T most = t.largest[r], sum = t.sums[r];
      const bool sees_nothing = most == -std::numeric_limits<T>::infinity();
      // What the second pass has not done yet.
      const T factor = (kernel.two_passes_ ? T{1} : 1 / sum) *
                       (kernel.weight_rounding_.present() ? T{1} : weight_scale) * descale;
      if (sees_nothing)
        std::fill(row, row + shape.value_dim, T{0});
      else
        ops.multiply(row, {&factor, false}, shape.value_dim, row);
      largest.add(kAmaxO, t.thread, row, shape.value_dim);
      if (kernel.o_scale_.present()) ops.multiply(row, {&o_scale, false}, shape.value_dim, row);
      o.store(at, shape.value_dim, row);
      const T row_stats = sees_nothing ? most : most + std::log(sum);
      stats.store(at, 1, &row_stats);
      max.store(at, 1, &most);
      sum_exp.store(at, 1, &sum);
    }
  };
  enum { kAmaxS, kAmaxO };  // positions in largest_

  AttentionProblem<T, AttentionForward> problem_;
  Tiling tiling_;
  const RowOps<T>& ops_;
  TileProduct<T> product_;
  std::int64_t d_, dv_;  // head dims padded for the product
  std::int64_t threads_, thread_elements_;
  LargestOutputs<T, 2> largest_;
  Fp8Rounding<T> weight_rounding_;
  FactorOperand<T> weight_scale_, descale_, o_scale_;
  Operand<T> sink_;
  bool two_passes_ = false;
  int per_thread_;
  std::optional<PackedKeys<T>> packed_;
  GuardedRows<T> q_, o_, stats_, max_, sum_exp_;
};

class AttentionEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.attention_tiled"; }
  EngineKind kind() const override { return EngineKind::specialised_fusion; }
  std::string_view description() const override {
    return "attention in tiles with a running softmax";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    const auto* op = region.anchor_as<AttentionForward>();
    if (!op) return Support::other_operation("the anchor is no attention");
    const AttentionShape shape(*region.anchor, *op);
    if (Support fit = fits(modifier_program(*region.anchor, *op, shape.scores())); !fit) return fit;
    return supports_operands<AttentionForward>(region);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const AttentionShape shape(*region.anchor, *region.anchor_as<AttentionForward>());
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

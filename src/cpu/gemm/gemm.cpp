// The blocked GEMM: packing of A and B, macro-kernel loops, split-K reduction.
#include "cpu/gemm/gemm.hpp"

#include <algorithm>

#include "cpu/gemm/gemm_dots.hpp"
#include "cpu/gemm/gemm_layout.hpp"
#include "cpu/gemm/gemm_pack.hpp"
#include "cpu/gemm/gemm_stack.hpp"
#include "cpu/gemm/panel_prefetch.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

// Packed panels of B, over all of K.
template <class T>
struct PackedPanels {
  const T* data = nullptr;
  std::int64_t batch_distance = 0;  // elements; 0: shared by all batches
  std::int64_t first_batch = 0, first_panel = 0, panel_elements = 0;

  const T* panel(std::int64_t batch, std::int64_t number) const {
    return data + (batch - first_batch) * batch_distance + (number - first_panel) * panel_elements;
  }
};

// Packs columns [first, last) of batches [begin, end).
template <class T>
void pack_columns(const GemmShape& shape, const GemmOperand<T>& b, std::int64_t width,
                  std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last,
                  T* packed) {
  constexpr std::int64_t kElementsWorthAThread = 16 << 10;
  const std::int64_t distance = shape.k * width;
  const std::int64_t panels = divide_up(last - first, width);
  // Rows along the index are read in long chunks; parts of K then share the work.
  const std::int64_t unit = b.along_k() ? 1 : kRowChunk / width;
  const std::int64_t units = divide_up(panels, unit);
  const std::int64_t parts = b.along_k() ? 1 : std::max<std::int64_t>(divide_up(shape.k, 128), 1);
  const std::int64_t grain =
      kElementsWorthAThread / std::max<std::int64_t>(unit * distance / parts, 1) + 1;
  parallel_for((end - begin) * units * parts, grain, [&](std::int64_t from, std::int64_t to, int) {
    for (std::int64_t number = from; number < to; ++number) {
      const Range k(shape.k, number % parts, parts);
      const std::int64_t panel = number / parts % units * unit;
      const std::int64_t batch = begin + number / parts / units;
      const std::int64_t index = first + panel * width;
      const std::int64_t indices = std::min(unit * width, last - index);
      T* target = packed + ((batch - begin) * panels + panel) * distance;
      if (b.along_k())
        pack_panel(b, batch, index, indices, 0, shape.k, width, target);
      else
        pack_panels(b, batch, index, indices, k.begin, k.size(), width, distance,
                    target + k.begin * width);
    }
  });
}

// Per-thread buffers.
template <class T>
struct Buffers {
  T* a;
  T* c;
  T* b;  // kStreamRows rows of B of a skinny GEMM
};

template <class T>
class BlockedGemm {
 public:
  BlockedGemm(const GemmShape& shape, const GemmBlocks& blocks, const GemmKernel<T>& kernel,
              const GemmOperand<T>& a, const GemmOperand<T>& b, const GemmSink<T>& sink, T* scratch)
      : shape_(shape), blocks_(blocks), kernel_(kernel), a_(a), b_(b), sink_(sink) {
    const std::int64_t line = kWorkspaceAlignment / static_cast<std::int64_t>(sizeof(T));
    layout_ = GemmLayout(blocks, line);
    packed_ = scratch;
    own_ = scratch + round_up(blocks.packed, line);
    partial_ = own_ + blocks.threads * layout_.total;
    constexpr std::int64_t kNearBytes = 1 << 20;
    far_ = shape.n * shape.k * static_cast<std::int64_t>(sizeof(T)) > kNearBytes;
  }

  void run(const T* packed_b) {
    const bool few = shape_.m <= kSkinny && packed_b == nullptr;
    // A B of small K is used in place too: packing it would cost more than it saves.
    const bool shallow = packed_b == nullptr && !b_.along_k() && b_.row_stride() != 0 &&
                         shape_.k <= std::min(blocks_.k, kShallowK) && shape_.m <= kShallowRows;
    if (few && b_.along_k() && blocks_.packed >= shape_.m * shape_.k) {
      return gemm_dots(shape_, blocks_.threads, a_, b_, sink_, packed_);
    } else if (shallow || (few && !b_.along_k())) {
      stream_rows_ = shallow ? blocks_.k : kStreamRows;
      multiply_chunk(nullptr, 0, shape_.batch, 0, shape_.n);
    } else if (packed_b != nullptr) {
      const PackedPanels<T> panels = panels_at(packed_b, 0, 0, shape_.n);
      multiply_chunk(&panels, 0, shape_.batch, 0, shape_.n);
    } else {
      pack_and_multiply();
    }
    if (blocks_.splits > 1) add_splits();
  }

 private:
  PackedPanels<T> panels_at(const T* data, std::int64_t batch, std::int64_t first,
                            std::int64_t last) const {
    const std::int64_t elements = shape_.k * kernel_.columns;
    return {data,
            b_.same_for_all_batches() ? 0 : divide_up(last - first, kernel_.columns) * elements,
            batch, first / kernel_.columns, elements};
  }

  // Packs and multiplies as many batches, or columns of one batch, as `packed_` holds.
  void pack_and_multiply() {
    const std::int64_t width = kernel_.columns;
    const bool same = b_.same_for_all_batches();
    const std::int64_t matrix = round_up(shape_.n, width) * shape_.k;
    const std::int64_t panels =
        std::max<std::int64_t>(blocks_.packed / std::max<std::int64_t>(shape_.k * width, 1), 1);
    const std::int64_t columns = matrix <= blocks_.packed ? shape_.n : panels * width;
    const std::int64_t batches =
        same ? shape_.batch
             : std::clamp<std::int64_t>(blocks_.packed / std::max<std::int64_t>(matrix, 1), 1,
                                        shape_.batch);
    for (std::int64_t batch = 0; batch < shape_.batch; batch += batches)
      for (std::int64_t n = 0; n < shape_.n; n += columns) {
        const std::int64_t end = std::min(batch + batches, shape_.batch);
        const std::int64_t last = std::min(n + columns, shape_.n);
        pack_columns(shape_, b_, width, batch, same ? batch + 1 : end, n, last, packed_);
        const PackedPanels<T> packed = panels_at(packed_, batch, n, last);
        multiply_chunk(&packed, batch, end, n, last);
      }
  }

  // Row blocks vary fastest, so that the columns of B they share stay in cache.
  void multiply_chunk(const PackedPanels<T>* packed, std::int64_t begin, std::int64_t end,
                      std::int64_t first, std::int64_t last) {
    const std::int64_t width = kernel_.columns;
    const std::int64_t panels = divide_up(last - first, width);
    const std::int64_t row_blocks = divide_up(shape_.m, blocks_.rows);
    const std::int64_t column_blocks = divide_up(last - first, blocks_.columns);
    const std::int64_t tasks = blocks_.splits * (end - begin) * row_blocks * column_blocks;
    auto grain = tasks_worth_a_thread(tasks, 2.0 * static_cast<double>((end - begin) * shape_.m) *
                                                 static_cast<double>((last - first) * shape_.k));
    // no more threads than have scratch
    grain = std::max(grain, divide_up(tasks, blocks_.threads));
    parallel_for(tasks, grain, [&](std::int64_t from, std::int64_t to, int thread) {
      T* own = own_ + thread * layout_.total;
      const Buffers<T> buffers{own, own + layout_.c, own + layout_.b};
      for (std::int64_t task = from; task < to; ++task) {
        std::int64_t rest = task;
        const Range rows(shape_.m, rest % row_blocks, row_blocks);
        rest /= row_blocks;
        const Range columns(panels, rest % column_blocks, column_blocks);
        rest /= column_blocks;
        const std::int64_t batch = begin + rest % (end - begin), split = rest / (end - begin);
        multiply_block(packed, batch, rows, first + columns.begin * width,
                       std::min(first + columns.end * width, last), split, buffers);
      }
    });
  }

  void multiply_block(const PackedPanels<T>* packed, std::int64_t batch, const Range& rows,
                      std::int64_t first, std::int64_t last, std::int64_t split,
                      const Buffers<T>& buffers) const {
    const Range k(shape_.k, split, blocks_.splits);
    GemmDestination<T> dest;
    const bool in_place = blocks_.splits == 1 && sink_.dest(batch, rows.begin, first, dest);
    if (!in_place) dest = {buffers.c, round_up(last - first, kernel_.columns), {}, false};
    std::int64_t start = k.begin;
    do {  // runs once for K = 0 too: C is zero
      const std::int64_t end = std::min(start + blocks_.k, k.end);
      const bool post_ops = in_place && dest.has_post_ops && end == k.end;
      const Step step{batch, rows, first, last, start, end, start > k.begin, post_ops};
      if (packed != nullptr)
        multiply_packed(*packed, step, dest, buffers);
      else
        multiply_streamed(step, dest, buffers);
      start = end;
    } while (start < k.end);
    if (!in_place) store_block(batch, rows, first, last, split, buffers.c);
  }

  // A block of C over one K-block.
  struct Step {
    std::int64_t batch;
    Range rows;
    std::int64_t first, last, start, end;
    bool accumulate, post_ops;
  };

  // Row panels are even: 16 rows are 5, 5 and 6, not 6, 6 and 4.
  std::int64_t row_panels(const Range& rows) const { return divide_up(rows.size(), kernel_.rows); }

  void pack_rows(const Step& step, T* packed) const {
    const std::int64_t k_count = step.end - step.start, panels = row_panels(step.rows);
    for (std::int64_t p = 0; p < panels; ++p) {
      const Range panel(step.rows.size(), p, panels);
      T* target = packed + p * kernel_.rows * k_count;
      const std::int64_t index = step.rows.begin + panel.begin;
      pack_any(a_, step.batch, index, panel.size(), step.start, k_count, kernel_.rows, target);
    }
  }

  // Rows of A that are contiguous along K are read in place, unless they alias in the caches: rows
  // a large power of two apart, and shorter than that.
  bool a_in_place() const {
    constexpr std::int64_t kConflict = 2048;  // bytes
    constexpr auto kElement = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t bytes = a_.row_stride() * kElement, power = bytes & -bytes;
    return a_.along_k() && bytes > 0 && (power < kConflict || blocks_.k * kElement >= power);
  }

  // `packed_a` null: A is read in place.
  void multiply_panel(const Step& step, const GemmDestination<T>& dest, const T* packed_a,
                      std::int64_t packed_k, std::int64_t skip, GemmMicroArgs<T>& o,
                      std::int64_t column, PanelPrefetcher<T>* prefetch = nullptr) const {
    const std::int64_t panels = row_panels(step.rows);
    GemmPostOps<T> post_ops = dest.post_ops;
    o.columns = std::min(kernel_.columns, step.last - step.first - column);
    o.c_row = dest.c_row;
    for (std::int64_t p = 0; p < panels; ++p) {
      const Range panel(step.rows.size(), p, panels);
      o.rows = panel.size();
      if (prefetch != nullptr) o.prefetch = prefetch->take(o.k);
      if (packed_a != nullptr) {
        o.a = packed_a + p * kernel_.rows * packed_k + skip * kernel_.rows;
      } else {
        o.a = a_.view(step.batch, step.rows.begin + panel.begin, step.start + skip, o.k, nullptr);
        o.a_row = a_.row_stride();
      }
      o.c = dest.c + panel.begin * dest.c_row + column;
      if (step.post_ops) {
        post_ops.bias = dest.post_ops.bias != nullptr ? dest.post_ops.bias + column : nullptr;
        post_ops.addend = dest.post_ops.addend != nullptr
                              ? dest.post_ops.addend + panel.begin * post_ops.addend_row + column
                              : nullptr;
        o.post_ops = &post_ops;
      }
      if (packed_a != nullptr)
        kernel_.packed(o);
      else
        kernel_.strided(o);
    }
  }

  void multiply_packed(const PackedPanels<T>& packed, const Step& step,
                       const GemmDestination<T>& dest, const Buffers<T>& buffers) const {
    const std::int64_t k_count = step.end - step.start;
    const bool in_place = a_in_place();
    if (!in_place) pack_rows(step, buffers.a);
    GemmMicroArgs<T> o;
    o.k = k_count;
    o.b_row = kernel_.columns;
    o.accumulate = step.accumulate;
    const std::int64_t width = kernel_.columns, columns = step.last - step.first;
    // Few rows finish a panel before the next one arrives from memory: a skinny GEMM works on
    // several panels and prefetches as many.
    const std::int64_t group = (shape_.m <= kSkinny ? PanelPrefetch<T>::kStreams : 1) * width;
    PanelPrefetcher<T> prefetch;
    for (std::int64_t column = 0; column < columns; column += width) {
      if (far_ && column % group == 0) prefetch = next_panels(packed, step, column, group);
      o.b = packed.panel(step.batch, (step.first + column) / width) + step.start * width;
      multiply_panel(step, dest, in_place ? nullptr : buffers.a, k_count, 0, o, column, &prefetch);
    }
  }

  // Prefetch for the panels after the `group` columns at `column`: more columns of this step, the
  // same columns of the next K-block, or those of the next block.
  PanelPrefetcher<T> next_panels(const PackedPanels<T>& packed, const Step& step,
                                 std::int64_t column, std::int64_t group) const {
    const std::int64_t width = kernel_.columns, k_count = step.end - step.start;
    std::int64_t next = step.first + column + group, start = step.start;
    if (next >= step.last) {
      start = step.end < shape_.k ? step.end : 0;
      next = start > 0 || step.rows.size() < shape_.m ? step.first : step.last;
    }
    if (next + group > shape_.n) return {};
    const std::int64_t calls =
        row_panels(step.rows) * divide_up(std::min(group, step.last - step.first - column), width);
    return PanelPrefetcher<T>(packed.panel(step.batch, next / width) + start * width,
                              std::min(blocks_.k, shape_.k - start) * width,
                              group == width ? 0 : packed.panel_elements, calls, k_count);
  }

  // Streams B unpacked, a few rows together, so that each is read once and sequentially.
  void multiply_streamed(const Step& step, const GemmDestination<T>& dest,
                         const Buffers<T>& buffers) const {
    const std::int64_t k_count = step.end - step.start, columns = step.last - step.first;
    const bool in_place = a_in_place();
    if (!in_place) pack_rows(step, buffers.a);
    const std::int64_t whole = columns / kernel_.columns * kernel_.columns;
    std::int64_t done = 0;
    do {
      const std::int64_t length = std::min(stream_rows_, k_count - done);
      Step part = step;
      part.post_ops = step.post_ops && done + length == k_count;
      GemmMicroArgs<T> o;
      o.k = length;
      o.accumulate = step.accumulate || done > 0;
      const T* rows = buffers.b;
      std::int64_t distance = b_.row_stride();
      std::int64_t readable = whole;  // columns whose whole panels may be read in place
      if (distance == 0 || length == 0) {
        distance = round_up(columns, kernel_.columns);
        readable = distance;
        for (std::int64_t l = 0; l < length; ++l)
          load_row(step, done + l, 0, columns, buffers.b + l * distance);
      } else {
        rows = b_.view(step.batch, step.start + done, step.first, columns, buffers.b);
      }
      for (std::int64_t column = 0; column < columns; column += kernel_.columns) {
        o.b = rows + column;
        o.b_row = distance;
        if (column >= readable) {
          o.b = buffers.b;
          o.b_row = kernel_.columns;
          for (std::int64_t l = 0; l < length; ++l)
            load_row(step, done + l, column, columns - column, buffers.b + l * kernel_.columns);
        }
        multiply_panel(part, dest, in_place ? nullptr : buffers.a, k_count, done, o, column);
      }
      done += length;
    } while (done < k_count);
  }
  void load_row(const Step& step, std::int64_t l, std::int64_t column, std::int64_t count,
                T* target) const {
    b_.row(step.batch, step.start + l, step.first + column, count, target);
    std::fill(target + count, target + round_up(count, kernel_.columns), T{0});
  }

  void store_block(std::int64_t batch, const Range& rows, std::int64_t first, std::int64_t last,
                   std::int64_t split, T* c) const {
    const std::int64_t c_row = round_up(last - first, kernel_.columns);
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      T* values = c + i * c_row;
      const std::int64_t m = rows.begin + i;
      if (blocks_.splits == 1) {
        sink_.row(batch, m, first, last - first, values);
      } else {
        const std::int64_t row = (split * shape_.batch + batch) * shape_.m + m;
        std::copy_n(values, last - first, partial_ + row * shape_.n + first);
      }
    }
  }

  // Reduces the split-K partials in a fixed order and passes the rows to the sink.
  void add_splits() const {
    const std::int64_t part = shape_.batch * shape_.m * shape_.n;
    parallel_for(shape_.batch * shape_.m, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row) {
        T* total = partial_ + row * shape_.n;
        for (std::int64_t split = 1; split < blocks_.splits; ++split) {
          const T* addend = total + split * part;
          for (std::int64_t j = 0; j < shape_.n; ++j) total[j] += addend[j];
        }
        sink_.row(row / shape_.m, row % shape_.m, 0, shape_.n, total);
      }
    });
  }

  const GemmShape& shape_;
  const GemmBlocks& blocks_;
  const GemmKernel<T>& kernel_;
  const GemmOperand<T>& a_;
  const GemmOperand<T>& b_;
  const GemmSink<T>& sink_;
  GemmLayout layout_;
  T* packed_;
  T* own_;
  T* partial_;
  bool far_;  // B is in L3 or memory: prefetch its panels
  std::int64_t stream_rows_ = kStreamRows;
};

}  // namespace

template <class T>
void pack_b(const GemmShape& shape, const GemmOperand<T>& b, T* packed) {
  const std::int64_t batches =
      b.same_for_all_batches() ? std::min<std::int64_t>(shape.batch, 1) : shape.batch;
  pack_columns(shape, b, gemm_micro_kernel<T>().columns, 0, batches, 0, shape.n, packed);
}

template <class T>
void gemm(const GemmShape& shape, const GemmBlocks& blocks, const GemmKernel<T>& kernel,
          const GemmOperand<T>& a, const GemmOperand<T>& b, const GemmSink<T>& sink, T* scratch,
          const T* packed_b) {
  if (shape.batch == 0 || shape.m == 0 || shape.n == 0) return;
  if (blocks.threads == 0) return gemm_on_stack(shape, kernel, a, b, sink);
  BlockedGemm<T>(shape, blocks, kernel, a, b, sink, scratch).run(packed_b);
}

template void pack_b<float>(const GemmShape&, const GemmOperand<float>&, float*);
template void gemm<float>(const GemmShape&, const GemmBlocks&, const GemmKernel<float>&,
                          const GemmOperand<float>&, const GemmOperand<float>&,
                          const GemmSink<float>&, float*, const float*);
template void pack_b<double>(const GemmShape&, const GemmOperand<double>&, double*);
template void gemm<double>(const GemmShape&, const GemmBlocks&, const GemmKernel<double>&,
                           const GemmOperand<double>&, const GemmOperand<double>&,
                           const GemmSink<double>&, double*, const double*);

}  // namespace ashlar::cpu

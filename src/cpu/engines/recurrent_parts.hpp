// Shared by the recurrent kernels: the steps of all sequences as unpadded rows, operands by
// meaning, and GEMMs with weights that stay packed across steps.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/dropout.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/integer_operand.hpp"
#include "cpu/kernels/gemm_micro_kernel.hpp"
#include "cpu/kernels/rnn_cell.hpp"
#include "cpu/threads.hpp"
#include "cpu/transpose_rows.hpp"
#include "graph/rnn_sequences.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

// Grain: items per thread, for items of this many flops.
inline std::int64_t items_for_flops(std::int64_t flops) {
  constexpr std::int64_t kFlops = 200'000;
  return kFlops / std::max<std::int64_t>(flops, 1) + 1;
}

template <class Rnn>
RnnShape rnn_shape(const Region& region) {
  const Rnn& op = *region.anchor_as<Rnn>();
  const auto dims = [&](int slot) {
    return region.anchor->inputs[static_cast<std::size_t>(slot)].dims;
  };
  const Dims sequence = dims(0);
  std::int64_t batch = 0, input = sequence[sequence.rank() - 1];
  if (op.layout == RnnLayout::packed) batch = dims(Rnn::seq_lengths)[0];
  if constexpr (std::is_same_v<Rnn, RnnBackwardData>)
    input = rnn_input_size(op, dims(Rnn::weights)[0]);
  return {op, sequence, batch, input};
}

// The steps of all sequences, numbered step by step ("entries"), so that the entries of one step
// are contiguous.
class RnnEntries {
 public:
  static std::int64_t integers(const RnnShape& shape) {
    return checked_add(RnnSequences::integers(shape),
                       checked_add(checked_mul(4, shape.rows), shape.batch));
  }

  template <class Given>
  RnnEntries(const RnnShape& shape, std::int64_t* memory, const Given& given)
      : sequences_(shape, memory, given),
        sequence_(memory + RnnSequences::integers(shape)),
        row_(sequence_ + shape.rows),
        neighbour_{row_ + shape.rows, row_ + 2 * shape.rows} {
    std::int64_t* latest = row_ + 3 * shape.rows;
    std::int64_t entry = 0;
    for (std::int64_t step = 0; step < steps(); ++step)
      for (std::int64_t n = 0; n < shape.batch; ++n) {
        if (!sequences_.runs(step, n)) continue;
        sequence_[entry] = n;
        row_[entry] = shape.packed ? entry : step * shape.batch + n;
        neighbour_[0][entry] = step > 0 ? latest[n] : -1;
        neighbour_[1][entry] = -1;
        if (step > 0) neighbour_[1][latest[n]] = entry;
        latest[n] = entry++;
      }
  }

  std::int64_t steps() const { return sequences_.steps(); }
  std::int64_t count() const { return sequences_.used_rows(); }
  std::int64_t start(std::int64_t step) const { return sequences_.start(step); }
  std::int64_t sequence(std::int64_t entry) const { return sequence_[entry]; }
  std::int64_t row(std::int64_t entry) const { return row_[entry]; }  // row of the tensors
  // The entry of the same sequence that a direction visits before this one, or -1.
  std::int64_t before(std::int64_t entry, std::int64_t direction) const {
    return neighbour_[direction][entry];
  }
  // Calls body(row) for the padding rows of the tensors.
  template <class Body>
  void for_unused_rows(const RnnShape& shape, const Body& body) const {
    for (std::int64_t row = 0; row < shape.rows; ++row)
      if (shape.packed ? row >= count() : !sequences_.runs(row / shape.batch, row % shape.batch))
        body(row);
  }

 private:
  RnnSequences sequences_;
  std::int64_t* sequence_;
  std::int64_t* row_;
  std::int64_t* neighbour_[2];
};

// An operand or result, read and written in rows along its last axis.
template <class T>
class RnnTensor {
 public:
  RnnTensor() = default;
  explicit RnnTensor(const PointwiseProgram& program) : present_(!program.empty()) {
    if (present_) rows_ = RowProgram<T>(program, program.space.rank() - 1);
  }
  bool present() const { return present_; }
  typename RowProgram<T>::Bound bind(const KernelContext& context) const {
    return present_ ? rows_.bind(context) : typename RowProgram<T>::Bound{};
  }

 private:
  bool present_ = false;
  RowProgram<T> rows_;
};

// Rows of A, `row` elements apart.
template <class T>
struct LeftRows {
  const T* data;
  std::int64_t row, count;
};

// Weights packed for the GEMM micro-kernel: columns ("indices") in groups (gates) that each fill
// whole panels. The panels of the same units of all groups ("a block") are adjacent: one thread
// multiplies them in sequence.
template <class T>
class PackedWeights {
 public:
  PackedWeights(std::int64_t groups, std::int64_t indices, std::int64_t k)
      : micro_kernel_(gemm_micro_kernel<T>()),
        groups_(groups),
        indices_(indices),
        k_(k),
        blocks_(divide_up(indices, micro_kernel_.columns)) {}

  std::int64_t blocks() const { return blocks_; }
  std::int64_t block_width() const { return micro_kernel_.columns; }   // units
  std::int64_t group_stride() const { return micro_kernel_.columns; }  // in a row of C
  std::int64_t block_stride() const { return groups_ * micro_kernel_.columns; }
  std::int64_t row_stride() const { return blocks_ * block_stride(); }
  std::int64_t elements() const { return checked_mul(row_stride(), k_); }
  // Units of a block: fewer in the last.
  std::int64_t units(std::int64_t block) const {
    return std::min(micro_kernel_.columns, indices_ - block * micro_kernel_.columns);
  }
  std::int64_t flops_per_block(std::int64_t rows) const {
    return 2 * rows * k_ * groups_ * micro_kernel_.columns;
  }
  // Packed column of index `i` over all groups.
  std::int64_t position(std::int64_t i) const {
    const std::int64_t unit = i % indices_;
    return unit / micro_kernel_.columns * block_stride() + i / indices_ * micro_kernel_.columns +
           unit % micro_kernel_.columns;
  }

  // view(fixed, start, count, buffer) reads along K at a fixed index, or along the indices at a
  // fixed k; it returns the elements in place, or in `buffer`.
  template <class View>
  void pack(T* panels, bool along_k, const View& view) const {
    const std::int64_t width = micro_kernel_.columns;
    parallel_for(groups_ * blocks_, items_for_flops(8 * k_ * width),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t panel = begin; panel < end; ++panel) {
                     const std::int64_t used = units(panel / groups_);
                     const std::int64_t index =
                         panel % groups_ * indices_ + panel / groups_ * width;
                     T* target = panels + panel * k_ * width;
                     if (used < width) std::fill_n(target, k_ * width, T{0});
                     if (along_k)
                       pack_along_depth(index, used, view, target);
                     else
                       for (std::int64_t l = 0; l < k_; ++l) {
                         T* row = target + l * width;
                         const T* found = view(l, index, used, row);
                         if (found != row) std::copy_n(found, used, row);
                       }
                   }
                 });
  }

  // Multiplies all groups of one block into rows of `c` with stride `c_row`; group k is k *
  // group_stride() after the first. Rows are split evenly, and K so that the slice of a panel
  // shared by all rows stays in cache. `bias`, in packed order, is added.
  void multiply(const T* panels, const LeftRows<T>& left, std::int64_t block, T* c,
                std::int64_t c_row, const T* bias = nullptr) const {
    constexpr std::int64_t kBlockK = 128;
    const std::int64_t parts = std::max<std::int64_t>(divide_up(left.count, micro_kernel_.rows), 1);
    const std::int64_t rows = divide_up(left.count, parts);
    GemmMicroArgs<T> o;
    o.columns = o.b_row = micro_kernel_.columns;
    o.a_row = left.row, o.c_row = c_row;
    GemmPostOps<T> post_ops;
    for (std::int64_t group = 0; group < groups_; ++group) {
      const std::int64_t panel = block * groups_ + group;
      const std::int64_t step = parts > 1 ? kBlockK : std::max<std::int64_t>(k_, 1);
      for (std::int64_t l = 0; l == 0 || l < k_; l += step) {
        o.k = std::min(step, k_ - l);
        o.b = panels + (panel * k_ + l) * micro_kernel_.columns;
        o.accumulate = l > 0;
        if (bias != nullptr && l + step >= k_) {
          post_ops.bias = bias + panel * micro_kernel_.columns;
          o.post_ops = &post_ops;
        } else {
          o.post_ops = nullptr;
        }
        for (std::int64_t i = 0; i < left.count; i += rows) {
          o.rows = std::min(rows, left.count - i);
          o.a = left.data + i * left.row + l;
          o.c = c + i * c_row + group * micro_kernel_.columns;
          micro_kernel_.strided(o);
        }
      }
    }
  }

 private:
  template <class View>
  void pack_along_depth(std::int64_t index, std::int64_t used, const View& view, T* target) const {
    constexpr std::int64_t kChunk = 128;
    alignas(64) T rows[kPanelColumnMultiple<T> * kChunk];
    for (std::int64_t start = 0; start < k_; start += kChunk) {
      const std::int64_t length = std::min(kChunk, k_ - start);
      for (std::int64_t i = 0; i < used; ++i) {
        const T* found = view(index + i, start, length, rows + i * kChunk);
        if (found != rows + i * kChunk) std::copy_n(found, length, rows + i * kChunk);
      }
      transpose_rows(rows, kChunk, used, length, target + start * micro_kernel_.columns,
                     micro_kernel_.columns);
    }
  }

  const GemmMicroKernel<T>& micro_kernel_;
  std::int64_t groups_, indices_, k_, blocks_;
};

// GEMM operand and sink from functions.
template <class T, class Row>
class GemmRows final : public GemmOperand<T> {
 public:
  GemmRows(bool along_k, Row row) : along_k_(along_k), row_(row) {}
  bool along_k() const override { return along_k_; }
  void row(std::int64_t, std::int64_t fixed, std::int64_t start, std::int64_t count,
           T* destination) const override {
    row_(fixed, start, count, destination);
  }

 private:
  bool along_k_;
  Row row_;
};
template <class T, class Row>
GemmRows<T, Row> gemm_rows(bool along_k, Row row) {
  return {along_k, row};
}
template <class T, class Take>
class GemmResult final : public GemmSink<T> {
 public:
  explicit GemmResult(Take take) : take_(take) {}
  void row(std::int64_t, std::int64_t m, std::int64_t n, std::int64_t count,
           T* values) const override {
    take_(m, n, count, values);
  }

 private:
  Take take_;
};
template <class T, class Take>
GemmResult<T, Take> gemm_result(Take take) {
  return GemmResult<T, Take>(take);
}

// Base of the recurrent kernels.
template <class T, class Rnn>
class RnnKernel : public Kernel {
 protected:
  using Bound = typename RowProgram<T>::Bound;

  RnnKernel(const Region& region, const Config& config)
      : op_(*region.anchor_as<Rnn>()),
        shape_(rnn_shape<Rnn>(region)),
        lengths_(input_program(region, Rnn::seq_lengths)),
        seed_(input_program(region, Rnn::dropout_seed)),
        offset_(input_program(region, Rnn::dropout_offset)),
        blocks_(GemmBlocks::from_knobs(config)),
        gemm_kernel_(gemm_kernel<T>()),
        integers_(scratch_layout_.add("entries", checked_mul(8, RnnEntries::integers(shape_)))) {}

  int reserve_scratch(const char* name, std::int64_t elements) {
    return scratch_layout_.add(name, checked_mul(elements, static_cast<std::int64_t>(sizeof(T))));
  }
  T* scratch(const KernelContext& context, int reservation) const {
    return context.scratch<T>(scratch_layout_, reservation);
  }
  RnnEntries entries(const KernelContext& context) const {
    return {shape_, context.scratch<std::int64_t>(scratch_layout_, integers_), [&](std::int64_t n) {
              Coords coords{};
              coords[0] = n;
              return lengths_.load(context, coords, shape_.steps);
            }};
  }

  Coords place(std::int64_t row, std::int64_t feature) const {
    if (shape_.packed) return {row, feature};
    return {row / shape_.batch, row % shape_.batch, feature};
  }
  Coords record(std::int64_t pseudo_layer, std::int64_t row, std::int64_t at) const {
    if (shape_.packed) return {pseudo_layer, row, at};
    return {pseudo_layer, row / shape_.batch, row % shape_.batch, at};
  }

  // Loads the states of all sequences; zeros if absent.
  void load_states(const RnnTensor<T>& tensor, const Bound& bound, std::int64_t pseudo_layer,
                   std::int64_t width, T* states) const {
    if (!tensor.present()) {
      std::fill_n(states, shape_.batch * width, T{0});
      return;
    }
    for (std::int64_t n = 0; n < shape_.batch; ++n)
      bound.load(Coords{pseudo_layer, n, 0}.data(), width, states + n * width);
  }
  void store_states(const RnnTensor<T>& tensor, const Bound& bound, std::int64_t pseudo_layer,
                    std::int64_t width, const T* states) const {
    if (!tensor.present()) return;
    for (std::int64_t n = 0; n < shape_.batch; ++n)
      bound.store(Coords{pseudo_layer, n, 0}.data(), width, states + n * width);
  }

  // Dropout between layers.
  struct Dropout {
    std::uint64_t seed, offset;
    T factor;
    double probability;
  };
  Dropout dropout(const KernelContext& context) const {
    return {static_cast<std::uint64_t>(seed_.load(context, Coords{}, 0)),
            static_cast<std::uint64_t>(offset_.load(context, Coords{}, 0)),
            static_cast<T>(1.0 / (1.0 - op_.dropout)), op_.dropout};
  }
  void drop(const Dropout& dropout, std::int64_t layer, std::int64_t row, std::int64_t feature,
            std::int64_t count, T* values) const {
    const std::int64_t first = (layer * shape_.rows + row) * shape_.layer_output() + feature;
    for (std::int64_t j = 0; j < count; ++j)
      values[j] = dropout_keeps(dropout.seed, dropout.offset, static_cast<std::uint64_t>(first + j),
                                dropout.probability)
                      ? values[j] * dropout.factor
                      : T{0};
  }
  void drop_entries(const Dropout& dropout, std::int64_t layer, const RnnEntries& entries,
                    T* outputs) const {
    if (op_.dropout == 0.0) return;
    const std::int64_t width = shape_.layer_output();
    parallel_for(entries.count(), items_for_flops(100 * width),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t entry = begin; entry < end; ++entry)
                     drop(dropout, layer, entries.row(entry), 0, width, outputs + entry * width);
                 });
  }

  // The clip bounds of the cell state; `round` rounds them as stored where they are compared.
  template <class Round>
  RnnClip<T> clip(const Round& round) const {
    const auto bound = [&](std::optional<double> value) {
      return static_cast<T>(round(value.value_or(0.0)));
    };
    return {op_.clip_low.has_value(), op_.clip_high.has_value(), op_.clip_nan, bound(op_.clip_low),
            bound(op_.clip_high)};
  }

  Rnn op_;
  RnnShape shape_;
  IntegerOperand lengths_, seed_, offset_;
  GemmBlocks blocks_;
  GemmKernel<T> gemm_kernel_;
  int integers_;
};

// Used by the engine in recurrent.cpp.
std::unique_ptr<Kernel> build_rnn_backward_data(const Region& region, const Config& config);
std::unique_ptr<Kernel> build_rnn_backward_weights(const Region& region, const Config& config);

}  // namespace ashlar::cpu

// The operands of a node as dense row-major arrays of values with error bounds: the oracle's inputs
// to the loop nests.
#pragma once

#include <ashlar/graph.hpp>
#include <ashlar/plan.hpp>
#include <vector>

#include "reference/addressing.hpp"
#include "reference/memory_operands.hpp"
#include "reference/scalar.hpp"

namespace ashlar::reference {

struct DenseTensor {
  std::vector<double> values;  // rounded to the dtype
  // Error as seen by a later node, which may read the value before or after rounding.
  std::vector<double> errors;
  // Error of the value in memory, which is always rounded. Outputs of the graph only.
  std::vector<double> written_errors;
  const void* memory = nullptr;  // of inputs and scalars
};

// Maximum distance of a value within `error` of `value`, rounded to `dtype`, from
// round_to(dtype, value).
double rounding_spread(DType dtype, double value, double error);

// Integer and boolean intermediates and floats of 8 bits or fewer must be rounded; wider floats may
// stay unrounded in a register.
constexpr bool may_stay_unrounded(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// Consecutive elements along an axis. Dot products of two lines take most of the oracle's time.
template <Arithmetic A>
class DenseLine {
 public:
  DenseLine(const DenseTensor& tensor, std::int64_t start, std::int64_t stride)
      : values_(tensor.values.data()),
        errors_(tensor.errors.data()),
        start_(start),
        stride_(stride) {}
  Approx<A> operator[](std::int64_t i) const {
    const std::int64_t element = start_ + i * stride_;
    return Approx<A>::stored(values_[element], errors_[element]);
  }

 private:
  const double* values_;
  const double* errors_;
  std::int64_t start_, stride_;
};

template <Arithmetic A>
class DenseView {
 public:
  using Scalar = Approx<A>;

  DenseView(const Tensor& tensor, DenseTensor& dense, DType compute)
      : tensor_(&tensor),
        shape_(tensor),
        dense_(&dense),
        compute_(compute),
        strides_(broadcast_strides(shape_.dims, row_major.strides_for(shape_.dims))) {}

  const Dims& dims() const { return shape_.dims; }
  DType dtype() const { return shape_.dtype; }
  bool complex() const { return is_complex(tensor_->dtype); }

  Scalar load(const Index& index) const {
    const auto element = static_cast<std::size_t>(offset_of(index, strides_));
    return Scalar::stored(dense_->values[element], dense_->errors[element]);
  }
  DenseLine<A> line(const Index& index, int axis) const {
    const int own_axis = axis + strides_.rank() - index.rank();
    return {*dense_, offset_of(index, strides_), own_axis < 0 ? 0 : strides_[own_axis]};
  }

  void store(const Index& index, Scalar number) const {
    const auto element = static_cast<std::size_t>(offset_of(index, strides_));
    const double rounded = round_to(shape_.dtype, number.value);
    double error = number.error;
    // Integers wrap beyond the compute type's range, and double is exact only up to 2^53.
    if (!is_floating(compute_) && (number.value > std::min(largest_value(compute_), 0x1p53) ||
                                   number.value < std::max(lowest_value(compute_), -0x1p53)))
      error = kInfinity;
    double spread = rounding_spread(shape_.dtype, number.value, error);
    dense_->values[element] = rounded;
    if (!dense_->written_errors.empty()) dense_->written_errors[element] = spread;
    if (may_stay_unrounded(shape_.dtype) && spread < kInfinity)
      spread = std::max(spread,
                        distance(number.value, rounded) + (std::isfinite(rounded) ? error : 0.0));
    dense_->errors[element] = spread;
  }

 private:
  const Tensor* tensor_;
  RealShape shape_;
  DenseTensor* dense_;
  DType compute_;
  Dims strides_;
};

template <Arithmetic A>
class DenseOperands {
 public:
  using Scalar = Approx<A>;
  using View = DenseView<A>;

  DenseOperands(const Graph& graph, const Node& node, std::vector<DenseTensor>& tensors,
                const PlanNotes& notes)
      : graph_(graph), node_(node), tensors_(tensors), notes_(notes) {}

  DType compute() const { return node_.compute; }
  const PlanNotes& notes() const { return notes_; }  // numerics of the implementation
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  bool has_input(int i) const { return i < input_count() && node_.inputs[at(i)] != kNoTensor; }
  bool has_output(int i) const {
    return at(i) < node_.outputs.size() && node_.outputs[at(i)] != kNoTensor;
  }
  View input(int i) const { return view(node_.inputs[at(i)]); }
  View output(int i) const { return view(node_.outputs[at(i)]); }
  std::int64_t integer(int i) const {
    const TensorId id = node_.inputs[at(i)];
    const DenseTensor& dense = tensors_[static_cast<std::size_t>(id)];
    const Tensor& tensor = graph_.tensor(id);
    if (dense.memory != nullptr || tensor.kind == TensorKind::constant)
      return MemoryOperands::load_integer(tensor, dense.memory);
    return static_cast<std::int64_t>(dense.values.front());
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  View view(TensorId id) const {
    return {graph_.tensor(id), tensors_[static_cast<std::size_t>(id)], node_.compute};
  }

  const Graph& graph_;
  const Node& node_;
  std::vector<DenseTensor>& tensors_;
  const PlanNotes& notes_;
};

}  // namespace ashlar::reference

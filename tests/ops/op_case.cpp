// Dtypes, layouts and tensors of one-operation graphs.
#include "ops/op_case.hpp"

#include <array>

namespace ashlar::ops {

std::string_view to_string(Shape shape) {
  constexpr std::array<std::string_view, 5> kNames = {"row_major", "channels_last", "padded",
                                                      "strided", "transposed"};
  return kNames[static_cast<std::size_t>(shape)];
}

Dims strides_for(Shape shape, const Dims& dims) {
  const int rank = dims.rank();
  Dims strides = Dims::filled(rank, 0);
  switch (shape) {
    case Shape::row_major: return row_major.strides_for(dims);
    case Shape::channels_last:
      if (rank >= 3) return channels_last.strides_for(dims);
      [[fallthrough]];
    case Shape::transposed: {  // the first axis varies fastest
      std::int64_t next = 1;
      for (int axis = 0; axis < rank; ++axis) {
        strides[axis] = next;
        next *= std::max<std::int64_t>(1, dims[axis]);
      }
      return strides;
    }
    case Shape::padded:
    case Shape::strided: {
      std::int64_t next = shape == Shape::strided ? 3 : 1;
      for (int axis = rank - 1; axis >= 0; --axis) {
        strides[axis] = next;
        next = next * std::max<std::int64_t>(1, dims[axis]) + (shape == Shape::padded ? 3 : 0);
      }
      return strides;
    }
  }
  return strides;
}

namespace {

Value convert(Graph& graph, Value value, DType dtype) {
  return graph.pointwise(PointwiseMode::identity, std::array{value}, {}, {.dtype = dtype});
}

}  // namespace

Value CaseBuilder::input(const std::string& name, const Dims& dims, DType dtype) {
  return graph_.input(name, dims, dtype, strides_for(variant_.shape, dims));
}

Value CaseBuilder::operand(const std::string& name, const Dims& dims) {
  const Value x = input(name, dims, variant_.dtype);
  if (!variant_.fused) return x;
  if (variant_.dtype == e8m0) return convert(graph_, convert(graph_, x, f32), e8m0);
  if (variant_.dtype == boolean) return graph_.pointwise(PointwiseMode::logical_not, std::array{x});
  const Value shift = graph_.input(name + "_shift", Dims::filled(dims.rank(), 1), variant_.dtype);
  return x + shift;
}

void CaseBuilder::result(Value value) {
  const Dims dims = value.dims();
  if (variant_.fused && value.dtype() == e8m0) {
    value = convert(graph_, value, f16);
  } else if (variant_.fused && value.dtype() == boolean) {
    value = graph_.pointwise(PointwiseMode::logical_not, std::array{value});
  } else if (variant_.fused) {
    Dims along = Dims::filled(dims.rank(), 1);
    const int axis = dims.rank() > 2 ? 1 : dims.rank() - 1;
    along[axis] = dims[axis];
    value = relu(value + graph_.input("bias", along, value.dtype()));
  }
  graph_.output("result", value, {.layout = Layout(strides_for(variant_.shape, dims))});
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases;
  for (const auto& family :
       {convolution_cases, dense_cases, pointwise_cases, resample_cases, norm_cases,
        attention_cases, attention_option_cases, movement_cases, recurrent_cases,
        low_precision_cases, statistics_cases, spatial_cases, sequence_cases, multi_head_cases,
        indexing_cases, language_model_cases, lines_cases})
    for (OpCase& one : family()) cases.push_back(std::move(one));
  return cases;
}

}  // namespace ashlar::ops

// The random graph generator: tensors and choice of operations.
#include "random/graph_maker.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace ashlar::random_graphs {

namespace {

constexpr std::int64_t kMaxElements = 2000;

// Strides for a given axis order, outermost first, with gaps.
Dims strides_in_order(const Dims& dims, const std::vector<int>& order, std::int64_t inner,
                      std::int64_t gap) {
  Dims strides = Dims::filled(dims.rank(), 0);
  std::int64_t next = inner;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[*axis] = next;
    next = next * std::max<std::int64_t>(1, dims[*axis]) + gap;
  }
  return strides;
}

}  // namespace

std::int64_t GraphMaker::below(std::int64_t limit) {
  return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(limit));
}

std::int64_t GraphMaker::extent() {
  constexpr std::array<std::int64_t, 14> kUsual = {1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 11, 16, 17};
  if (chance(0.01)) return 0;
  if (chance(0.02)) return 65;
  return one_of(kUsual);
}

Dims GraphMaker::dims(int rank) {
  Dims result;
  std::int64_t count = 1;
  for (int axis = 0; axis < rank; ++axis) {
    std::int64_t value = extent();
    if (count * value > kMaxElements) value = 1 + below(2);
    count *= std::max<std::int64_t>(1, value);
    result.push_back(value);
  }
  return result;
}

DType GraphMaker::floating() {
  constexpr std::array kUsual = {f32, f32, f32, f32, f16, bf16, f64, e4m3, e5m2};
  return one_of(kUsual);
}

DType GraphMaker::arithmetic() {
  constexpr std::array kOther = {i64, i32, i8, u8, i64, i32, i8, u8, u32, i4, u4, e2m1};
  return chance(0.2) ? one_of(kOther) : floating();
}

Value GraphMaker::input(const Dims& dims, DType dtype) {
  const int rank = dims.rank();
  std::vector<int> order(static_cast<std::size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) order[static_cast<std::size_t>(axis)] = axis;
  Layout layout = row_major;
  switch (below(8)) {
    case 0:
      if (rank >= 3) layout = channels_last;
      break;
    case 1:
      std::shuffle(order.begin(), order.end(), random_);
      layout = strides_in_order(dims, order, 1, 0);
      break;
    case 2: layout = strides_in_order(dims, order, 1, 1 + below(5)); break;
    case 3:
      std::shuffle(order.begin(), order.end(), random_);
      layout = strides_in_order(dims, order, 1 + below(3), below(3));
      break;
    case 4: {  // a broadcast axis
      Dims strides = row_major.strides_for(dims);
      strides[static_cast<int>(below(rank))] = 0;
      layout = strides;
      break;
    }
    default: break;
  }
  const Value value = graph_.input(name("x"), dims, dtype, layout);
  pool_.push_back(value);
  return value;
}

Value GraphMaker::old(const Test& test) {
  std::vector<Value> fitting;
  for (const Value& value : pool_)
    if (test(value.tensor())) fitting.push_back(value);
  return fitting.empty() ? Value() : one_of(fitting);
}

Value GraphMaker::like(const Dims& dims, DType dtype) {
  if (chance(0.5))
    if (const Value value =
            old([&](const Tensor& t) { return t.dims == dims && t.dtype == dtype; }))
      return value;
  return input(dims, dtype);
}

Value GraphMaker::broadcastable(const Dims& dims, DType dtype, bool lower_ranks) {
  const auto single_rank = [&] {
    return lower_ranks && chance(0.5) ? 1 + static_cast<int>(below(5)) : dims.rank();
  };
  if (chance(0.1)) return graph_.scalar(name("s"), dtype == boolean ? f32 : dtype, single_rank());
  if (chance(0.1)) {
    const int rank = single_rank();
    return graph_.constant(0.25 * static_cast<double>(below(17) - 8), dtype, rank);
  }
  if (chance(0.3)) {
    const Value value = old([&](const Tensor& t) {
      const int missing = dims.rank() - t.dims.rank();
      if (missing < 0 || (missing > 0 && !lower_ranks) || t.ragged_offset != kNoTensor)
        return false;
      for (int axis = 0; axis < t.dims.rank(); ++axis)
        if (t.dims[axis] != dims[missing + axis] && t.dims[axis] != 1) return false;
      return true;
    });
    if (value) return value;
  }
  Dims smaller = dims;
  for (std::int64_t& value : smaller)
    if (chance(0.3)) value = 1;
  int missing = 0;
  while (lower_ranks && missing + 1 < dims.rank() && smaller[missing] == 1 && chance(0.5))
    ++missing;
  return like(Dims(std::span(smaller).subspan(static_cast<std::size_t>(missing))), dtype);
}

Value GraphMaker::floating_value(int min_rank, int max_rank) {
  const Value value = old([&](const Tensor& t) {
    return is_floating(t.dtype) && t.dims.rank() >= min_rank && t.dims.rank() <= max_rank;
  });
  if (value && chance(0.85)) return value;
  const int rank = min_rank + static_cast<int>(below(max_rank - min_rank + 1));
  return input(dims(rank), floating());
}

Value GraphMaker::arithmetic_value(int min_rank, int max_rank) {
  const Value value = old([&](const Tensor& t) {
    return t.dtype != boolean && t.dims.rank() >= min_rank && t.dims.rank() <= max_rank;
  });
  if (value && chance(0.85)) return value;
  const int rank = min_rank + static_cast<int>(below(max_rank - min_rank + 1));
  return input(dims(rank), arithmetic());
}

OutputSpec GraphMaker::spec() {
  OutputSpec asked;
  if (chance(0.15)) asked.dtype = floating();
  return asked;
}

void GraphMaker::keep(Value value) {
  if (value) pool_.push_back(value);
}

void GraphMaker::add_something() {
  using Step = void (GraphMaker::*)();
  struct Weighted {
    Step step;
    int weight;
  };
  static constexpr std::array kSteps = {
      Weighted{&GraphMaker::add_pointwise, 34},
      Weighted{&GraphMaker::add_matmul, 8},
      Weighted{&GraphMaker::add_convolution, 6},
      Weighted{&GraphMaker::add_convolution_gradient, 4},
      Weighted{&GraphMaker::add_reduction, 8},
      Weighted{&GraphMaker::add_pooling, 4},
      Weighted{&GraphMaker::add_interpolation, 3},
      Weighted{&GraphMaker::add_resample_gradient, 3},
      Weighted{&GraphMaker::add_norm, 6},
      Weighted{&GraphMaker::add_norm_gradient, 3},
      Weighted{&GraphMaker::add_softmax, 5},
      Weighted{&GraphMaker::add_attention, 4},
      Weighted{&GraphMaker::add_rng, 2},
      Weighted{&GraphMaker::add_view, 14},
      Weighted{&GraphMaker::add_concat, 4},
      Weighted{&GraphMaker::add_recurrent, 5},
      Weighted{&GraphMaker::add_low_precision, 5},
      Weighted{&GraphMaker::add_statistics, 8},
      Weighted{&GraphMaker::add_spatial, 10},
      Weighted{&GraphMaker::add_sequence, 8},
      Weighted{&GraphMaker::add_multi_head, 5},
      Weighted{&GraphMaker::add_indexing, 6},
      Weighted{&GraphMaker::add_language_model, 5},
      Weighted{&GraphMaker::add_lines, 12},
      Weighted{&GraphMaker::add_composite_softmax, 2},
      Weighted{&GraphMaker::add_composite_norm, 2},
      Weighted{&GraphMaker::add_composite_attention, 2},
      Weighted{&GraphMaker::add_composite_linear, 2},
  };
  int total = 0;
  for (const Weighted& entry : kSteps) total += entry.weight;
  int drawn = static_cast<int>(below(total));
  for (const Weighted& entry : kSteps) {
    drawn -= entry.weight;
    if (drawn >= 0) continue;
    try {
      (this->*entry.step)();
    } catch (const Error& error) {
      // Some random combinations are invalid; the graph is then unchanged.
      if (error.code() != ErrorCode::invalid_graph) throw;
    }
    return;
  }
}

Graph GraphMaker::make() {
  const std::int64_t wanted = 1 + below(chance(0.2) ? 14 : 6);
  for (int tries = 0; static_cast<std::int64_t>(graph_.nodes().size()) < wanted && tries < 200;
       ++tries)
    add_something();

  std::set<TensorId> read, computed, fixed;  // fixed: of few types
  for (const Node& node : graph_.nodes()) {
    if (std::holds_alternative<BlockScaleQuantize>(node.op) ||
        is_complex(graph_.tensor(node.outputs[0]).dtype))
      fixed.insert(node.outputs.begin(), node.outputs.end());
    read.insert(node.inputs.begin(), node.inputs.end());
    computed.insert(node.outputs.begin(), node.outputs.end());
  }
  computed.erase(kNoTensor);
  int outputs = 0;
  const auto make_output = [&](TensorId id) {
    OutputSpec asked;
    const Value value = graph_.value(id);
    const bool copies = !is_complex(value.dtype());  // another layout or type is a copy
    if (chance(0.2) && copies) {
      const Dims extents = value.dims();
      std::vector<int> order;
      for (int axis = 0; axis < extents.rank(); ++axis) order.push_back(axis);
      if (chance(0.5)) std::shuffle(order.begin(), order.end(), random_);
      asked.layout = Layout(strides_in_order(extents, order, 1 + below(2), below(4)));
    }
    if (chance(0.1) && !fixed.contains(id)) asked.dtype = floating();
    graph_.output("y" + std::to_string(outputs++), value, asked);
  };
  for (TensorId id : computed)
    if (chance(read.contains(id) ? 0.12 : 0.9)) make_output(id);
  if (outputs == 0) make_output(*computed.rbegin());
  return std::move(graph_);
}

}  // namespace ashlar::random_graphs

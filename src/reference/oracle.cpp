// evaluate_reference: evaluates the graph node by node with values that carry error bounds.
#include <ashlar/check.hpp>
#include <variant>

#include "base/fail.hpp"
#include "reference/evaluate.hpp"

namespace ashlar {

namespace reference {

double rounding_spread(DType dtype, double value, double error) {
  if (error == 0.0) return 0.0;
  if (error == kInfinity) return kInfinity;
  if (dtype == DType::boolean) return std::fabs(value) <= error ? 1.0 : 0.0;
  // Rounding is monotonic, so the ends of the interval bound the result.
  const double rounded = round_to(dtype, value);
  return std::max(distance(round_to(dtype, value + error), rounded),
                  distance(rounded, round_to(dtype, value - error)));
}

namespace {

template <Arithmetic A>
void evaluate_dense(const Graph& graph, const Node& node, std::vector<DenseTensor>& tensors,
                    const PlanNotes& notes) {
  const DenseOperands<A> operands(graph, node, tensors, notes);
  std::visit([&](const auto& op) { evaluate_op(op, operands); }, node.op);
}

bool is_interpolation(const Op& op) {
  const auto is_linear = [](const ResampleAttributes* form) {
    return form != nullptr && form->mode == ResampleMode::bilinear;
  };
  return is_linear(std::get_if<ResampleForward>(&op)) ||
         is_linear(std::get_if<ResampleBackward>(&op));
}

// Interpolation weights are fractions: with an integer compute type they are f64.
Arithmetic arithmetic_for(const Node& node) {
  const Arithmetic own = arithmetic_of(node.compute);
  return own == Arithmetic::integer && is_interpolation(node.op) ? Arithmetic::f64 : own;
}

void evaluate_dense(const Graph& graph, const Node& node, std::vector<DenseTensor>& tensors,
                    const PlanNotes& notes) {
  switch (arithmetic_for(node)) {
    case Arithmetic::f32: return evaluate_dense<Arithmetic::f32>(graph, node, tensors, notes);
    case Arithmetic::f64: return evaluate_dense<Arithmetic::f64>(graph, node, tensors, notes);
    case Arithmetic::integer:
      return evaluate_dense<Arithmetic::integer>(graph, node, tensors, notes);
  }
}

DenseTensor read_input(const Tensor& tensor, const void* data, RaggedRows rows) {
  const MemoryView view(tensor, data, rows);
  DenseTensor dense;
  dense.memory = data;
  const auto count = static_cast<std::size_t>(number_count(tensor));
  dense.values.resize(count);
  dense.errors.resize(count, 0.0);
  for_each(view.dims(), [&](const Index& index) {
    dense.values[static_cast<std::size_t>(flatten(view.dims(), index))] = view.load(index);
  });
  return dense;
}

DenseTensor empty_result(const Tensor& tensor) {
  DenseTensor dense;
  const auto count = static_cast<std::size_t>(number_count(tensor));
  dense.values.resize(count, 0.0);
  dense.errors.resize(count, 0.0);
  if (tensor.kind == TensorKind::output) dense.written_errors.resize(count, 0.0);
  return dense;
}

std::vector<std::int64_t> row_starts(const Graph& graph, const Tensor& tensor,
                                     const std::vector<DenseTensor>& tensors) {
  if (tensor.ragged_offset == kNoTensor) return {};
  const std::vector<double>& offsets =
      tensors[static_cast<std::size_t>(tensor.ragged_offset)].values;
  if (std::cmp_less(offsets.size(), tensor.dims[0] + 1))
    fail(ErrorCode::invalid_graph,
         "tensor '{}' is ragged with {} rows, but its offsets '{}' hold {} values", tensor.name,
         tensor.dims[0], graph.tensor(tensor.ragged_offset).name, offsets.size());
  std::vector<std::int64_t> starts;
  starts.reserve(offsets.size());
  for (double offset : offsets) starts.push_back(static_cast<std::int64_t>(offset));
  return starts;
}

}  // namespace

}  // namespace reference

std::vector<Expected> evaluate_reference(const Graph& graph, std::span<const void* const> pointers,
                                         const PlanNotes& notes) {
  using namespace reference;
  graph.validate();
  const std::vector<TensorId> bound = graph.bound_tensors();
  if (pointers.size() != bound.size())
    fail(ErrorCode::invalid_argument,
         "evaluate_reference needs {} pointers, one per bound tensor, got {}", bound.size(),
         pointers.size());
  std::vector<const void*> memory(graph.tensors().size(), nullptr);
  for (std::size_t i = 0; i < bound.size(); ++i)
    memory[static_cast<std::size_t>(bound[i])] = pointers[i];

  std::vector<DenseTensor> tensors(graph.tensors().size());
  for (std::size_t id = 0; id < tensors.size(); ++id) {
    const Tensor& tensor = graph.tensors()[id];
    const bool read = tensor.kind == TensorKind::input || tensor.kind == TensorKind::scalar;
    if (!read && tensor.kind != TensorKind::constant) {
      tensors[id] = empty_result(tensor);
      continue;
    }
    if (read && memory[id] == nullptr && element_count(tensor.dims) > 0)
      fail(ErrorCode::invalid_argument, "evaluate_reference got a null pointer for '{}'",
           tensor.name);
    const void* offsets = tensor.ragged_offset == kNoTensor
                              ? nullptr
                              : memory[static_cast<std::size_t>(tensor.ragged_offset)];
    tensors[id] = read_input(tensor, memory[id], RaggedRows::of(graph, tensor, offsets));
  }
  for (const Node& node : graph.nodes()) evaluate_dense(graph, node, tensors, notes);

  std::vector<Expected> results;
  for (TensorId id : bound) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.kind != TensorKind::output) continue;
    std::vector<std::int64_t> starts = row_starts(graph, tensor, tensors);
    DenseTensor& dense = tensors[static_cast<std::size_t>(id)];
    results.push_back(
        {id, std::move(dense.values), std::move(dense.written_errors), std::move(starts)});
  }
  return results;
}

}  // namespace ashlar

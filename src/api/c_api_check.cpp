// C API: the reference oracle.
#include "api/c_api.hpp"

namespace ashlar::capi {

namespace {

std::span<const void* const> require_bound(const Graph& graph, const void* const* pointers,
                                           std::int32_t count) {
  const std::span<const void* const> result = require_array(pointers, count, "pointers");
  const std::size_t expected = graph.bound_tensors().size();
  if (result.size() != expected)
    fail(ErrorCode::invalid_argument,
         "pointers: got {}, expected one for each of the {} bound tensors", count, expected);
  for (std::size_t i = 0; i < expected; ++i) {
    const Tensor& tensor = graph.tensor(graph.bound_tensors()[i]);
    if (!result[i] && byte_size(tensor) > 0)
      fail(ErrorCode::invalid_argument, "pointers: got a null pointer for tensor '{}'",
           tensor.name);
  }
  return result;
}

const Tensor& require_index(const Graph& graph, std::int32_t id, std::int64_t index) {
  const Tensor& tensor = graph.tensor(id);
  const std::int64_t count = number_count(tensor);
  if (index < 0 || index >= count)
    fail(ErrorCode::invalid_argument, "index into tensor '{}': got {}, it has {} elements",
         tensor.name, index, count);
  return tensor;
}

bool is_worse(const Comparison& a, const Comparison& b) {
  if (a.ok != b.ok) return !a.ok;
  return a.worst_error * b.worst_bound > b.worst_error * a.worst_bound;
}

void check_outputs(const Graph& graph, const PlanNotes& notes, const void* const* pointers,
                   std::int32_t pointer_count, ashlar_comparison* worst, char* buffer,
                   std::size_t capacity, std::size_t* needed) {
  const std::span<const void* const> bound = require_bound(graph, pointers, pointer_count);
  const std::vector<TensorId> order = graph.bound_tensors();
  std::optional<Comparison> found;
  ashlar_comparison result;
  ashlar_comparison_init(&result);
  for (const Expected& expected : evaluate_reference(graph, bound, notes)) {
    const auto position = std::find(order.begin(), order.end(), expected.tensor) - order.begin();
    Comparison comparison =
        expected.compare(graph.tensor(expected.tensor), bound[static_cast<std::size_t>(position)]);
    if (found && !is_worse(comparison, *found)) continue;
    result.tensor = expected.tensor;
    found = std::move(comparison);
  }
  if (!found) fail(ErrorCode::invalid_graph, "graph '{}' has no output to check", graph.name());
  result.ok = found->ok;
  result.compared = found->compared;
  result.mismatches = found->mismatches;
  result.worst_index = found->worst_index;
  result.worst_error = found->worst_error;
  result.worst_bound = found->worst_bound;
  copy_text(found->summary, buffer, capacity, needed);
  write_sized(require(worst, "worst"), result);
}

}  // namespace

}  // namespace ashlar::capi

using namespace ashlar;
using namespace ashlar::capi;

extern "C" {

void ashlar_comparison_init(ashlar_comparison* comparison) {
  if (!comparison) return;
  init_sized(comparison);
  comparison->tensor = ASHLAR_NO_TENSOR;
}

ashlar_status ashlar_reference(const ashlar_graph* graph, const void* const* pointers,
                               int32_t pointer_count, int32_t output, double* values,
                               double* bounds, int64_t count) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    const Tensor& tensor = source.tensor(output);
    if (tensor.kind != TensorKind::output)
      fail(ErrorCode::invalid_argument, "tensor '{}' is not an output of the graph", tensor.name);
    if (count != number_count(tensor))
      fail(ErrorCode::invalid_argument, "count: got {}, tensor '{}' has {} elements", count,
           tensor.name, number_count(tensor));
    for (const Expected& expected :
         evaluate_reference(source, require_bound(source, pointers, pointer_count))) {
      if (expected.tensor != output) continue;
      if (values) std::copy(expected.values.begin(), expected.values.end(), values);
      if (bounds) std::copy(expected.bounds.begin(), expected.bounds.end(), bounds);
    }
  });
}

ashlar_status ashlar_check(const ashlar_graph* graph, const void* const* pointers,
                           int32_t pointer_count, ashlar_comparison* worst, char* buffer,
                           size_t capacity, size_t* needed) {
  return guard([&] {
    check_outputs(require(graph, "graph").graph, {}, pointers, pointer_count, worst, buffer,
                  capacity, needed);
  });
}

ashlar_status ashlar_check_plan(const ashlar_plan* plan, const void* const* pointers,
                                int32_t pointer_count, ashlar_comparison* worst, char* buffer,
                                size_t capacity, size_t* needed) {
  return guard([&] {
    const Plan& source = require(plan, "plan").plan;
    check_outputs(source.graph(), source.notes(), pointers, pointer_count, worst, buffer, capacity,
                  needed);
  });
}

ashlar_status ashlar_read_element(const ashlar_graph* graph, int32_t tensor, const void* data,
                                  int64_t index, double* value) {
  return guard([&] {
    const Tensor& source = require_index(require(graph, "graph").graph, tensor, index);
    if (!data) fail(ErrorCode::invalid_argument, "data: got a null pointer");
    require(value, "value") = read_element(source, data, index);
  });
}

ashlar_status ashlar_write_element(const ashlar_graph* graph, int32_t tensor, void* data,
                                   int64_t index, double value) {
  return guard([&] {
    const Tensor& target = require_index(require(graph, "graph").graph, tensor, index);
    if (!data) fail(ErrorCode::invalid_argument, "data: got a null pointer");
    write_element(target, data, index, value);
  });
}

ashlar_status ashlar_fill_random(const ashlar_graph* graph, int32_t tensor, void* data,
                                 uint64_t seed, double low, double high) {
  return guard([&] {
    const Tensor& target = require(graph, "graph").graph.tensor(tensor);
    if (!data) fail(ErrorCode::invalid_argument, "data: got a null pointer");
    if (!(low <= high))
      fail(ErrorCode::invalid_argument, "range: got {} to {}, expected low <= high", low, high);
    fill_random(target, data, seed, low, high);
  });
}

}  // extern "C"

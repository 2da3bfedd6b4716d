// C API: graphs and tensors.
#include "api/c_api.hpp"

namespace ashlar::capi {

namespace {

Layout layout_from_c(const ashlar_tensor& tensor) {
  switch (tensor.layout) {
    case ASHLAR_ROW_MAJOR: return row_major;
    case ASHLAR_CHANNELS_LAST: return channels_last;
    case ASHLAR_STRIDES:
      return Dims(std::span(tensor.strides, static_cast<std::size_t>(tensor.rank)));
    default:
      fail(ErrorCode::invalid_argument, "layout: got {}, expected 0 to {}", tensor.layout,
           int{ASHLAR_STRIDES});
  }
}

Tensor tensor_from_c(const ashlar_tensor& given) {
  ashlar_tensor defaults;
  ashlar_tensor_init(&defaults);
  const ashlar_tensor tensor = read_sized(given, defaults);
  if (tensor.kind < 0 || tensor.kind > ASHLAR_CONSTANT)
    fail(ErrorCode::invalid_argument, "kind: got {}, expected 0 to {}", tensor.kind,
         int{ASHLAR_CONSTANT});
  if (tensor.rank < 0 || tensor.rank > kMaxRank)
    fail(ErrorCode::invalid_argument, "rank: got {}, expected 0 to {}", tensor.rank, kMaxRank);
  Tensor result;
  if (tensor.name) result.name = tensor.name;
  result.uid = tensor.uid;
  result.kind = static_cast<TensorKind>(tensor.kind);
  result.infer_dtype = tensor.dtype == ASHLAR_DTYPE_INFER;
  if (!result.infer_dtype) result.dtype = dtype_from_c(tensor.dtype);
  const bool computed =
      result.kind == TensorKind::output || result.kind == TensorKind::intermediate;
  if (result.infer_dtype && !computed)
    fail(ErrorCode::invalid_argument,
         "dtype of tensor '{}': got none, expected one: only computed tensors infer theirs",
         result.name);
  result.dims = Dims(std::span(tensor.dims, static_cast<std::size_t>(tensor.rank)));
  const Layout layout = layout_from_c(tensor);
  const bool chosen = !computed || tensor.layout != ASHLAR_ROW_MAJOR;
  if (tensor.rank == 0 && tensor.layout != ASHLAR_ROW_MAJOR)
    fail(ErrorCode::invalid_argument,
         "layout of tensor '{}': got {} without dims, expected dims too", result.name,
         tensor.layout);
  if (tensor.rank > 0 && chosen) result.strides = layout.strides_for(result.dims);
  result.value = tensor.value;
  result.ragged_offset = tensor.ragged_offset;
  return result;
}

}  // namespace

ashlar_tensor tensor_to_c(const Tensor& tensor) {
  ashlar_tensor result;
  ashlar_tensor_init(&result);
  result.name = tensor.name.c_str();
  result.uid = tensor.uid;
  result.kind = static_cast<ashlar_tensor_kind>(tensor.kind);
  result.dtype = tensor.infer_dtype ? ASHLAR_DTYPE_INFER : static_cast<ashlar_dtype>(tensor.dtype);
  result.layout = tensor.strides.empty() ? ASHLAR_ROW_MAJOR : ASHLAR_STRIDES;
  result.rank = tensor.dims.rank();
  std::copy(tensor.dims.begin(), tensor.dims.end(), result.dims);
  std::copy(tensor.strides.begin(), tensor.strides.end(), result.strides);
  result.value = tensor.value;
  result.ragged_offset = tensor.ragged_offset;
  return result;
}

}  // namespace ashlar::capi

using namespace ashlar;
using namespace ashlar::capi;

extern "C" {

void ashlar_tensor_init(ashlar_tensor* tensor) {
  if (!tensor) return;
  init_sized(tensor);
  tensor->kind = ASHLAR_INTERMEDIATE;
  tensor->dtype = ASHLAR_DTYPE_INFER;
  tensor->ragged_offset = ASHLAR_NO_TENSOR;
}

ashlar_status ashlar_graph_create(const char* name, ashlar_graph** graph) {
  return guard([&] {
    ashlar_graph*& result = require(graph, "graph");
    result = new ashlar_graph{Graph(name ? name : "graph")};
  });
}

ashlar_status ashlar_graph_from_json(const char* text, size_t length, ashlar_graph** graph) {
  return guard([&] {
    ashlar_graph*& result = require(graph, "graph");
    result = new ashlar_graph{Graph::from_json({&require(text, "text"), length})};
  });
}

ashlar_status ashlar_graph_clone(const ashlar_graph* graph, ashlar_graph** copy) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    ashlar_graph*& result = require(copy, "copy");
    result = new ashlar_graph{source.clone()};
  });
}

void ashlar_graph_destroy(ashlar_graph* graph) { delete graph; }

ashlar_status ashlar_graph_to_json(const ashlar_graph* graph, char* buffer, size_t capacity,
                                   size_t* needed) {
  return guard(
      [&] { copy_text(require(graph, "graph").graph.to_json(), buffer, capacity, needed); });
}

ashlar_status ashlar_graph_to_text(const ashlar_graph* graph, char* buffer, size_t capacity,
                                   size_t* needed) {
  return guard(
      [&] { copy_text(require(graph, "graph").graph.to_text(), buffer, capacity, needed); });
}

ashlar_status ashlar_graph_name(const ashlar_graph* graph, const char** name) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    require(name, "name") = source.name().c_str();
  });
}

ashlar_status ashlar_graph_validate(const ashlar_graph* graph) {
  return guard([&] { require(graph, "graph").graph.validate(); });
}

ashlar_status ashlar_graph_hash(const ashlar_graph* graph, uint64_t* hash) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    require(hash, "hash") = source.structural_hash();
  });
}

ashlar_status ashlar_graph_add_tensor(ashlar_graph* graph, const ashlar_tensor* tensor,
                                      int32_t* id) {
  return guard([&] {
    Graph& target = require(graph, "graph").graph;
    int32_t& result = require(id, "id");
    result = target.add_tensor(tensor_from_c(require(tensor, "tensor")));
  });
}

ashlar_status ashlar_graph_tensor_count(const ashlar_graph* graph, int32_t* count) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    require(count, "count") = static_cast<int32_t>(source.tensors().size());
  });
}

ashlar_status ashlar_graph_get_tensor(const ashlar_graph* graph, int32_t id,
                                      ashlar_tensor* tensor) {
  return guard([&] {
    const Tensor& found = require(graph, "graph").graph.tensor(id);
    write_sized(require(tensor, "tensor"), tensor_to_c(found));
  });
}

ashlar_status ashlar_graph_find_tensor(const ashlar_graph* graph, const char* name, int32_t* id) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    int32_t& result = require(id, "id");
    const TensorId found = source.find_tensor(require_text(name, "name"));
    if (found == kNoTensor)
      fail(ErrorCode::invalid_argument, "graph '{}' has no tensor '{}'", source.name(), name);
    result = found;
  });
}

ashlar_status ashlar_graph_tensor_bytes(const ashlar_graph* graph, int32_t id, int64_t* bytes) {
  return guard([&] {
    const Tensor& tensor = require(graph, "graph").graph.tensor(id);
    require(bytes, "bytes") = byte_size(tensor);
  });
}

ashlar_status ashlar_graph_bound_count(const ashlar_graph* graph, int32_t* count) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    require(count, "count") = static_cast<int32_t>(source.bound_tensors().size());
  });
}

ashlar_status ashlar_graph_bound_tensor(const ashlar_graph* graph, int32_t index, int32_t* id) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    require(id, "id") = row_at(source.bound_tensors(), index);
  });
}

ashlar_status ashlar_graph_set_uid(ashlar_graph* graph, int32_t id, int64_t uid) {
  return guard([&] {
    Graph& target = require(graph, "graph").graph;
    target.set_uid(target.value(id), uid);
  });
}

ashlar_status ashlar_graph_set_ragged(ashlar_graph* graph, int32_t id, int32_t offsets) {
  return guard([&] {
    Graph& target = require(graph, "graph").graph;
    target.set_ragged(target.value(id), target.value(offsets));
  });
}

ashlar_status ashlar_graph_gradients(ashlar_graph* graph, const int32_t* of, int32_t of_count,
                                     const int32_t* wrt, int32_t wrt_count,
                                     const int32_t* cotangents, int32_t* results) {
  return guard([&] {
    Graph& target = require(graph, "graph").graph;
    const auto values = [&](const int32_t* ids, int32_t count, const char* argument) {
      if (count < 0)
        fail(ErrorCode::invalid_argument, "{}: got {} tensors, expected at least 0", argument,
             count);
      if (count > 0) require(ids, argument);
      std::vector<Value> found;
      for (int32_t i = 0; i < count; ++i)
        found.push_back(ids[i] == ASHLAR_NO_TENSOR ? Value() : target.value(ids[i]));
      return found;
    };
    const std::vector<Value> wanted = values(wrt, wrt_count, "wrt");
    if (wrt_count > 0) require(results, "results");
    GradientOptions options;
    if (cotangents != nullptr) options.cotangents = values(cotangents, of_count, "cotangents");
    const std::vector<Value> found = gradients(target, values(of, of_count, "of"), wanted, options);
    for (std::size_t i = 0; i < found.size(); ++i)
      results[i] = found[i] ? found[i].id() : ASHLAR_NO_TENSOR;
  });
}

}  // extern "C"

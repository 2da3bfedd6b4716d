// Graph: tensors, nodes, and the rules that hold for the graph as a whole.
#include <ashlar/graph.hpp>
#include <unordered_map>

#include "base/checked.hpp"
#include "graph/graph_data.hpp"
#include "graph/node_context.hpp"
#include "graph/tensor_rules.hpp"

namespace ashlar {

namespace {

constexpr std::size_t kMaxTensors = 1 << 20;

bool supports_ragged(const Node& node) { return traits_of(node.op).ragged.has_value(); }

bool has_dtype(const GraphData& graph, const Node& node, DType dtype) {
  for (TensorId id : node.inputs)
    if (id != kNoTensor && graph.tensors[static_cast<std::size_t>(id)].dtype == dtype) return true;
  return false;
}

}  // namespace

Graph::Graph(std::string name) : data_(std::make_unique<GraphData>()) {
  data_->name = std::move(name);
}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Graph Graph::clone() const {
  Graph copy;
  *copy.data_ = *data_;
  return copy;
}

const Tensor& Value::tensor() const {
  if (!graph_)
    fail(ErrorCode::invalid_argument, "value: got an empty one, expected a tensor of a graph");
  return graph_->tensors[static_cast<std::size_t>(id_)];
}

const std::string& Graph::name() const { return data_->name; }
const std::vector<Tensor>& Graph::tensors() const { return data_->tensors; }
const std::vector<Node>& Graph::nodes() const { return data_->nodes; }

const Tensor& Graph::tensor(TensorId id) const {
  if (id < 0 || id >= static_cast<TensorId>(data_->tensors.size()))
    fail(ErrorCode::invalid_argument, "tensor id: got {}, expected 0 to {}", id,
         static_cast<int>(data_->tensors.size()) - 1);
  return data_->tensors[static_cast<std::size_t>(id)];
}

void Graph::require_own(Value value, std::string_view call) const {
  if (!value)
    fail(ErrorCode::invalid_argument, "{}: got an empty value, expected a tensor of this graph",
         call);
  if (value.graph_ != data_.get())
    fail(ErrorCode::invalid_argument,
         "{}: got '{}', a tensor of another graph, expected one of this graph", call,
         value.tensor().name);
}

Value Graph::value(TensorId id) {
  tensor(id);
  return {data_.get(), id};
}

std::vector<TensorId> Graph::bound_tensors() const {
  std::vector<TensorId> bound;
  for (std::size_t i = 0; i < data_->tensors.size(); ++i) {
    const TensorKind kind = data_->tensors[i].kind;
    if (kind != TensorKind::intermediate && kind != TensorKind::constant)
      bound.push_back(static_cast<TensorId>(i));
  }
  return bound;
}

TensorId Graph::find_tensor(std::string_view name) const {
  for (std::size_t i = 0; i < data_->tensors.size(); ++i)
    if (data_->tensors[i].name == name) return static_cast<TensorId>(i);
  return kNoTensor;
}

TensorId Graph::add_tensor(Tensor tensor) {
  if (data_->tensors.size() >= kMaxTensors)
    fail(ErrorCode::invalid_graph, "graph '{}': tensors: got {} and one more, expected at most {}",
         data_->name, data_->tensors.size(), kMaxTensors);
  const auto id = static_cast<TensorId>(data_->tensors.size());
  if (tensor.name.empty()) tensor.name = fmt::format("t{}", id);
  if (tensor.uid == 0) tensor.uid = id + 1;
  check_tensor(*data_, tensor);
  data_->producers.push_back(kNoNode);
  try {
    data_->tensors.push_back(std::move(tensor));
  } catch (...) {
    data_->producers.pop_back();
    throw;
  }
  return id;
}

NodeId Graph::add_node(Node node) {
  const auto id = static_cast<NodeId>(data_->nodes.size());
  if (node.name.empty()) node.name = fmt::format("{}_{}", traits_of(node.op).name, id);
  if (node.name.size() > kMaxNameBytes)
    fail(ErrorCode::invalid_graph, "{} '{}...': name: got {} bytes, expected at most {}",
         traits_of(node.op).name, node.name.substr(0, 32), node.name.size(), kMaxNameBytes);
  NodeContext context(*data_, node);
  if (is_complex(node.compute) || node.compute == e8m0)
    context.reject("compute", to_string(node.compute), "a type to compute in, such as f32");
  const auto whose = [&] { return fmt::format("{} '{}'", context.traits().name, node.name); };
  naming_overflow(whose, [&] { context.traits().infer(context); });
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoTensor) continue;
    Tensor& output = context.outputs()[i];
    if (output.ragged_offset != kNoTensor && !supports_ragged(node))
      context.reject(fmt::format("output '{}'", output.name), "a ragged tensor",
                     "a plain one: only attention writes ragged tensors");
    context.require_usable(fmt::format("dtype of output '{}'", output.name), output.dtype);
    naming_overflow(whose, [&] { check_tensor(*data_, output); });
    naming_overflow(whose, [&] { check_no_overlap(output); });
  }
  data_->nodes.push_back(std::move(node));
  const Node& added = data_->nodes.back();
  for (std::size_t i = 0; i < added.outputs.size(); ++i) {
    if (added.outputs[i] == kNoTensor) continue;
    data_->tensors[static_cast<std::size_t>(added.outputs[i])] = std::move(context.outputs()[i]);
    data_->producers[static_cast<std::size_t>(added.outputs[i])] = id;
  }
  return id;
}

void Graph::set_uid(Value tensor, std::int64_t uid) {
  require_own(tensor, "set_uid");
  data_->tensors[static_cast<std::size_t>(tensor.id_)].uid = uid;
}

void Graph::set_ragged(Value tensor, Value offsets) {
  require_own(tensor, "set_ragged");
  require_own(offsets, "set_ragged");
  Tensor changed = tensor.tensor();
  changed.ragged_offset = offsets.id_;
  check_tensor(*data_, changed);
  for (const Node& node : data_->nodes) {
    const auto touches = [&](const std::vector<TensorId>& ids) {
      return std::find(ids.begin(), ids.end(), tensor.id_) != ids.end();
    };
    if (!supports_ragged(node) && (touches(node.inputs) || touches(node.outputs)))
      fail(ErrorCode::invalid_graph,
           "{} '{}': tensor '{}': got ragged offsets, expected none: only attention reads and "
           "writes ragged tensors",
           traits_of(node.op).name, node.name, changed.name);
  }
  data_->tensors[static_cast<std::size_t>(tensor.id_)] = std::move(changed);
}

void Graph::validate() const {
  std::unordered_map<std::string_view, TensorId> names;
  std::unordered_map<std::int64_t, TensorId> uids;
  bool has_output = false;
  for (std::size_t i = 0; i < data_->tensors.size(); ++i) {
    const Tensor& tensor = data_->tensors[i];
    const auto [name, new_name] = names.emplace(tensor.name, i);
    if (!new_name)
      fail(ErrorCode::invalid_graph,
           "graph '{}': names: got two tensors named '{}', expected unique names", data_->name,
           tensor.name);
    // Uids identify bound memory, so those of intermediates and constants may repeat.
    const bool bound =
        tensor.kind != TensorKind::intermediate && tensor.kind != TensorKind::constant;
    const auto [uid, new_uid] = bound ? uids.emplace(tensor.uid, i) : std::pair(uids.end(), true);
    if (!new_uid)
      fail(ErrorCode::invalid_graph,
           "graph '{}': uids: got {} for both '{}' and '{}', expected unique uids", data_->name,
           tensor.uid, this->tensor(uid->second).name, tensor.name);
    const bool computed =
        tensor.kind == TensorKind::output || tensor.kind == TensorKind::intermediate;
    if (computed && data_->producers[i] == kNoNode)
      fail(ErrorCode::invalid_graph,
           "tensor '{}': producer: got no node that computes it, expected one", tensor.name);
    has_output = has_output || tensor.kind == TensorKind::output;
  }
  if (!has_output)
    fail(ErrorCode::invalid_graph, "graph '{}': outputs: got none, expected at least one",
         data_->name);
}

DType default_compute(const GraphData& graph, const Node& node) {
  if (has_dtype(graph, node, f64)) return f64;
  if (traits_of(node.op).integers_are_parameters) return f32;
  if (has_dtype(graph, node, complex_f64)) return f64;
  for (DType dtype : {f32, f16, bf16, e4m3, e5m2, e8m0, e2m1, complex_f32})
    if (has_dtype(graph, node, dtype)) return f32;
  for (DType dtype : {i64, u32})
    if (has_dtype(graph, node, dtype)) return i64;
  for (DType dtype : {i32, i8, u8, i4, u4})
    if (has_dtype(graph, node, dtype)) return i32;
  return f32;
}

}  // namespace ashlar

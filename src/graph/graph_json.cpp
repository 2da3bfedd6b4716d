// Reads and writes graphs as JSON, version 1. docs/graph-json.md specifies the format.
#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/checked.hpp"
#include "graph/enum_names.hpp"
#include "graph/graph_data.hpp"
#include "graph/json.hpp"
#include "graph/op_traits.hpp"
#include "graph/score_program.hpp"
#include "graph/visit_attributes.hpp"

namespace ashlar {

namespace {

constexpr int kVersion = 1;

Json dims_to_json(const Dims& dims) {
  return Json(std::vector<std::int64_t>(dims.begin(), dims.end()));
}

struct AttributeWriter {
  Json& object;

  void operator()(std::string_view name, const Dims& value) { set(name, dims_to_json(value)); }
  void operator()(std::string_view name, double value) { set(name, number_to_json(value)); }
  void operator()(std::string_view name, std::int64_t value) { set(name, value); }
  void operator()(std::string_view name, bool value) { set(name, value); }
  template <class T>
  void operator()(std::string_view name, const std::optional<T>& value) {
    if (value) (*this)(name, *value);
  }
  void operator()(std::string_view name, const ScoreProgram& program) {
    Json steps = Json::array();
    for (const ScoreStep& step : program) {
      Json members = Json::object();
      ScoreStep::attributes(step, AttributeWriter{members});
      steps.push_back(std::move(members));
    }
    set(name, std::move(steps));
  }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(std::string_view name, E value) { set(name, std::string(enum_name(value))); }

  void set(std::string_view name, Json value) { object[std::string(name)] = std::move(value); }
};

struct AttributeReader {
  const JsonReader& object;
  std::vector<std::string>& names;

  template <class T>
  void operator()(std::string_view name, T& value) {
    names.emplace_back(name);
    if (object.has(names.back().c_str())) read(object.at(names.back().c_str()), value);
  }

  static void read(const JsonReader& json, Dims& value);
  static void read(const JsonReader& json, ScoreProgram& program);
  static void read(const JsonReader& json, double& value) { value = json.number(); }
  static void read(const JsonReader& json, std::int64_t& value) { value = json.integer(); }
  static void read(const JsonReader& json, bool& value) { value = json.boolean(); }
  template <class T>
  static void read(const JsonReader& json, std::optional<T>& value) {
    read(json, value.emplace());
  }
  template <class E>
  requires std::is_enum_v<E>
  static void read(const JsonReader& json, E& value) {
    if (parse_enum(json.string(), value)) return;
    std::string known;
    for (std::string_view name : enum_names(value))
      known += (known.empty() ? "" : ", ") + std::string(name);
    json.reject("one of: " + known);
  }
};

void AttributeReader::read(const JsonReader& json, Dims& value) {
  if (json.size() > static_cast<std::size_t>(kMaxRank))
    json.reject(fmt::format("at most {} values", kMaxRank));
  value = {};
  for (std::size_t i = 0; i < json.size(); ++i) value.push_back(json[i].integer());
}

void require_attributes(const JsonReader& object, const std::vector<std::string>& known) {
  for (const auto& member : object.json().items())
    if (std::find(known.begin(), known.end(), member.key()) == known.end())
      fail(ErrorCode::parse, "{}: got unknown attribute '{}', expected one of: {}", object.path(),
           member.key(), fmt::join(known, ", "));
}

void AttributeReader::read(const JsonReader& json, ScoreProgram& program) {
  if (json.size() > kMaxScoreSteps) json.reject(fmt::format("at most {} steps", kMaxScoreSteps));
  program.clear();
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonReader step = json[i];
    step.require_object();
    std::vector<std::string> known;
    ScoreStep::attributes(program.emplace_back(), AttributeReader{step, known});
    require_attributes(step, known);
  }
}

DType read_dtype(const JsonReader& json) {
  DType dtype = f32;
  if (parse_dtype(json.string(), dtype)) return dtype;
  std::string known;
  for (DType other : kAllDTypes)
    known += (known.empty() ? "" : ", ") + std::string(to_string(other));
  json.reject("one of: " + known);
}

// --- writing

Json tensor_to_json(const Graph& graph, const Tensor& tensor) {
  Json json;
  json["name"] = tensor.name;
  json["kind"] = std::string(enum_name(tensor.kind));
  json["dtype"] = std::string(to_string(tensor.dtype));
  json["dims"] = dims_to_json(tensor.dims);
  json["strides"] = dims_to_json(tensor.strides);
  json["uid"] = tensor.uid;
  if (tensor.kind == TensorKind::constant) json["value"] = number_to_json(tensor.value);
  if (tensor.ragged_offset != kNoTensor)
    json["ragged_offset"] = graph.tensor(tensor.ragged_offset).name;
  return json;
}

Json operands_to_json(const Graph& graph, const std::vector<TensorId>& ids,
                      std::span<const Slot> slots) {
  Json json = Json::object();
  if (!slots.empty() && slots[0].need == Slot::Need::variadic) {
    Json& list = json[std::string(slots[0].name)] = Json::array();
    for (TensorId id : ids) list.push_back(graph.tensor(id).name);
    return json;
  }
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] != kNoTensor) json[std::string(slots[i].name)] = graph.tensor(ids[i]).name;
  return json;
}

Json node_to_json(const Graph& graph, const Node& node) {
  const OpTraits& traits = traits_of(node.op);
  Json json;
  json["name"] = node.name;
  json["op"] = std::string(traits.name);
  json["inputs"] = operands_to_json(graph, node.inputs, traits.inputs);
  json["outputs"] = operands_to_json(graph, node.outputs, traits.outputs);
  Json values = Json::object(), defaults = Json::object();
  visit_attributes(node.op, AttributeWriter{values});
  visit_attributes(default_op(traits.name), AttributeWriter{defaults});
  Json& attributes = json["attributes"] = Json::object();
  for (const auto& [name, value] : values.items())
    if (!defaults.contains(name) || defaults[name].dump() != value.dump())
      attributes[name] = value;  // tells -0 from 0
  json["compute"] = std::string(to_string(node.compute));
  return json;
}

// --- reading

// Tensors by name; an undeclared name becomes an intermediate on first use.
class TensorNames {
 public:
  // `tensors` is the list of declarations, or null.
  TensorNames(Graph& graph, const JsonReader* tensors) : graph_(graph) {
    if (!tensors) return;
    for (std::size_t i = 0; i < tensors->size(); ++i)
      if ((*tensors)[i].has("uid")) given_uids_.insert((*tensors)[i].at("uid").integer());
    for (std::size_t i = 0; i < tensors->size(); ++i) declare((*tensors)[i]);
    for (std::size_t i = 0; i < tensors->size(); ++i) connect_offsets((*tensors)[i]);
  }

  TensorId use(const JsonReader& json) {
    const std::string name = json.string();
    if (name.empty()) json.reject("the name of a tensor");
    const auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    Tensor tensor;
    tensor.name = name;
    tensor.uid = next_uid();
    tensor.infer_dtype = true;
    return ids_[name] = graph_.add_tensor(std::move(tensor));
  }

 private:
  void declare(const JsonReader& json) {
    json.require_known(
        {"name", "kind", "dtype", "dims", "strides", "layout", "uid", "value", "ragged_offset"});
    Tensor tensor;
    tensor.name = json.at("name").string();
    if (tensor.name.empty()) json.at("name").reject("a name");
    if (ids_.contains(tensor.name)) json.at("name").reject("a name no other tensor has");
    if (json.has("kind")) AttributeReader::read(json.at("kind"), tensor.kind);
    tensor.infer_dtype = !json.has("dtype");
    if (json.has("dtype")) tensor.dtype = read_dtype(json.at("dtype"));
    if (json.has("dims")) AttributeReader::read(json.at("dims"), tensor.dims);
    if (json.has("strides")) AttributeReader::read(json.at("strides"), tensor.strides);
    if (json.has("layout")) tensor.strides = read_layout(json, tensor);
    if (json.has("uid")) tensor.uid = json.at("uid").integer();
    if (tensor.uid == 0) tensor.uid = next_uid();
    if (tensor.kind == TensorKind::constant) tensor.value = json.at("value").number();
    if (tensor.kind != TensorKind::constant && json.has("value"))
      json.at("value").reject("no value except in a constant");
    const std::string name = tensor.name;
    ids_[name] = graph_.add_tensor(std::move(tensor));
  }

  // Offsets may be declared after the ragged tensor that refers to them.
  void connect_offsets(const JsonReader& json) {
    if (!json.has("ragged_offset")) return;
    const auto offsets = ids_.find(json.at("ragged_offset").string());
    if (offsets == ids_.end()) json.at("ragged_offset").reject("the name of a declared tensor");
    graph_.set_ragged(graph_.value(ids_[json.at("name").string()]), graph_.value(offsets->second));
  }

  // The smallest positive uid that is neither in the document nor in use.
  std::int64_t next_uid() {
    while (given_uids_.contains(++last_uid_)) {
    }
    return last_uid_;
  }

  static Dims read_layout(const JsonReader& json, const Tensor& tensor) {
    if (json.has("strides")) json.at("layout").reject("either a layout or strides");
    if (tensor.dims.empty()) json.at("layout").reject("dims to apply it to");
    for (std::int64_t extent : tensor.dims)
      if (extent < 0) json.at("dims").reject("extents of at least 0");
    const std::string layout = json.at("layout").string();
    if (layout != "row_major" && layout != "channels_last")
      json.at("layout").reject("row_major or channels_last");
    return naming_overflow(
        [&] { return fmt::format("tensor '{}'", tensor.name); },
        [&] {
          return (layout == "row_major" ? row_major : channels_last).strides_for(tensor.dims);
        });
  }

  Graph& graph_;
  std::unordered_map<std::string, TensorId> ids_;
  std::unordered_set<std::int64_t> given_uids_;
  std::int64_t last_uid_ = 0;
};

std::vector<TensorId> read_operands(const JsonReader& json, std::span<const Slot> slots,
                                    TensorNames& names) {
  std::vector<TensorId> ids;
  json.require_object();
  for (const auto& member : json.json().items()) {
    const bool known = std::any_of(slots.begin(), slots.end(),
                                   [&](const Slot& slot) { return slot.name == member.key(); });
    if (known) continue;
    std::string all;
    for (const Slot& slot : slots) all += (all.empty() ? "" : ", ") + std::string(slot.name);
    fail(ErrorCode::parse, "{}: got unknown operand '{}', expected: {}", json.path(), member.key(),
         all);
  }
  for (const Slot& slot : slots) {
    const std::string key(slot.name);
    if (slot.need == Slot::Need::variadic) {
      const JsonReader list = json.at(key.c_str());
      for (std::size_t i = 0; i < list.size(); ++i) ids.push_back(names.use(list[i]));
    } else {
      ids.push_back(json.has(key.c_str()) ? names.use(json.at(key.c_str())) : kNoTensor);
    }
  }
  return ids;
}

Node read_node(const JsonReader& json, TensorNames& names, bool& has_compute) {
  json.require_known({"name", "op", "inputs", "outputs", "attributes", "compute"});
  Node node;
  if (json.has("name")) node.name = json.at("name").string();
  const std::string op = json.at("op").string();
  if (!find_traits(op)) json.at("op").reject("one of: " + known_operations());
  node.op = default_op(op);
  const OpTraits& traits = traits_of(node.op);
  node.inputs = json.has("inputs") ? read_operands(json.at("inputs"), traits.inputs, names)
                                   : std::vector<TensorId>();
  node.outputs = read_operands(json.at("outputs"), traits.outputs, names);
  if (json.has("attributes")) {
    const JsonReader attributes = json.at("attributes");
    attributes.require_object();
    std::vector<std::string> known;
    visit_attributes(node.op, AttributeReader{attributes, known});
    require_attributes(attributes, known);
  }
  has_compute = json.has("compute");
  if (has_compute) node.compute = read_dtype(json.at("compute"));
  return node;
}

// A topological order of `nodes`; among the nodes that are ready, the first in the document.
std::vector<std::size_t> execution_order(const std::vector<Node>& nodes) {
  std::unordered_map<TensorId, std::size_t> producer;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (TensorId id : nodes[i].outputs)
      if (id != kNoTensor) producer.emplace(id, i);
  std::vector<int> waiting(nodes.size(), 0);
  std::vector<std::vector<std::size_t>> consumers(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (TensorId id : nodes[i].inputs)
      if (const auto found = producer.find(id); found != producer.end()) {
        consumers[found->second].push_back(i);
        ++waiting[i];
      }
  std::vector<std::size_t> order;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (waiting[i] == 0) ready.push(i);
  while (!ready.empty()) {
    const std::size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (std::size_t consumer : consumers[next])
      if (--waiting[consumer] == 0) ready.push(consumer);
  }
  if (order.size() == nodes.size()) return order;
  const auto stuck =
      std::find_if(waiting.begin(), waiting.end(), [](int count) { return count > 0; });
  const Node& node = nodes[static_cast<std::size_t>(stuck - waiting.begin())];
  fail(ErrorCode::invalid_graph, "{} '{}': inputs: got a cycle, expected an acyclic graph",
       traits_of(node.op).name, node.name);
}

}  // namespace

ScoreProgram parse_score_program(std::string_view json, const std::string& path) {
  const Json document = parse_json(json);
  ScoreProgram program;
  AttributeReader::read(JsonReader(document, path), program);
  return program;
}

std::string Graph::to_json(int indent) const {
  Json json;
  json["format"] = "ashlar-graph";
  json["version"] = kVersion;
  json["name"] = data_->name;
  Json& tensors = json["tensors"] = Json::array();
  for (const Tensor& tensor : data_->tensors) tensors.push_back(tensor_to_json(*this, tensor));
  Json& nodes = json["nodes"] = Json::array();
  for (const Node& node : data_->nodes) nodes.push_back(node_to_json(*this, node));
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Graph Graph::from_json(std::string_view text) {
  const Json document = parse_json(text);
  const JsonReader json(document, "");
  json.require_known({"format", "version", "name", "tensors", "nodes"});
  if (json.at("format").string() != "ashlar-graph") json.at("format").reject("\"ashlar-graph\"");
  if (json.at("version").integer() != kVersion)
    json.at("version").reject(fmt::format("version {}", kVersion));
  Graph graph(json.has("name") ? json.at("name").string() : "graph");
  const std::optional<JsonReader> tensors =
      json.has("tensors") ? std::optional(json.at("tensors")) : std::nullopt;
  TensorNames names(graph, tensors ? &*tensors : nullptr);
  const JsonReader list = json.at("nodes");
  std::vector<Node> nodes;
  std::vector<char> has_compute;
  for (std::size_t i = 0; i < list.size(); ++i) {
    bool given = false;
    nodes.push_back(read_node(list[i], names, given));
    if (nodes.back().name.empty())
      nodes.back().name = fmt::format("{}_{}", traits_of(nodes.back().op).name, i);
    has_compute.push_back(given);
  }
  for (std::size_t i : execution_order(nodes)) {
    if (!has_compute[i]) nodes[i].compute = default_compute(*graph.data_, nodes[i]);
    graph.add_node(std::move(nodes[i]));
  }
  graph.validate();
  return graph;
}

}  // namespace ashlar

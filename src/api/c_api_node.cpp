// C API: nodes of any operation, with attributes and operands by name.
#include "api/c_api.hpp"

#include "graph/enum_names.hpp"
#include "graph/graph_data.hpp"
#include "graph/op_traits.hpp"
#include "graph/score_program.hpp"

namespace ashlar::capi {

namespace {

using AttributeValue = std::variant<std::int64_t, double, bool, Dims, std::string_view>;
constexpr const char* kValueNames[] = {"an integer", "a number", "a boolean", "a list of integers",
                                       "a string"};

// Sets the attribute `name`. assign() has one overload per field type.
class AttributeSetter {
 public:
  AttributeSetter(std::string_view name, const AttributeValue& value)
      : name_(name), value_(value) {}
  bool found() const { return found_; }
  const std::string& known() const { return known_; }

  template <class Field>
  void operator()(const char* name, Field& field) {
    known_ += (known_.empty() ? "" : ", ") + std::string(name);
    if (name_ != name) return;
    found_ = true;
    assign(field);
  }

 private:
  template <class T>
  void assign(std::optional<T>& field) {
    T value{};
    assign(value);
    field = value;
  }
  void assign(std::int64_t& field) { field = get<std::int64_t>("an integer"); }
  void assign(bool& field) { field = get<bool>("a boolean"); }
  void assign(Dims& field) { field = get<Dims>("a list of integers"); }
  void assign(double& field) {
    const auto* integer = std::get_if<std::int64_t>(&value_);
    field = integer ? static_cast<double>(*integer) : get<double>("a number");
  }
  void assign(ScoreProgram& field) {
    field = parse_score_program(get<std::string_view>("a string holding the JSON list of steps"),
                                std::string(name_));
  }
  template <class E>
  requires std::is_enum_v<E>
  void assign(E& field) {
    const std::string_view text = get<std::string_view>("a string");
    if (!parse_enum(text, field))
      fail(ErrorCode::invalid_argument, "attribute '{}': got '{}', expected one of: {}", name_,
           text, fmt::join(enum_names(E{}), ", "));
  }
  template <class T>
  const T& get(const char* expected) const {
    if (const T* value = std::get_if<T>(&value_)) return *value;
    fail(ErrorCode::invalid_argument, "attribute '{}': got {}, expected {}", name_,
         kValueNames[value_.index()], expected);
  }

  std::string_view name_;
  const AttributeValue& value_;
  std::string known_;
  bool found_ = false;
};

void set_attribute(ashlar_node* node, const char* attribute, const AttributeValue& value) {
  Op& op = require(node, "node").node.op;
  AttributeSetter setter(require_text(attribute, "attribute"), value);
  std::visit([&](auto& kind) { kind.attributes(kind, setter); }, op);
  if (!setter.found())
    fail(ErrorCode::invalid_argument, "{} has no attribute '{}', expected one of: {}",
         traits_of(op).name, attribute, setter.known());
}

std::size_t slot_named(std::span<const Slot> slots, std::string_view operand, const Op& op,
                       const char* direction) {
  std::string known;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name == operand) return i;
    known += (known.empty() ? "" : ", ") + std::string(slots[i].name);
  }
  fail(ErrorCode::invalid_argument, "{} has no {} '{}', expected one of: {}", traits_of(op).name,
       direction, operand, known);
}

void set_operand(std::vector<TensorId>& ids, std::size_t slot, TensorId tensor) {
  if (ids.size() <= slot) ids.resize(slot + 1, kNoTensor);
  ids[slot] = tensor;
}

TensorId operand_at(const std::vector<TensorId>& ids, std::size_t slot) {
  return slot < ids.size() ? ids[slot] : kNoTensor;
}

// The node as Graph::add_node requires it: one entry per operand slot, compute type set.
Node complete(const ashlar_node& source, const Graph& graph) {
  Node node = source.node;
  const OpTraits& traits = traits_of(node.op);
  if (!traits.is_variadic()) node.inputs.resize(traits.inputs.size(), kNoTensor);
  node.outputs.resize(traits.outputs.size(), kNoTensor);
  if (source.compute) {
    node.compute = *source.compute;
    return node;
  }
  GraphData operands;
  Node probe{.name = {}, .op = node.op, .inputs = {}, .outputs = {}};
  for (const TensorId id : node.inputs) {
    if (id == kNoTensor) continue;
    probe.inputs.push_back(static_cast<TensorId>(operands.tensors.size()));
    operands.tensors.push_back(graph.tensor(id));
  }
  node.compute = default_compute(operands, probe);
  return node;
}

}  // namespace

}  // namespace ashlar::capi

using namespace ashlar;
using namespace ashlar::capi;

extern "C" {

ashlar_status ashlar_node_create(const char* op, const char* name, ashlar_node** node) {
  return guard([&] {
    ashlar_node*& result = require(node, "node");
    const std::string_view op_name = require_text(op, "op");
    result = new ashlar_node{
        {.name = name ? name : "", .op = default_op(op_name), .inputs = {}, .outputs = {}}, {}};
  });
}

void ashlar_node_destroy(ashlar_node* node) { delete node; }

ashlar_status ashlar_node_set_int(ashlar_node* node, const char* attribute, int64_t value) {
  return guard([&] { set_attribute(node, attribute, value); });
}

ashlar_status ashlar_node_set_double(ashlar_node* node, const char* attribute, double value) {
  return guard([&] { set_attribute(node, attribute, value); });
}

ashlar_status ashlar_node_set_bool(ashlar_node* node, const char* attribute, int value) {
  return guard([&] { set_attribute(node, attribute, value != 0); });
}

ashlar_status ashlar_node_set_ints(ashlar_node* node, const char* attribute, const int64_t* values,
                                   int32_t count) {
  return guard(
      [&] { set_attribute(node, attribute, Dims(require_array(values, count, "values"))); });
}

ashlar_status ashlar_node_set_string(ashlar_node* node, const char* attribute, const char* value) {
  return guard([&] { set_attribute(node, attribute, require_text(value, "value")); });
}

ashlar_status ashlar_node_set_compute(ashlar_node* node, ashlar_dtype dtype) {
  return guard([&] { require(node, "node").compute = dtype_from_c(dtype); });
}

ashlar_status ashlar_node_set_input(ashlar_node* node, const char* operand, int32_t tensor) {
  return guard([&] {
    Node& target = require(node, "node").node;
    const auto slots = traits_of(target.op).inputs;
    set_operand(target.inputs,
                slot_named(slots, require_text(operand, "operand"), target.op, "input"), tensor);
  });
}

ashlar_status ashlar_node_append_input(ashlar_node* node, const char* operand, int32_t tensor) {
  return guard([&] {
    Node& target = require(node, "node").node;
    slot_named(traits_of(target.op).inputs, require_text(operand, "operand"), target.op, "input");
    if (!traits_of(target.op).is_variadic())
      fail(ErrorCode::invalid_argument,
           "{} takes one tensor as input '{}', use ashlar_node_set_input",
           traits_of(target.op).name, operand);
    target.inputs.push_back(tensor);
  });
}

ashlar_status ashlar_node_set_output(ashlar_node* node, const char* operand, int32_t tensor) {
  return guard([&] {
    Node& target = require(node, "node").node;
    const auto slots = traits_of(target.op).outputs;
    set_operand(target.outputs,
                slot_named(slots, require_text(operand, "operand"), target.op, "output"), tensor);
  });
}

ashlar_status ashlar_graph_add_node(ashlar_graph* graph, const ashlar_node* node, int32_t* id) {
  return guard([&] {
    Graph& target = require(graph, "graph").graph;
    const NodeId added = target.add_node(complete(require(node, "node"), target));
    if (id) *id = added;
  });
}

ashlar_status ashlar_graph_node_count(const ashlar_graph* graph, int32_t* count) {
  return guard([&] {
    const Graph& source = require(graph, "graph").graph;
    require(count, "count") = static_cast<int32_t>(source.nodes().size());
  });
}

ashlar_status ashlar_graph_get_node(const ashlar_graph* graph, int32_t id, ashlar_node** node) {
  return guard([&] {
    const std::vector<Node>& nodes = require(graph, "graph").graph.nodes();
    ashlar_node*& result = require(node, "node");
    if (id < 0 || std::cmp_greater_equal(id, nodes.size()))
      fail(ErrorCode::invalid_argument, "node id: got {}, expected 0 to {}", id,
           static_cast<std::int64_t>(nodes.size()) - 1);
    const Node& found = nodes[static_cast<std::size_t>(id)];
    result = new ashlar_node{found, found.compute};
  });
}

ashlar_status ashlar_node_op(const ashlar_node* node, const char** op) {
  return guard([&] {
    const Node& source = require(node, "node").node;
    require(op, "op") = traits_of(source.op).name.data();  // a string literal, so it ends in a zero
  });
}

ashlar_status ashlar_node_name(const ashlar_node* node, const char** name) {
  return guard([&] {
    const Node& source = require(node, "node").node;
    require(name, "name") = source.name.c_str();
  });
}

ashlar_status ashlar_node_get_input(const ashlar_node* node, const char* operand, int32_t index,
                                    int32_t* tensor) {
  return guard([&] {
    const Node& source = require(node, "node").node;
    const auto slots = traits_of(source.op).inputs;
    const std::size_t slot =
        slot_named(slots, require_text(operand, "operand"), source.op, "input");
    if (index < 0 || (index > 0 && !traits_of(source.op).is_variadic()))
      fail(ErrorCode::invalid_argument, "index: got {}, expected 0 for an operand of one tensor",
           index);
    require(tensor, "tensor") = operand_at(source.inputs, slot + static_cast<std::size_t>(index));
  });
}

ashlar_status ashlar_node_get_output(const ashlar_node* node, const char* operand,
                                     int32_t* tensor) {
  return guard([&] {
    const Node& source = require(node, "node").node;
    const auto slots = traits_of(source.op).outputs;
    const std::size_t slot =
        slot_named(slots, require_text(operand, "operand"), source.op, "output");
    require(tensor, "tensor") = operand_at(source.outputs, slot);
  });
}

}  // extern "C"

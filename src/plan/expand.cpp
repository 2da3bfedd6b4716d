// Expansion: building blocks for replacing a composite node, and the pass itself.
#include "plan/expand.hpp"

#include <fmt/format.h>

#include "graph/op_traits.hpp"
#include "plan/lowered.hpp"

namespace ashlar {

namespace {

constexpr std::size_t kMaxPrefix = 64;  // keeps new names below kMaxNameBytes

}  // namespace

Expansion::Expansion(GraphEditor& editor, NodeId id)
    : editor_(editor),
      id_(id),
      node_(editor.node(id)),
      prefix_(node_.name.substr(0, kMaxPrefix) + "."),
      dtype_(node_.compute == f64 ? f64 : f32) {}

std::string Expansion::name_of(const std::string& role) const { return prefix_ + role; }

std::string Expansion::view_role(TensorId x, const char* change) const {
  const std::string& name = tensor(x).name;
  const std::size_t skipped = name.starts_with(prefix_) ? prefix_.size() : 0;
  return fmt::format("{}.{}", name.substr(skipped, 2 * kMaxPrefix), change);
}

std::vector<TensorId> Expansion::add(Op op, std::vector<TensorId> inputs,
                                     const std::vector<Result>& results,
                                     std::optional<DType> compute) {
  Node node{
      name_of(results[0].role), std::move(op), std::move(inputs), {}, compute.value_or(dtype_)};
  for (const Result& result : results)
    node.outputs.push_back(editor_.add_intermediate(name_of(result.role), result.dims,
                                                    result.dtype.value_or(dtype_), result.strides));
  std::vector<TensorId> outputs = node.outputs;
  editor_.add(std::move(node));
  ++count_;
  return outputs;
}

TensorId Expansion::pointwise(PointwiseMode mode, std::vector<TensorId> inputs,
                              const Result& result, std::optional<DType> compute) {
  return add(Pointwise{.mode = mode}, std::move(inputs), result, compute);
}

TensorId Expansion::select_or_zero(TensorId predicate, TensorId x, double factor,
                                   const std::string& role) {
  const TensorId zero = constant(0.0, dims(x).rank(), "zero");
  return add(Pointwise{.mode = PointwiseMode::binary_select, .alpha1 = factor},
             {x, zero, predicate}, {role});
}

TensorId Expansion::matmul(TensorId a, TensorId b, const std::string& role) {
  return add(Matmul{}, {a, b}, {role});
}

TensorId Expansion::constant(double value, int rank, const std::string& role) {
  // One tensor per value: equal nodes of two expansions are merged only if they read the same
  // tensors.
  return editor_.constant(name_of(role), value, dtype_, rank);
}

TensorId Expansion::reshape(TensorId x, Dims to) {
  if (dims(x) == to) return x;
  const std::string role = view_role(x, "reshaped");
  return add(Reshape{to}, {x}, {.role = role, .dtype = tensor(x).dtype});
}

TensorId Expansion::transpose(TensorId x, const Dims& permutation) {
  const std::string role = view_role(x, "transposed");
  return add(Transpose{permutation}, {x}, {.role = role, .dtype = tensor(x).dtype});
}

TensorId Expansion::slice(TensorId x, const Dims& start, const Dims& limit) {
  if (limit == dims(x) && start == Dims::filled(start.rank(), 0)) return x;
  const std::string role = view_role(x, "part");
  return add(Slice{start, limit, {}}, {x}, {.role = role, .dtype = tensor(x).dtype});
}

TensorId Expansion::repeat(TensorId x, std::int64_t axis, std::int64_t times,
                           const std::string& role) {
  if (times == 1) return x;
  const std::vector<TensorId> copies(static_cast<std::size_t>(times), x);
  return add(Concat{axis}, copies, {.role = role, .dtype = tensor(x).dtype});
}

void Expansion::store(TensorId x, int output_slot) {
  const TensorId target = output(output_slot);
  if (tensor(x).dtype != tensor(target).dtype)
    x = pointwise(PointwiseMode::identity, {x},
                  {.role = view_role(target, "rounded"), .dtype = tensor(target).dtype});
  editor_.add({name_of(view_role(target, "stored")), Reshape{dims(target)}, {x}, {target}, dtype_});
  ++count_;
}

void Expansion::make(Op op, std::vector<TensorId> inputs, int output_slot) {
  const TensorId target = output(output_slot);
  editor_.add({name_of(view_role(target, "made")),
               std::move(op),
               std::move(inputs),
               {target},
               node_.compute});
  ++count_;
}

void expand_compositions(LoweredGraph& lowered) {
  GraphEditor editor(lowered.graph);
  const NodeId count = editor.node_count();
  bool changed = false;
  for (NodeId id = 0; id < count; ++id) {
    Expansion expansion(editor, id);
    const Node& node = expansion.node();
    if (!std::visit([&](const auto& op) { return expand(op, expansion); }, node.op)) continue;
    lowered.notes.push_back(fmt::format("expanded {} '{}' into {} smaller operation(s)",
                                        traits_of(node.op).name, node.name,
                                        expansion.node_count()));
    changed = true;
  }
  if (changed) editor.finish();
}

bool expand_attention(LoweredGraph& lowered, const EngineQuery& engines) {
  GraphEditor editor(lowered.graph);
  const NodeId count = editor.node_count();
  bool changed = false;
  for (NodeId id = 0; id < count; ++id) {
    const Node node = editor.node(id);
    const auto* op = std::get_if<AttentionForward>(&node.op);
    if (op == nullptr || engines.has_fast_engine(lowered.graph, node)) continue;
    Expansion expansion(editor, id);
    if (!expand_into_matmuls(*op, expansion)) continue;
    lowered.notes.push_back(
        fmt::format("expanded attention_forward '{}' into {} smaller operations: no specialised "
                    "engine of this device takes it",
                    node.name, expansion.node_count()));
    changed = true;
  }
  if (changed) editor.finish();
  return changed;
}

}  // namespace ashlar

// The shrinker of failing graphs.
#include "random/shrink.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace ashlar::random_graphs {

namespace {

// A graph as plain records, which may be inconsistent until it is assembled again.
struct Parts {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
};

Parts parts_of(const Graph& graph) {
  Parts parts{graph.tensors(), graph.nodes()};
  for (Tensor& tensor : parts.tensors) tensor.uid = 0;
  return parts;
}

std::optional<Graph> assemble(const Parts& parts) {
  std::vector<bool> needed(parts.tensors.size(), false);
  const auto need = [&](const std::vector<TensorId>& ids) {
    for (TensorId id : ids) {
      if (id == kNoTensor) continue;
      needed[static_cast<std::size_t>(id)] = true;
      const TensorId rows = parts.tensors[static_cast<std::size_t>(id)].ragged_offset;
      if (rows != kNoTensor) needed[static_cast<std::size_t>(rows)] = true;
    }
  };
  for (const Node& node : parts.nodes) {
    need(node.inputs);
    need(node.outputs);
  }
  try {
    Graph graph("shrunk");
    std::vector<TensorId> moved(parts.tensors.size(), kNoTensor);
    for (std::size_t i = 0; i < parts.tensors.size(); ++i) {
      if (!needed[i]) continue;
      Tensor tensor = parts.tensors[i];
      if (tensor.ragged_offset != kNoTensor)
        tensor.ragged_offset = moved[static_cast<std::size_t>(tensor.ragged_offset)];
      moved[i] = graph.add_tensor(std::move(tensor));
    }
    for (Node node : parts.nodes) {
      for (std::vector<TensorId>* ids : {&node.inputs, &node.outputs})
        for (TensorId& id : *ids)
          if (id != kNoTensor) id = moved[static_cast<std::size_t>(id)];
      graph.add_node(std::move(node));
    }
    graph.validate();
    return graph;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_read(const Parts& parts, TensorId id) {
  return std::any_of(parts.nodes.begin(), parts.nodes.end(), [&](const Node& node) {
    return std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end();
  });
}

Tensor& tensor_of(Parts& parts, TensorId id) { return parts.tensors[static_cast<std::size_t>(id)]; }

// Results of the node that others read become inputs. At least one other result stays an output.
Parts without_node(Parts parts, std::size_t index) {
  const Node node = parts.nodes[index];
  parts.nodes.erase(parts.nodes.begin() + static_cast<std::ptrdiff_t>(index));
  for (TensorId id : node.outputs)
    if (id != kNoTensor && is_read(parts, id)) tensor_of(parts, id).kind = TensorKind::input;
  const bool has_output =
      std::any_of(parts.nodes.begin(), parts.nodes.end(), [&](const Node& other) {
        return std::any_of(other.outputs.begin(), other.outputs.end(), [&](TensorId id) {
          return id != kNoTensor && tensor_of(parts, id).kind == TensorKind::output;
        });
      });
  if (!has_output) tensor_of(parts, parts.nodes.back().outputs[0]).kind = TensorKind::output;
  return parts;
}

void straighten(Parts& parts) {
  for (Tensor& tensor : parts.tensors) tensor.strides = {};
}

class Shrinker {
 public:
  Shrinker(const Graph& graph, const std::function<bool(const Graph&)>& fails, int max_tries)
      : best_(graph.clone()), fails_(fails), left_(max_tries) {}

  Graph run() {
    for (bool smaller = true; smaller && left_ > 0;)
      smaller =
          drop_nodes() || drop_outputs() || reduce_extents() || plain_strides() || plain_dtypes();
    return std::move(best_);
  }

 private:
  bool accept(const Parts& parts) {
    if (left_ <= 0) return false;
    std::optional<Graph> candidate = assemble(parts);
    if (!candidate) return false;
    --left_;
    if (!fails_(*candidate)) return false;
    best_ = std::move(*candidate);
    return true;
  }

  bool drop_nodes() {
    const Parts parts = parts_of(best_);
    for (std::size_t i = parts.nodes.size(); i-- > 0 && parts.nodes.size() > 1;)
      if (accept(without_node(parts, i))) return true;
    return false;
  }

  bool drop_outputs() {
    const Parts parts = parts_of(best_);
    for (std::size_t i = 0; i < parts.tensors.size(); ++i) {
      if (parts.tensors[i].kind != TensorKind::output) continue;
      Parts fewer = parts;
      fewer.tensors[i].kind = TensorKind::intermediate;
      if (accept(fewer)) return true;
    }
    return false;
  }

  bool reduce_extents() {
    const Parts parts = parts_of(best_);
    std::set<std::int64_t> extents;
    for (const Tensor& tensor : parts.tensors)
      extents.insert(tensor.dims.begin(), tensor.dims.end());
    for (std::int64_t extent : extents) {
      for (std::int64_t smaller : {std::int64_t{1}, std::int64_t{2}, extent / 2, extent - 1}) {
        if (smaller >= extent || smaller < 1) continue;
        Parts fewer = parts;
        for (Tensor& tensor : fewer.tensors)
          std::replace(tensor.dims.begin(), tensor.dims.end(), extent, smaller);
        straighten(fewer);
        if (accept(fewer)) return true;
      }
    }
    return false;
  }

  bool plain_strides() {
    Parts parts = parts_of(best_);
    const bool plain = std::all_of(parts.tensors.begin(), parts.tensors.end(), [](const Tensor& t) {
      return t.strides == row_major.strides_for(t.dims);
    });
    straighten(parts);
    return !plain && accept(parts);
  }

  bool plain_dtypes() {
    const Parts parts = parts_of(best_);
    for (std::size_t i = 0; i < parts.tensors.size(); ++i) {
      if (!is_floating(parts.tensors[i].dtype) || parts.tensors[i].dtype == f32) continue;
      Parts wider = parts;
      wider.tensors[i].dtype = f32;
      if (accept(wider)) return true;
    }
    return false;
  }

  Graph best_;
  const std::function<bool(const Graph&)>& fails_;
  int left_;
};

}  // namespace

Graph shrink(const Graph& graph, const std::function<bool(const Graph&)>& fails, int max_tries) {
  return Shrinker(graph, fails, max_tries).run();
}

}  // namespace ashlar::random_graphs

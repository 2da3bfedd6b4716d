#include "operation_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ashlar::bench::cudnn {

namespace {

constexpr std::int64_t kFirstTemporary = 1 << 20;  // unique ids above those of tensors
constexpr std::int64_t kAlignment = 16;            // bytes; device allocations have at least this

// Virtual tensors are f32: the library computes in it.
DataType inner_type(DType dtype) {
  return is_floating(dtype) && bit_width(dtype) <= 32 ? DataType::f32 : data_type(dtype);
}

bool has_matmul(const Subgraph& subgraph) {
  for (std::size_t i = 0; i < subgraph.size(); ++i)
    if (std::holds_alternative<Matmul>(subgraph.node(i).op)) return true;
  return false;
}

// The value converted to `type`, stored in the first bytes of a double.
double stored(double value, DataType type) {
  double storage = 0;
  const auto put = [&](auto number) { std::memcpy(&storage, &number, sizeof number); };
  switch (type) {
    case DataType::f64: put(value); break;
    case DataType::i64: put(static_cast<std::int64_t>(value)); break;
    case DataType::i32: put(static_cast<std::int32_t>(value)); break;
    default: put(static_cast<float>(value)); break;
  }
  return storage;
}

}  // namespace

bool Subgraph::is_internal(TensorId tensor) const {
  if (graph.tensor(tensor).kind != TensorKind::intermediate) return false;
  const std::vector<Node>& nodes = graph.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool here = i >= first && i < last;
    const auto has = [&](const std::vector<TensorId>& ids) {
      return std::find(ids.begin(), ids.end(), tensor) != ids.end();
    };
    if (!here && (has(nodes[i].inputs) || has(nodes[i].outputs))) return false;
  }
  return true;
}

Form form_of(const Tensor& tensor) {
  Form form{{tensor.dims.begin(), tensor.dims.end()},
            {tensor.strides.begin(), tensor.strides.end()}};
  if (form.dims.size() == 1) {
    form.dims.insert(form.dims.begin(), 1);
    form.strides.insert(form.strides.begin(), tensor.dims[0]);
  }
  if (form.dims.size() == 2) {
    // Rows of C channels: dims of extent 1 get the stride of a row.
    const bool rows = form.strides[1] == 1;
    for (int axis = 0; axis < 2; ++axis) {
      form.dims.push_back(1);
      form.strides.push_back(rows ? form.strides[0] : 1);
    }
  }
  return form;
}

Form matrix_form_of(const Tensor& tensor) {
  Form form{{tensor.dims.begin(), tensor.dims.end()},
            {tensor.strides.begin(), tensor.strides.end()}};
  while (form.dims.size() < 3) {
    form.dims.insert(form.dims.begin(), 1);
    form.strides.insert(form.strides.begin(), element_count(tensor.dims));
  }
  return form;
}

DataType data_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return DataType::f32;
    case DType::f64: return DataType::f64;
    case DType::f16: return DataType::f16;
    case DType::bf16: return DataType::bf16;
    case DType::i8: return DataType::i8;
    case DType::u8: return DataType::u8;
    case DType::i32: return DataType::i32;
    case DType::i64: return DataType::i64;
    case DType::u32: return DataType::u32;
    case DType::boolean: return DataType::boolean;
    case DType::e4m3: return DataType::e4m3;
    case DType::e5m2: return DataType::e5m2;
    case DType::e8m0: return DataType::e8m0;
    case DType::e2m1: return DataType::e2m1;
    case DType::i4: return DataType::i4;
    case DType::u4: return DataType::u4;
    case DType::complex_f32: return DataType::complex_f32;
    case DType::complex_f64: return DataType::complex_f64;
  }
  throw Refused(fmt::format("dtype {} is not translated", to_string(dtype)));
}

OperationGraph::OperationGraph(const Library& library, const Subgraph& subgraph)
    : library_(library),
      subgraph_(subgraph),
      has_matmul_(has_matmul(subgraph)),
      next_uid_(kFirstTemporary) {}

Form OperationGraph::form_here(const Tensor& tensor) const {
  return has_matmul_ ? matrix_form_of(tensor) : form_of(tensor);
}

const Descriptor& OperationGraph::describe(std::int64_t uid, DataType type, const Form& form,
                                           bool is_virtual, bool by_value) {
  Descriptor& tensor = make(DescriptorType::tensor);
  tensor.set(Attribute::tensor_unique_id, uid);
  tensor.set(Attribute::tensor_data_type, type);
  tensor.set(Attribute::tensor_dimensions, std::span<const std::int64_t>(form.dims));
  tensor.set(Attribute::tensor_strides, std::span<const std::int64_t>(form.strides));
  tensor.set(Attribute::tensor_byte_alignment, kAlignment);
  if (is_virtual) tensor.set(Attribute::tensor_is_virtual, true);
  if (by_value) tensor.set(Attribute::tensor_is_by_value, true);
  tensor.finalize();
  return tensor;
}

const Descriptor& OperationGraph::tensor(TensorId id) {
  const Descriptor*& found = tensors_[id];
  if (found) return *found;
  const Tensor& tensor = subgraph_.graph.tensor(id);
  if (tensor.kind == TensorKind::constant)
    return *(found =
                 &number(tensor.value, data_type(tensor.dtype),
                         has_matmul_ ? form_here(tensor).dims.size()
                                     : static_cast<std::size_t>(std::max(tensor.dims.rank(), 4))));
  if (tensor.kind == TensorKind::scalar) throw Refused("a scalar tensor is not translated");
  if (tensor.ragged_offset != kNoTensor) throw Refused("a ragged tensor is not translated");
  const std::int64_t uid = id + 1;
  const bool inner = subgraph_.is_internal(id);
  if (!inner) bound_[id] = uid;
  found = &describe(uid, inner ? inner_type(tensor.dtype) : data_type(tensor.dtype),
                    form_here(tensor), inner, false);
  return *found;
}

const Descriptor& OperationGraph::temporary(const Form& form, DataType type) {
  return describe(next_uid_++, type, form, true, false);
}

const Descriptor& OperationGraph::number(double value, DataType type, std::size_t rank) {
  values_.push_back(stored(value, type));
  numbers_[next_uid_] = &values_.back();
  const std::vector<std::int64_t> ones(rank, 1);
  return describe(next_uid_++, type, {ones, ones}, false, true);
}

Descriptor& OperationGraph::make(DescriptorType type) {
  return owned_.emplace_back(library_, type);
}

Descriptor& OperationGraph::operation(DescriptorType type) {
  Descriptor& made = make(type);
  operations_.push_back(&made);
  return made;
}

const Descriptor& OperationGraph::finish() {
  for (Descriptor* operation : operations_) operation->finalize();
  Descriptor& graph = make(DescriptorType::operation_graph);
  if (library_.handle()) graph.set(Attribute::operation_graph_handle, library_.handle());
  graph.set(Attribute::operation_graph_operations,
            std::span<const Descriptor* const>(
                const_cast<const Descriptor* const*>(operations_.data()), operations_.size()));
  graph.finalize();
  return graph;
}

void translate(OperationGraph& graph) {
  const Subgraph& subgraph = graph.subgraph();
  for (std::size_t i = 0; i < subgraph.size(); ++i) {
    const Node& node = subgraph.node(i);
    std::visit(
        [&]<class Op>(const Op& op) {
          if constexpr (requires { translate(op, node, graph); })
            translate(op, node, graph);
          else
            throw Refused("the backend has no such operation");
        },
        node.op);
  }
}

}  // namespace ashlar::bench::cudnn

#include "onednn_program.hpp"

#include <fmt/format.h>

namespace ashlar::bench {

namespace {

dnnl::memory::data_type dnnl_type(DType dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case DType::f32: return Type::f32;
    case DType::f16: return Type::f16;
    case DType::bf16: return Type::bf16;
    case DType::i32: return Type::s32;
    case DType::i8: return Type::s8;
    case DType::u8: return Type::u8;
    default:
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("oneDNN has no element type {}", to_string(dtype)));
  }
}

}  // namespace

dnnl::memory::dims dnnl_dims(const Dims& dims) { return {dims.begin(), dims.end()}; }

Descriptor descriptor_of(const Tensor& tensor) {
  return {dnnl_dims(tensor.dims), dnnl_type(tensor.dtype), dnnl_dims(tensor.strides)};
}

Program::Program(const Graph& graph, std::span<void* const> pointers) : graph_(graph) {
  const std::vector<TensorId> tensors = graph.bound_tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (graph.tensor(tensors[i]).kind == TensorKind::input) inputs_[tensors[i]] = pointers[i];
}

dnnl::memory Program::bound(TensorId tensor, const Descriptor& as) {
  if (const auto input = inputs_.find(tensor); input != inputs_.end())
    return {as, engine_, input->second};
  return outputs_.insert_or_assign(tensor, dnnl::memory(as, engine_)).first->second;
}

const void* Program::output(TensorId tensor) const {
  const auto found = outputs_.find(tensor);
  return found == outputs_.end() ? nullptr : found->second.get_data_handle();
}

void Program::add(const dnnl::primitive_desc_base& descriptor, const dnnl::primitive& primitive,
                  const std::vector<Operand>& inputs, const std::vector<Operand>& outputs) {
  Step step{primitive, {}};
  for (const Operand& input : inputs) {
    dnnl::memory memory = input.memory;
    if (memory.get_desc() != input.wanted) {
      memory = scratch(input.wanted);
      add_reorder(input.memory, memory);
    }
    step.arguments.emplace(input.argument, memory);
  }
  std::vector<std::pair<dnnl::memory, dnnl::memory>> afterwards;
  for (const Operand& output : outputs) {
    dnnl::memory memory = output.memory;
    if (memory.get_desc() != output.wanted) {
      memory = scratch(output.wanted);
      afterwards.emplace_back(memory, output.memory);
    }
    step.arguments.emplace(output.argument, memory);
  }
  steps_.push_back(std::move(step));
  const std::string implementation = descriptor.impl_info_str();
  reference_ = reference_ || implementation.starts_with("ref");
  description_ += (description_.empty() ? "" : " + ") + implementation;
  for (const auto& [from, to] : afterwards) add_reorder(from, to);
}

void Program::add_reorder(dnnl::memory from, dnnl::memory to) {
  const dnnl::reorder::primitive_desc descriptor(from, to);
  steps_.push_back({dnnl::reorder(descriptor), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}});
  description_ +=
      (description_.empty() ? "reorder " : " + reorder ") + std::string(descriptor.impl_info_str());
}

void Program::run() {
  for (const Step& step : steps_) step.primitive.execute(stream_, step.arguments);
  stream_.wait();
}

}  // namespace ashlar::bench

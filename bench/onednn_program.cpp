#include "onednn_program.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ashlar::bench {

namespace {

dnnl::memory::data_type dnnl_type(DType dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case DType::f32: return Type::f32;
    case DType::bf16: return Type::bf16;
    case DType::i32: return Type::s32;
    case DType::i8: return Type::s8;
    case DType::u8: return Type::u8;
    default:
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the oneDNN peer does not use {}", to_string(dtype)));
  }
}

}  // namespace

dnnl::memory::dims dnnl_dims(const Dims& dims) { return {dims.begin(), dims.end()}; }

Descriptor descriptor_of(const Tensor& tensor) {
  return {dnnl_dims(tensor.dims), dnnl_type(tensor.dtype), dnnl_dims(tensor.strides)};
}

Program::Program(const PeerProblem& problem, bool free_reorders) : free_reorders_(free_reorders) {
  const std::vector<TensorId> tensors = problem.graph.bound_tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = problem.graph.tensor(tensors[i]);
    if (tensor.kind != TensorKind::input) continue;
    inputs_[tensors[i]] = problem.pointers[i];
    if (std::find(problem.constants.begin(), problem.constants.end(), tensor.name) !=
        problem.constants.end())
      constants_.insert(tensors[i]);
  }
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

void Program::note(const std::string& text) {
  description_ += (description_.empty() ? "" : " + ") + text;
}

void Program::add(const dnnl::primitive_desc_base& descriptor, const dnnl::primitive& primitive,
                  const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
                  const dnnl::memory& addend) {
  Step step{primitive, {}, {}};
  for (const Operand& input : inputs) {
    dnnl::memory memory = input.memory;
    if (memory.get_desc() != input.wanted) {
      memory = scratch(input.wanted);
      if (input.constant || free_reorders_)
        reorder_now(input.memory, memory);
      else
        add_reorder(input.memory, memory);
    }
    step.arguments.emplace(input.argument, memory);
  }
  std::vector<std::pair<dnnl::memory, dnnl::memory>> moved;
  for (const Operand& output : outputs) {
    dnnl::memory memory = output.memory;
    if (memory.get_desc() != output.wanted) {
      memory = scratch(output.wanted);
      moved.emplace_back(memory, output.memory);
    }
    step.arguments.emplace(output.argument, memory);
  }
  if (addend) {
    const dnnl::memory& sum = step.arguments.at(outputs.front().argument);
    if (free_reorders_ || moved.empty())
      beforehand_.push_back(reorder_step(addend, sum));
    else
      add_reorder(addend, sum);
  }
  steps_.push_back(std::move(step));
  const std::string implementation = descriptor.impl_info_str();
  reference_ = reference_ || implementation.starts_with("ref");
  note(implementation);
  for (const auto& [from, to] : moved) {
    if (free_reorders_)
      afterwards_.push_back(reorder_step(from, to));
    else
      add_reorder(from, to);
  }
}

Program::Step Program::reorder_step(const dnnl::memory& from, const dnnl::memory& to) {
  return {dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, {}};
}

void Program::add_reorder(const dnnl::memory& from, const dnnl::memory& to) {
  const dnnl::reorder::primitive_desc descriptor(from, to);
  steps_.push_back(reorder_step(from, to));
  note("reorder " + std::string(descriptor.impl_info_str()));
}

void Program::add_call(const std::string& name, std::function<void()> call) {
  steps_.push_back({{}, {}, std::move(call)});
  note(name);
}

// oneDNN reorders only row-major filters into Winograd's layout.
void Program::reorder_now(const dnnl::memory& from, const dnnl::memory& to) {
  try {
    execute({reorder_step(from, to)});
  } catch (const dnnl::error&) {
    const Descriptor given = from.get_desc();
    Dims dims;
    for (const auto extent : given.dims()) dims.push_back(extent);
    const dnnl::memory plain =
        scratch({given.dims(), given.data_type(), dnnl_dims(row_major.strides_for(dims))});
    execute({reorder_step(from, plain), reorder_step(plain, to)});
  }
}

void Program::execute(const std::vector<Step>& steps) {
  for (const Step& step : steps)
    if (step.call)
      step.call();
    else
      step.primitive.execute(stream_, step.arguments);
  stream_.wait();
}

void Program::start() { execute(beforehand_); }

void Program::run() { execute(steps_); }

void Program::finish() { execute(afterwards_); }

}  // namespace ashlar::bench

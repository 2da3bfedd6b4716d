#include "cudnn_stand_in.hpp"

#include <cstring>

namespace ashlar::bench_test {

namespace {

using cudnn::Attribute;
using cudnn::DescriptorType;
using cudnn::Status;
using cudnn::ValueType;

constexpr Status kBad = 2000, kNotSupported = 3000;

StandIn* here = nullptr;
std::string last_error;

Status mistake(const std::string& sentence) {
  here->mistakes.push_back(sentence);
  last_error = sentence;
  return kBad;
}

bool is_operation(DescriptorType type) {
  const int number = static_cast<int>(type);
  return (number >= 10 && number <= 14) || number == 19 || number == 22 ||
         (number >= 25 && number <= 31) || number == 33;
}

std::size_t bytes_of(ValueType type) {
  switch (type) {
    case ValueType::boolean: return 1;
    case ValueType::int64:
    case ValueType::float64:
    case ValueType::handle:
    case ValueType::pointer:
    case ValueType::descriptor: return 8;
    default: return 4;
  }
}

Status create(DescriptorType type, void** descriptor) {
  *descriptor = new StandInDescriptor{type, false, {}, {}, {}, {}};
  ++here->alive;
  return 0;
}

Status destroy(void* descriptor) {
  delete static_cast<StandInDescriptor*>(descriptor);
  --here->alive;
  return 0;
}

Status set(void* object, Attribute name, ValueType type, std::int64_t count, const void* elements) {
  auto& descriptor = *static_cast<StandInDescriptor*>(object);
  if (descriptor.finalized) return mistake("an attribute is set after finalize");
  if (count > 0 && !elements) return mistake("an attribute without elements");
  const auto* at = static_cast<const std::byte*>(elements);
  for (std::int64_t i = 0; i < count; ++i, at += bytes_of(type)) {
    std::int64_t number = 0;
    std::memcpy(&number, at, std::min<std::size_t>(bytes_of(type), 8));
    if (type == ValueType::descriptor) {
      auto* part = reinterpret_cast<StandInDescriptor*>(number);
      if (!part->finalized && !is_operation(part->type))
        return mistake("a descriptor is used before it is finalized");
      descriptor.parts[name].push_back(part);
    } else if (type == ValueType::pointer) {
      descriptor.pointers[name].push_back(reinterpret_cast<void*>(number));
    } else if (type == ValueType::float64) {
      std::memcpy(&descriptor.reals[name], at, sizeof(double));
    } else {
      descriptor.numbers[name].push_back(number);
    }
  }
  return 0;
}

// Every non-virtual tensor of an operation.
void collect(const StandInDescriptor& operation, std::set<std::int64_t>& ids) {
  for (const auto& [name, parts] : operation.parts)
    for (const StandInDescriptor* part : parts)
      if (part->type == DescriptorType::tensor &&
          !part->numbers.contains(Attribute::tensor_is_virtual))
        ids.insert(part->number(Attribute::tensor_unique_id));
}

Status finalize_tensor(const StandInDescriptor& tensor) {
  const auto& dims = tensor.numbers.at(Attribute::tensor_dimensions);
  if (dims.size() < 3) return mistake("a tensor of fewer than three axes");
  if (dims.size() != tensor.numbers.at(Attribute::tensor_strides).size())
    return mistake("extents and strides differ in number");
  return 0;
}

Status finalize_graph(const StandInDescriptor& graph) {
  here->operations.clear();
  for (const StandInDescriptor* operation : graph.parts.at(Attribute::operation_graph_operations)) {
    if (!operation->finalized) return mistake("an operation is not finalized");
    if (here->refused.contains(operation->type)) {
      last_error = "this operation is not supported";
      return kNotSupported;
    }
    here->operations.push_back(operation);
  }
  if (here->operations.size() <= here->max_operations) return 0;
  last_error = "a graph with this many operations is not supported";
  return kNotSupported;
}

Status finalize_pack(const StandInDescriptor& pack) {
  const auto& ids = pack.numbers.at(Attribute::variant_pack_unique_ids);
  if (ids.size() != pack.pointers.at(Attribute::variant_pack_pointers).size())
    return mistake("as many pointers as ids are wanted");
  std::set<std::int64_t> wanted;
  for (const StandInDescriptor* operation : here->operations) collect(*operation, wanted);
  if (wanted != std::set(ids.begin(), ids.end()))
    return mistake("the pack does not hold the tensors of the graph");
  return 0;
}

Status finalize(void* object) {
  auto& descriptor = *static_cast<StandInDescriptor*>(object);
  if (descriptor.finalized) return mistake("finalized twice");
  descriptor.finalized = true;
  switch (descriptor.type) {
    case DescriptorType::tensor: return finalize_tensor(descriptor);
    case DescriptorType::operation_graph: return finalize_graph(descriptor);
    case DescriptorType::variant_pack: return finalize_pack(descriptor);
    case DescriptorType::execution_plan: ++here->plans; return 0;
    default: return 0;
  }
}

Status get(void* object, Attribute name, ValueType, std::int64_t wanted, std::int64_t* count,
           void* elements) {
  const auto& descriptor = *static_cast<StandInDescriptor*>(object);
  if (!descriptor.finalized && name != Attribute::engine_config_engine &&
      name != Attribute::engine_global_index && name != Attribute::engine_numerical_notes)
    return mistake("read before finalize");
  *count = 1;
  if (name == Attribute::engine_numerical_notes) {
    *count = here->tensor_cores ? 1 : 0;
    if (here->tensor_cores) *static_cast<int*>(elements) = 0;
    return 0;
  }
  if (name == Attribute::operation_graph_engine_count) {
    std::memcpy(elements, &here->engines, sizeof here->engines);
    return 0;
  }
  if (const auto own = descriptor.numbers.find(name); own != descriptor.numbers.end()) {
    std::memcpy(elements, own->second.data(), sizeof(std::int64_t));
    return 0;
  }
  if (name == Attribute::heuristics_results)
    *count = wanted == 0 ? 2 : std::min<std::int64_t>(wanted, 2);
  const std::int64_t value = name == Attribute::plan_workspace_size ? 64 : 7;
  const bool is_number =
      name == Attribute::plan_workspace_size || name == Attribute::engine_global_index;
  if (is_number && elements) std::memcpy(elements, &value, sizeof value);
  if (name == Attribute::heuristics_results && elements)
    for (std::int64_t i = 0; i < *count; ++i)
      static_cast<StandInDescriptor**>(elements)[i]->finalized = true;
  return 0;
}

Status execute(cudnn::Handle, void* plan, void* pack) {
  if (!static_cast<StandInDescriptor*>(plan)->finalized)
    return mistake("a plan is run before it is finalized");
  here->runs.push_back(
      static_cast<StandInDescriptor*>(pack)->pointers.at(Attribute::variant_pack_pointers));
  return 0;
}

}  // namespace

StandIn::StandIn() { here = this; }
StandIn::~StandIn() { here = nullptr; }

cudnn::Functions StandIn::functions() const {
  cudnn::Functions f;
  f.version = [] { return std::size_t{91900}; };
  f.error_string = [](Status status) { return status == kBad ? "BAD_PARAM" : "NOT_SUPPORTED"; };
  f.last_error = [](char* text, std::size_t bytes) {
    std::strncpy(text, last_error.c_str(), bytes - 1);
  };
  f.create = [](cudnn::Handle* handle) {
    *handle = reinterpret_cast<cudnn::Handle>(here);
    return 0;
  };
  f.destroy = [](cudnn::Handle) { return 0; };
  f.create_descriptor = create;
  f.destroy_descriptor = destroy;
  f.finalize = finalize;
  f.set_attribute = set;
  f.get_attribute = get;
  f.execute = execute;

  f.create_tensor = [](cudnn::LegacyTensor*) { return 0; };
  f.destroy_tensor = [](cudnn::LegacyTensor) { return 0; };
  f.set_tensor = [](cudnn::LegacyTensor, cudnn::DataType, int rank, const int*, const int*) {
    return rank < 4 ? mistake("a tensor of fewer than four axes") : 0;
  };
  f.transform = [](cudnn::Handle, const void*, cudnn::LegacyTensor, const void*, const void*,
                   cudnn::LegacyTensor, void*) {
    here->legacy_calls.emplace_back("transform");
    return 0;
  };
  f.softmax_forward = [](cudnn::Handle, int, int, const void*, cudnn::LegacyTensor, const void*,
                         const void*, cudnn::LegacyTensor, void*) {
    here->legacy_calls.emplace_back("softmax_forward");
    return 0;
  };
  f.softmax_backward = [](cudnn::Handle, int, int, const void*, cudnn::LegacyTensor, const void*,
                          cudnn::LegacyTensor, const void*, const void*, cudnn::LegacyTensor,
                          void*) {
    here->legacy_calls.emplace_back("softmax_backward");
    return 0;
  };
  return f;
}

}  // namespace ashlar::bench_test

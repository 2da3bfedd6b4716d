#include "backend/translate/translation.hpp"

#include <algorithm>

#include "core/data_type.hpp"
#include "core/tensor_spec.hpp"

namespace ashlar::cudnn {

namespace {

struct Translator {
  cudnnBackendDescriptorType_t type;
  void (*translate)(Translation&, const Record&);
};

constexpr std::array kTranslators = {
    Translator{CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, translate_pointwise},
    Translator{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
               translate_convolution_forward},
    Translator{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
               translate_convolution_backward_data},
    Translator{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
               translate_convolution_backward_filter},
    Translator{CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, translate_matmul},
    Translator{CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, translate_reduction},
    Translator{CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, translate_resample_forward},
    Translator{CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, translate_resample_backward},
    Translator{CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, translate_gen_stats},
    Translator{CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR, translate_bn_finalize},
    Translator{CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR, translate_bn_backward_weights},
    Translator{CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, translate_norm_forward},
    Translator{CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, translate_norm_backward},
    Translator{CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, translate_reshape},
    Translator{CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR, translate_concat},
    Translator{CUDNN_BACKEND_OPERATION_SIGNAL_DESCRIPTOR, translate_signal},
    Translator{CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, translate_rng},
    Translator{CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR, translate_paged_cache_load},
    Translator{CUDNN_BACKEND_OPERATION_EXPAND_BAND_MATRIX_DESCRIPTOR, translate_expand_band},
    Translator{CUDNN_BACKEND_OPERATION_CONTRACT_BAND_MATRIX_DESCRIPTOR, translate_contract_band},
    Translator{CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR,
               translate_block_scale_quantize},
    Translator{CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR,
               translate_block_scale_dequantize},
    Translator{CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, translate_sdpa_forward},
    Translator{CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR, translate_sdpa_backward},
    Translator{CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR, translate_moe},
};

}  // namespace

Translation::Translation(std::vector<const Record*> operations, const ShapeOverrides& overrides,
                         bool may_assume)
    : operations_(std::move(operations)), overrides_(overrides), may_assume_(may_assume) {}

void Translation::run() {
  for (const Record* operation : operations_) {
    const auto found =
        std::find_if(kTranslators.begin(), kTranslators.end(),
                     [&](const Translator& row) { return row.type == operation->type; });
    if (found == kTranslators.end())
      fail(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
           "CUDNN_ATTR_OPERATIONGRAPH_OPS[{}]: got a descriptor of type {}, expected an operation",
           position_, static_cast<int>(operation->type));
    found->translate(*this, *operation);
    ++position_;
  }
}

TensorFacts Translation::facts(const Record& operation,
                               cudnnBackendAttributeName_t attribute) const {
  return facts(operation.record(attribute));
}

const Record* Translation::producer_of(std::int64_t uid) const {
  for (const Record* operation : operations_)
    for (const NamedTensor& result : results_of(*operation))
      if (uid_of(*result.tensor) == uid) return operation;
  return nullptr;
}

std::optional<Dims> Translation::known_dims(std::int64_t uid) const {
  const auto produced = produced_.find(uid);
  if (produced == produced_.end()) return std::nullopt;
  return dims(produced->second.id);
}

std::vector<const Record*> Translation::readers_of(std::int64_t uid) const {
  std::vector<const Record*> readers;
  for (const Record* operation : operations_)
    for (const NamedTensor& operand : operands_of(*operation))
      if (uid_of(*operand.tensor) == uid) readers.push_back(operation);
  return readers;
}

std::string Translation::unique_name(std::string name) {
  const int count = names_[name]++;
  return count == 0 ? name : fmt::format("{}.{}", name, count + 1);
}

// --- memory

TensorId Translation::memory_of(const TensorFacts& facts, TensorKind kind,
                                const std::string& suffix) {
  Tensor tensor;
  tensor.name = unique_name(fmt::format("t{}{}", facts.uid, suffix));
  tensor.kind = kind;
  tensor.dtype = facts.dtype;
  tensor.dims = facts.dims;
  tensor.strides = facts.strides;
  // Uids of an ashlar::Graph are unique and nonzero; bound_ has the variant pack's uids.
  const bool is_first =
      facts.uid != 0 && std::none_of(bound_.begin(), bound_.end(),
                                     [&](const BoundUid& bound) { return bound.uid == facts.uid; });
  tensor.uid = is_first ? facts.uid
                        : std::numeric_limits<std::int64_t>::min() +
                              static_cast<std::int64_t>(bound_.size());
  if (facts.ragged_offset != nullptr) tensor.ragged_offset = operand(*facts.ragged_offset);
  const TensorId id = graph_.add_tensor(std::move(tensor));
  bound_.push_back({id, facts.uid});
  return id;
}

TensorId Translation::input_of(const TensorFacts& facts, const std::string& suffix) {
  for (const auto& [known, id] : inputs_)
    if (known.uid == facts.uid && known.is_same_view(facts) && suffix.empty()) return id;
  const TensorId id =
      memory_of(facts, facts.is_by_value ? TensorKind::scalar : TensorKind::input, suffix);
  if (suffix.empty()) inputs_.emplace_back(facts, id);
  return id;
}

TensorId Translation::read(const TensorFacts& facts, const std::string& suffix) {
  for (const auto& [known, id] : read_)
    if (known.uid == facts.uid && known.is_same_view(facts) && suffix.empty()) return id;
  TensorId id = kNoTensor;
  if (facts.ragged_offset != nullptr) {
    id = padded(facts);
  } else if (facts.vector > 1) {
    const VectorShape shape =
        vector_shape({facts.dtype, facts.dims, facts.strides, facts.vector, facts.vector_axis});
    TensorFacts memory = facts;
    memory.dims = shape.dims;
    memory.strides = shape.strides;
    id = value(Transpose{shape.to_logical}, {input_of(memory, suffix)}, facts.dtype);
    id = value(Reshape{facts.dims}, {id}, facts.dtype);
  } else {
    id = input_of(facts, suffix);
  }
  if (suffix.empty()) read_.emplace_back(facts, id);
  return id;
}

// --- operands

TensorId Translation::operand(const Record& tensor) {
  const TensorFacts wanted = facts(tensor);
  if (const auto produced = produced_.find(wanted.uid); produced != produced_.end())
    return produced->second.facts.is_same_view(wanted) || wanted.has_inferred_dims
               ? produced->second.id
               : reinterpreted(produced->second.id, produced->second.facts, wanted);
  if (wanted.is_virtual)
    fail(CUDNN_STATUS_BAD_PARAM,
         "tensor {}: CUDNN_ATTR_TENSOR_IS_VIRTUAL: got true for a tensor without a producer, "
         "expected false",
         wanted.uid);
  return read(wanted);
}

TensorId Translation::operand(const Record& operation, cudnnBackendAttributeName_t attribute) {
  return operand(operation.record(attribute));
}

TensorId Translation::operand_or_none(const Record& operation,
                                      cudnnBackendAttributeName_t attribute) {
  return operation.record_or_null(attribute) == nullptr ? kNoTensor : operand(operation, attribute);
}

TensorId Translation::ragged_operand(const Record& operation,
                                     cudnnBackendAttributeName_t attribute) {
  const TensorFacts wanted = facts(operation, attribute);
  if (wanted.ragged_offset == nullptr || produced_.contains(wanted.uid))
    return operand(operation, attribute);
  return input_of(wanted, "");
}

TensorId Translation::assumed(const Record& operation, cudnnBackendAttributeName_t attribute,
                              double number) {
  const TensorFacts scalar = facts(operation, attribute);
  if (!may_assume_ || !scalar.is_by_value || !is_floating(scalar.dtype))
    return operand(operation, attribute);
  const bool is_known =
      std::any_of(assumptions_.begin(), assumptions_.end(),
                  [&](const Assumption& known) { return known.uid == scalar.uid; });
  if (!is_known) assumptions_.push_back({scalar.uid, scalar.dtype, number});
  return constant(number, scalar.dtype, scalar.dims.rank());
}

TensorId Translation::previous(const Record& operation, cudnnBackendAttributeName_t attribute) {
  const TensorFacts memory = facts(operation, attribute);
  if (memory.is_virtual)
    fail(CUDNN_STATUS_BAD_PARAM,
         "tensor {}: CUDNN_ATTR_TENSOR_IS_VIRTUAL: got true for a result that is blended with its "
         "old contents "
         "(beta is not "
         "0), expected false",
         memory.uid);
  return read(memory, ".previous");
}

TensorId Translation::reinterpreted_operand(const Record& operation,
                                            cudnnBackendAttributeName_t attribute, DType dtype,
                                            const Dims& dims, const Dims& strides) {
  TensorFacts other = facts(operation, attribute);
  if (produced_.contains(other.uid))
    fail(CUDNN_STATUS_NOT_SUPPORTED,
         "tensor {}: got the result of an operation, expected a tensor of the variant pack",
         other.uid);
  other.dtype = dtype;
  other.dims = dims;
  other.strides = strides;
  return input_of(other, "");
}

// --- results

TensorId Translation::result(const Record& operation, cudnnBackendAttributeName_t attribute,
                             std::optional<Dims> dims) {
  const TensorFacts produced = facts(operation, attribute);
  const bool is_plain =
      !produced.is_virtual && produced.vector == 1 && produced.ragged_offset == nullptr;
  TensorId id = kNoTensor;
  if (is_plain && !dims) {
    id = memory_of(produced, TensorKind::output, "");
  } else {
    Tensor tensor;
    tensor.name =
        unique_name(fmt::format("t{}{}", produced.uid, produced.is_virtual ? "" : ".value"));
    tensor.uid = produced.uid;
    tensor.dtype = produced.dtype;
    if (!produced.has_inferred_dims) tensor.dims = produced.dims;
    if (dims) tensor.dims = *dims;
    id = graph_.add_tensor(std::move(tensor));
    if (!produced.is_virtual) pending_.push_back({id, produced});
  }
  produced_.insert_or_assign(produced.uid, Produced{id, produced});
  return id;
}

TensorId Translation::result_or_none(const Record& operation,
                                     cudnnBackendAttributeName_t attribute) {
  return operation.record_or_null(attribute) == nullptr ? kNoTensor : result(operation, attribute);
}

TensorId Translation::ragged_result(const Record& operation,
                                    cudnnBackendAttributeName_t attribute) {
  const TensorFacts produced = facts(operation, attribute);
  if (produced.is_virtual || produced.ragged_offset == nullptr) return result(operation, attribute);
  const TensorId id = memory_of(produced, TensorKind::output, "");
  produced_.insert_or_assign(produced.uid, Produced{id, produced});
  return id;
}

void Translation::store(const Record& operation, cudnnBackendAttributeName_t attribute,
                        TensorId value) {
  add(Pointwise{}, {value}, {result(operation, attribute)},
      compute_of(*this, data_type_of(tensor(value).dtype), std::array{value}));
}

void Translation::write(const Pending& pending) {
  if (pending.facts.ragged_offset != nullptr) return write_ragged(pending.value, pending.facts);
  if (pending.facts.vector > 1) {
    const VectorShape shape =
        vector_shape({pending.facts.dtype, pending.facts.dims, pending.facts.strides,
                      pending.facts.vector, pending.facts.vector_axis});
    TensorFacts memory = pending.facts;
    memory.dims = shape.dims;
    memory.strides = shape.strides;
    const TensorId split = value(Reshape{shape.split}, {pending.value}, memory.dtype);
    add(Transpose{shape.from_logical}, {split}, {memory_of(memory, TensorKind::output, "")});
    return;
  }
  // The operation's result and the descriptor differ by axes of extent 1.
  add(Reshape{pending.facts.dims}, {pending.value},
      {memory_of(pending.facts, TensorKind::output, "")});
}

// --- nodes

TensorId Translation::add(Op op, std::vector<TensorId> inputs, std::vector<TensorId> outputs,
                          DType compute) {
  Node node;
  node.name = unique_name(fmt::format("op{}", position_));
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.compute = compute;
  const TensorId first = node.outputs.empty() ? kNoTensor : node.outputs.front();
  graph_.add_node(std::move(node));
  for (const Pending& pending : std::exchange(pending_, {})) write(pending);
  return first;
}

TensorId Translation::value(Op op, std::vector<TensorId> inputs, DType dtype, DType compute,
                            const Dims& dims) {
  Tensor tensor;
  tensor.name = unique_name(fmt::format("v{}", position_));
  tensor.dtype = dtype;
  tensor.dims = dims;
  const TensorId id = graph_.add_tensor(std::move(tensor));
  // Pending results belong to a later node.
  auto announced = std::exchange(pending_, {});
  add(std::move(op), std::move(inputs), {id}, compute);
  pending_ = std::move(announced);
  return id;
}

TensorId Translation::open_value(DType dtype) {
  Tensor tensor;
  tensor.name = unique_name(fmt::format("v{}", position_));
  tensor.dtype = dtype;
  return graph_.add_tensor(std::move(tensor));
}

TensorId Translation::constant(double number, DType dtype, int rank) {
  return graph_.constant(number, dtype, rank).id();
}

TensorId Translation::pointwise(PointwiseMode mode, std::vector<TensorId> inputs, DType dtype,
                                DType compute) {
  Pointwise op;
  op.mode = mode;
  return value(op, std::move(inputs), dtype, compute);
}

DType compute_of(const Translation& translation, cudnnDataType_t type,
                 std::span<const TensorId> operands) {
  const DType requested = compute_dtype_of(type).value_or(f32);
  if (requested == f64 || requested == i64 || requested == i32) return requested;
  if (requested == u32 || requested == complex_f64) return requested == u32 ? i64 : f64;
  if (is_integer(requested)) return i32;
  if (requested != boolean) return f32;
  bool has_f64 = false, is_float = false, is_wide = false;
  for (TensorId id : operands) {
    if (id == kNoTensor) continue;
    const DType dtype = translation.tensor(id).dtype;
    has_f64 = has_f64 || dtype == f64;
    is_float = is_float || is_floating(dtype);
    is_wide = is_wide || dtype == i64 || dtype == u32;
  }
  return has_f64 ? f64 : is_float ? f32 : is_wide ? i64 : i32;
}

}  // namespace ashlar::cudnn

#include "cudnn/backend_client.hpp"

#include <ashlar/check.hpp>
#include <ashlar/memory.hpp>
#include <cstring>
#include <memory>

#include "core/data_type.hpp"
#include "support/test_device.hpp"

namespace ashlar::test {

namespace {

void require(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::string text(1024, '\0');
  cudnnGetLastErrorString(text.data(), text.size());
  throw CallFailed(status, text.c_str());
}

// A contiguous one-dimensional tensor.
Tensor flat(DType dtype, std::size_t count) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.dims = {static_cast<std::int64_t>(count)};
  tensor.strides = {1};
  return tensor;
}

cudnnStatus_t set_array(cudnnBackendDescriptor_t descriptor, const Attribute& attribute,
                        const auto& elements) {
  return cudnnBackendSetAttribute(descriptor, attribute.name, attribute.type,
                                  static_cast<std::int64_t>(elements.size()), elements.data());
}

}  // namespace

cudnnStatus_t set(cudnnBackendDescriptor_t descriptor, const Attribute& attribute) {
  const auto one = [&](const auto& element) {
    return cudnnBackendSetAttribute(descriptor, attribute.name, attribute.type, 1, &element);
  };
  if (const auto* value = std::get_if<std::int64_t>(&attribute.value)) {
    if (attribute.type == CUDNN_TYPE_INT64) return one(*value);
    if (attribute.type == CUDNN_TYPE_BOOLEAN) return one(*value != 0);
    return one(static_cast<std::int32_t>(*value));
  }
  if (const auto* value = std::get_if<double>(&attribute.value))
    return attribute.type == CUDNN_TYPE_FLOAT ? one(static_cast<float>(*value)) : one(*value);
  if (const auto* value = std::get_if<cudnnBackendDescriptor_t>(&attribute.value))
    return one(*value);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
    if (attribute.type == CUDNN_TYPE_INT64) return set_array(descriptor, attribute, *list);
    return set_array(descriptor, attribute, std::vector<std::int32_t>(list->begin(), list->end()));
  }
  if (const auto* list = std::get_if<std::vector<cudnnBackendDescriptor_t>>(&attribute.value))
    return set_array(descriptor, attribute, *list);
  return set_array(descriptor, attribute, std::get<std::vector<cudnnFraction_t>>(attribute.value));
}

BackendClient::BackendClient() { require(cudnnCreate(&handle_)); }

BackendClient::~BackendClient() {
  for (cudnnBackendDescriptor_t descriptor : made_) cudnnBackendDestroyDescriptor(descriptor);
  cudnnDestroy(handle_);
}

cudnnBackendDescriptor_t BackendClient::make(cudnnBackendDescriptorType_t type,
                                             const std::vector<Attribute>& attributes) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  require(cudnnBackendCreateDescriptor(type, &descriptor));
  made_.push_back(descriptor);
  for (const Attribute& attribute : attributes) require(set(descriptor, attribute));
  require(cudnnBackendFinalize(descriptor));
  return descriptor;
}

cudnnBackendDescriptor_t BackendClient::tensor(std::int64_t uid, cudnnDataType_t type,
                                               const Dims& dims, const TensorOptions& options) {
  const auto dtype = cudnn::dtype_of(type).value();
  if (!options.is_virtual) tensors_[uid] = {dtype, options.is_by_value};
  const Dims strides = options.strides.empty() ? row_major.strides_for(dims) : options.strides;
  std::vector<Attribute> attributes = {
      {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid},
      {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, std::int64_t{type}},
      {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64,
       std::vector<std::int64_t>(dims.begin(), dims.end())},
      {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64,
       std::vector<std::int64_t>(strides.begin(), strides.end())},
      {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16}}};
  if (options.is_virtual)
    attributes.push_back({CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, std::int64_t{1}});
  if (options.is_by_value)
    attributes.push_back({CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, std::int64_t{1}});
  if (options.vector > 1) {
    attributes.push_back({CUDNN_ATTR_TENSOR_VECTOR_COUNT, CUDNN_TYPE_INT64, options.vector});
    attributes.push_back(
        {CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, CUDNN_TYPE_INT64, std::int64_t{1}});
  }
  if (options.ragged_offset != nullptr)
    attributes.push_back({CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                          options.ragged_offset});
  return make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, attributes);
}

cudnnBackendDescriptor_t BackendClient::pointwise(cudnnPointwiseMode_t mode,
                                                  cudnnBackendDescriptor_t x,
                                                  cudnnBackendDescriptor_t b,
                                                  cudnnBackendDescriptor_t y,
                                                  cudnnBackendDescriptor_t t) {
  const auto descriptor = make(
      CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
      {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::int64_t{mode}},
       {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, std::int64_t{CUDNN_DATA_FLOAT}}});
  const bool is_gradient =
      mode >= CUDNN_POINTWISE_RELU_BWD && mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_BWD;
  std::vector<Attribute> attributes = {
      {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, descriptor}};
  const auto add = [&](cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t tensor) {
    if (tensor != nullptr) attributes.push_back({name, CUDNN_TYPE_BACKEND_DESCRIPTOR, tensor});
  };
  // A backward operation reads dy first, then x.
  add(is_gradient ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC : CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
      x);
  add(is_gradient ? CUDNN_ATTR_OPERATION_POINTWISE_XDESC : CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  add(is_gradient ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC : CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
      y);
  add(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
  return make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, attributes);
}

cudnnBackendDescriptor_t BackendClient::config(
    const std::vector<cudnnBackendDescriptor_t>& operations) {
  const auto graph =
      make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
           {{CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations},
            {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
             static_cast<cudnnBackendDescriptor_t>(handle_)}});
  const auto heuristics =
      make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
           {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph},
            {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::int64_t{CUDNN_HEUR_MODE_A}}});
  cudnnBackendDescriptor_t best = nullptr;
  require(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &best));
  made_.push_back(best);
  std::int64_t count = 0;
  require(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &best));
  return best;
}

cudnnBackendDescriptor_t BackendClient::plan(
    const std::vector<cudnnBackendDescriptor_t>& operations) {
  return make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
              {{CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                config(operations)}});
}

std::string BackendClient::plan_json(cudnnBackendDescriptor_t plan) {
  constexpr auto kJson = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
  std::int64_t count = 0;
  require(cudnnBackendGetAttribute(plan, kJson, CUDNN_TYPE_CHAR, 0, &count, nullptr));
  std::string text(static_cast<std::size_t>(count), '\0');
  require(cudnnBackendGetAttribute(plan, kJson, CUDNN_TYPE_CHAR, count, &count, text.data()));
  return text;
}

std::map<std::int64_t, Numbers> BackendClient::run(cudnnBackendDescriptor_t plan,
                                                   const std::map<std::int64_t, Numbers>& memory,
                                                   const std::vector<Attribute>& pack_more) {
  const Device& device = support::test_device();
  std::vector<std::int64_t> uids;
  std::vector<void*> pointers;
  std::map<std::int64_t, std::vector<std::byte>> host;
  std::map<std::int64_t, std::unique_ptr<Memory>> there;
  for (const auto& [uid, numbers] : memory) {
    const TensorInfo known = tensors_.at(uid);
    const Tensor list = flat(known.dtype, numbers.size());
    std::vector<std::byte>& bytes = host[uid];
    bytes.resize(static_cast<std::size_t>(byte_size(list)) + 8);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      write_element(list, bytes.data(), static_cast<std::int64_t>(i), numbers[i]);
    uids.push_back(uid);
    if (known.is_by_value) {
      pointers.push_back(bytes.data());
      continue;
    }
    const auto size = static_cast<std::int64_t>(bytes.size());
    there[uid] = std::make_unique<Memory>(device, size);
    there[uid]->upload(bytes.data(), size);
    pointers.push_back(there[uid]->data());
  }
  std::int64_t bytes = 0;
  require(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                   1, nullptr, &bytes));
  const Memory workspace(device, std::max<std::int64_t>(bytes, 1) + 1);
  cudnnBackendDescriptor_t pack = nullptr;
  require(cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
  made_.push_back(pack);
  void* start = static_cast<std::byte*>(workspace.data()) + 1;  // unaligned on purpose
  const auto count = static_cast<std::int64_t>(uids.size());
  require(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                   count, uids.data()));
  require(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                                   count, pointers.data()));
  require(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                                   &start));
  for (const Attribute& attribute : pack_more) require(set(pack, attribute));
  require(cudnnBackendFinalize(pack));
  require(cudnnBackendExecute(handle_, plan, pack));
  std::map<std::int64_t, Numbers> after;
  for (const auto& [uid, numbers] : memory) {
    const Tensor list = flat(tensors_.at(uid).dtype, numbers.size());
    if (there.contains(uid))
      there[uid]->download(host[uid].data(), static_cast<std::int64_t>(host[uid].size()));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      after[uid].push_back(read_element(list, host[uid].data(), static_cast<std::int64_t>(i)));
  }
  return after;
}

}  // namespace ashlar::test

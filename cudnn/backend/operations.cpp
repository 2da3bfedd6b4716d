#include "backend/operations.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/failure.hpp"

namespace ashlar::cudnn {

namespace {

// Attributes that name tensors which an operation writes. The statistics of NORM_FORWARD are
// outputs only in training: see is_result().
constexpr std::array kResults = {
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_POINTWISE_DXDESC,
    CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC,
    CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS,
    CUDNN_ATTR_OPERATION_MATMUL_CDESC,
    CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC,
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC,
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC,
    CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC,
    CUDNN_ATTR_OPERATION_SIGNAL_YDESC,
    CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC,
    CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
    CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC,
    CUDNN_ATTR_OPERATION_NORM_FWD_YDESC,
    CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC,
    CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC,
    CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC,
    CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
    CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_YDESC,
    CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_YDESC,
    CUDNN_ATTR_OPERATION_RNG_YDESC,
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC,
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC,
    CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
    CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC,
    CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC,
};

bool is_result(const Record& operation, cudnnBackendAttributeName_t attribute) {
  switch (attribute) {
    // The backward of an activation may read its output y instead of its input x.
    case CUDNN_ATTR_OPERATION_POINTWISE_YDESC:
      return !operation.has(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC);
    case CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC:
    case CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC:
      return operation.integer(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE) == CUDNN_NORM_FWD_TRAINING;
    case CUDNN_ATTR_OPERATION_SIGNAL_FLAGDESC:
      return operation.integer(CUDNN_ATTR_OPERATION_SIGNAL_MODE) == CUDNN_SIGNAL_SET;
    default: return std::find(kResults.begin(), kResults.end(), attribute) != kResults.end();
  }
}

template <class Accept>
std::vector<NamedTensor> tensors_of(const Record& operation, Accept&& accept) {
  std::vector<NamedTensor> tensors;
  for (const auto& [attribute, value] : operation.attributes) {
    const auto* records = std::get_if<std::vector<RecordRef>>(&value);
    if (records == nullptr || !accept(attribute)) continue;
    for (const RecordRef& record : *records)
      if (record != nullptr && record->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
        tensors.push_back({attribute, record.get()});
  }
  return tensors;
}

}  // namespace

std::vector<NamedTensor> results_of(const Record& operation) {
  return tensors_of(operation, [&](auto attribute) { return is_result(operation, attribute); });
}

std::vector<NamedTensor> operands_of(const Record& operation) {
  std::vector<NamedTensor> operands =
      tensors_of(operation, [&](auto attribute) { return !is_result(operation, attribute); });
  const auto add_offsets = [&](const std::vector<NamedTensor>& tensors) {
    std::vector<NamedTensor> offsets;
    for (const NamedTensor& named : tensors)
      if (const Record* ragged = named.tensor->record_or_null(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC))
        offsets.push_back({named.attribute, ragged});
    operands.insert(operands.end(), offsets.begin(), offsets.end());
  };
  add_offsets(std::vector(operands));
  add_offsets(results_of(operation));
  return operands;
}

std::int64_t uid_of(const Record& tensor) { return tensor.integer(CUDNN_ATTR_TENSOR_UNIQUE_ID); }

std::vector<const Record*> topological_order(std::span<const RecordRef> operations) {
  std::map<std::int64_t, std::size_t> producers;  // uid -> index of the operation that writes it
  for (std::size_t i = 0; i < operations.size(); ++i)
    for (const NamedTensor& result : results_of(*operations[i]))
      if (!producers.emplace(uid_of(*result.tensor), i).second)
        fail(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
             "CUDNN_ATTR_OPERATIONGRAPH_OPS: got two operations that write tensor {}, expected one",
             uid_of(*result.tensor));

  // Depth-first search, in the caller's order.
  enum class State { unseen, open, done };
  std::vector<State> states(operations.size(), State::unseen);
  std::vector<const Record*> order;
  struct Visit {
    std::size_t operation;
    std::vector<NamedTensor> operands;
    std::size_t next = 0;
  };
  for (std::size_t root = 0; root < operations.size(); ++root) {
    if (states[root] != State::unseen) continue;
    std::vector<Visit> path;
    const auto enter = [&](std::size_t operation) {
      states[operation] = State::open;
      path.push_back({operation, operands_of(*operations[operation])});
    };
    enter(root);
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next == visit.operands.size()) {
        states[visit.operation] = State::done;
        order.push_back(operations[visit.operation].get());
        path.pop_back();
        continue;
      }
      const std::int64_t uid = uid_of(*visit.operands[visit.next++].tensor);
      const auto producer = producers.find(uid);
      if (producer == producers.end() || states[producer->second] == State::done) continue;
      if (states[producer->second] == State::open)
        fail(CUDNN_STATUS_BAD_PARAM,
             "CUDNN_ATTR_OPERATIONGRAPH_OPS: got a cycle through tensor {}, expected an "
             "acyclic "
             "graph",
             uid);
      enter(producer->second);
    }
  }
  return order;
}

}  // namespace ashlar::cudnn

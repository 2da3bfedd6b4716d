#include "legacy/rnn/rnn_weights.hpp"

#include "core/data_type.hpp"
#include "core/guarded.hpp"
#include "core/handle.hpp"
#include "core/objects.hpp"
#include "legacy/descriptor_helpers.hpp"
#include "legacy/rnn/rnn_descriptor.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

RnnWeightLayout::RnnWeightLayout(const RnnAttributes& network, std::int64_t input_size)
    : network_(network),
      input_(input_size),
      gates_(network.mode == RnnMode::lstm  ? 4
             : network.mode == RnnMode::gru ? 3
                                            : 1),
      output_(network.projection_size > 0 ? network.projection_size : network.hidden_size),
      directions_(network.bidirectional ? 2 : 1) {}

std::int64_t RnnWeightLayout::linear_layers() const {
  return 2 * gates_ + (network_.mode == RnnMode::lstm ? 1 : 0);
}

bool RnnWeightLayout::has_input_bias() const {
  return network_.bias == RnnBias::input || network_.bias == RnnBias::both;
}
bool RnnWeightLayout::has_recurrent_bias() const {
  return network_.bias == RnnBias::recurrent || network_.bias == RnnBias::both;
}

std::int64_t RnnWeightLayout::input_columns(std::int64_t pseudo_layer) const {
  if (pseudo_layer >= directions_) return directions_ * output_;
  return network_.input == RnnInput::skip ? 0 : input_;
}

std::int64_t RnnWeightLayout::matrices(std::int64_t pseudo_layer) const {
  const std::int64_t hidden = network_.hidden_size;
  return gates_ * hidden * (input_columns(pseudo_layer) + output_) +
         network_.projection_size * hidden;
}

std::int64_t RnnWeightLayout::matrices_before(std::int64_t pseudo_layer) const {
  const std::int64_t first = std::min(pseudo_layer, directions_);
  return first * matrices(0) + (pseudo_layer - first) * matrices(directions_);
}

std::int64_t RnnWeightLayout::biases() const {
  return gates_ * network_.hidden_size *
         ((has_input_bias() ? 1 : 0) + (has_recurrent_bias() ? 1 : 0));
}

std::int64_t RnnWeightLayout::count() const {
  return matrices_before(pseudo_layers()) + pseudo_layers() * biases();
}

RnnPart RnnWeightLayout::matrix(std::int64_t pseudo_layer, std::int64_t linear_layer) const {
  const std::int64_t hidden = network_.hidden_size, columns = input_columns(pseudo_layer);
  const std::int64_t begin = matrices_before(pseudo_layer);
  if (linear_layer < gates_) {
    if (columns == 0) return {};
    return {begin + linear_layer * hidden * columns, hidden, columns};
  }
  const std::int64_t recurrent = begin + gates_ * hidden * columns;
  if (linear_layer < 2 * gates_)
    return {recurrent + (linear_layer - gates_) * hidden * output_, hidden, output_};
  if (network_.projection_size == 0) return {};
  return {recurrent + gates_ * hidden * output_, network_.projection_size, hidden};
}

RnnPart RnnWeightLayout::bias(std::int64_t pseudo_layer, std::int64_t linear_layer) const {
  const std::int64_t hidden = network_.hidden_size;
  const std::int64_t begin = matrices_before(pseudo_layers()) + pseudo_layer * biases();
  if (linear_layer < gates_) {
    if (!has_input_bias()) return {};
    return {begin + linear_layer * hidden, hidden, 1};
  }
  if (linear_layer >= 2 * gates_ || !has_recurrent_bias()) return {};
  const std::int64_t recurrent = begin + (has_input_bias() ? gates_ * hidden : 0);
  return {recurrent + (linear_layer - gates_) * hidden, hidden, 1};
}

namespace {

RnnWeightLayout layout_of(const cudnnRNNStruct& network) {
  return RnnWeightLayout(attributes_of(network), network.input_size);
}

std::int64_t weight_bytes(const cudnnRNNStruct& network) {
  return bytes_of(require_floating(network.dtype, "dataType"), layout_of(network).count());
}

// Returns a part as a tensor [1, rows, columns] and its address. A part that does not exist has
// rank 0 and a null address. With null weights the address is an offset.
void return_part(const RnnPart& part, cudnnDataType_t type, const void* weights,
                 cudnnTensorDescriptor_t descriptor, const char* descriptor_name, void** address) {
  if (address == nullptr && descriptor == nullptr) return;
  TensorSpec spec;
  spec.dtype = require_dtype(type, "dataType");
  void* part_address = nullptr;
  if (part.rows > 0) {
    spec = row_major_spec(spec.dtype, {1, part.rows, part.columns});
    part_address = offset_address(weights, bytes_of(spec.dtype, part.offset));
  }
  if (descriptor != nullptr) set(object(descriptor, descriptor_name), type, spec);
  if (address != nullptr) *address = part_address;
}

}  // namespace
}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         size_t* weights_bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    *required(weights_bytes, "weightSpaceSize") =
        static_cast<size_t>(weight_bytes(network_of(rnn)));
  });
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      int32_t pseudo_layer, size_t weights_bytes,
                                      const void* weights, int32_t gate,
                                      cudnnTensorDescriptor_t matrix_desc, void** matrix,
                                      cudnnTensorDescriptor_t bias_desc, void** bias) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const cudnnRNNStruct& network = network_of(rnn);
    const RnnWeightLayout layout = layout_of(network);
    if (pseudo_layer < 0 || pseudo_layer >= layout.pseudo_layers())
      fail(CUDNN_STATUS_BAD_PARAM, "pseudoLayer: got {}, expected 0 to {}", pseudo_layer,
           layout.pseudo_layers() - 1);
    if (gate < 0 || gate >= layout.linear_layers())
      fail(CUDNN_STATUS_BAD_PARAM, "linLayerID: got {}, expected 0 to {}", gate,
           layout.linear_layers() - 1);
    if (weights_bytes < static_cast<size_t>(weight_bytes(network)))
      fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "weightSpaceSize: got {}, expected {}",
           weights_bytes, weight_bytes(network));
    return_part(layout.matrix(pseudo_layer, gate), network.dtype, weights, matrix_desc, "mDesc",
                matrix);
    return_part(layout.bias(pseudo_layer, gate), network.dtype, weights, bias_desc, "bDesc", bias);
  });
}

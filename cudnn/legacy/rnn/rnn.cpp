// cudnnRNNForward(), cudnnRNNBackwardData_v8() and cudnnRNNBackwardWeights_v8().
#include <ashlar/device.hpp>

#include "core/data_type.hpp"
#include "legacy/dropout_record.hpp"
#include "legacy/host_scalar.hpp"
#include "legacy/rnn/rnn_problem.hpp"
#include "legacy/tensor_descriptor.hpp"
#include "legacy/workspace.hpp"

namespace ashlar::cudnn {

namespace {

enum class Pass : std::uint8_t { inference, training, backward_data, backward_weights };

bool is_training(cudnnForwardMode_t phase) {
  if (phase != CUDNN_FWD_MODE_INFERENCE && phase != CUDNN_FWD_MODE_TRAINING)
    fail(CUDNN_STATUS_BAD_PARAM, "fwdMode: got {}, expected 0 or 1", static_cast<int>(phase));
  return phase == CUDNN_FWD_MODE_TRAINING;
}

RnnProblem problem_of(cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x_desc, bool training,
                      double padding_value = 0.0) {
  const cudnnRNNStruct& network = network_of(rnn);
  return RnnProblem(
      network, sequences_of(x_desc, "xDesc"),
      training && network.layers > 1 ? probability_of(network.dropout, "rnnDesc.dropoutDesc") : 0.0,
      padding_value);
}

// Checks yDesc against xDesc; returns the padding value.
double padding_of(const RnnProblem& problem, cudnnRNNDataDescriptor_t x_desc,
                  cudnnRNNDataDescriptor_t y_desc) {
  const cudnnRNNDataStruct &x = sequences_of(x_desc, "xDesc"), &y = sequences_of(y_desc, "yDesc");
  if (y.type != x.type || y.layout != x.layout || y.max_length != x.max_length ||
      y.batch != x.batch || y.lengths != x.lengths)
    fail(CUDNN_STATUS_BAD_PARAM,
         "yDesc: got a different dataType, layout, maxSeqLength, batchSize or seqLengthArray, "
         "expected "
         "those of xDesc");
  const std::int64_t features = problem.layout.directions() * problem.layout.output_size();
  if (y.vector_size != features)
    fail(CUDNN_STATUS_BAD_PARAM, "yDesc.vectorSize: got {}, expected {}", y.vector_size, features);
  return read_host_scalar(y.fill.data(), problem.y.dtype);
}

// The spec of a hidden or cell state: [pseudo-layers, batch, size] and trailing axes of extent 1.
TensorSpec state_spec(cudnnTensorDescriptor_t descriptor, const char* parameter,
                      const TensorSpec& expected) {
  TensorSpec spec = spec_of(descriptor, parameter);
  Dims dims = expected.dims;
  while (dims.rank() < spec.dims.rank()) dims.push_back(1);
  if (spec.dims != dims)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dims: got {}, expected {}", parameter, to_string(spec.dims),
         to_string(expected.dims));
  if (spec.dtype != expected.dtype)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dataType: got {}, expected {} as rnnDesc has", parameter,
         to_string(spec.dtype), to_string(expected.dtype));
  spec.strides = {spec.strides[0], spec.strides[1], spec.strides[2]};
  spec.dims = expected.dims;
  return spec;
}

void check_weights(const RnnProblem& problem, const void* weights, std::size_t bytes,
                   const char* parameter) {
  required(weights, parameter);
  const std::int64_t expected = byte_size(problem.weights);
  if (bytes < static_cast<std::size_t>(expected))
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "weightSpaceSize: got {}, expected {}", bytes,
         expected);
}

std::byte* check_reserve(const RnnProblem& problem, void* reserve, std::size_t bytes) {
  required(reserve, "reserveSpace");
  if (bytes < static_cast<std::size_t>(problem.reserve_bytes))
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
         "reserveSpaceSize: got {}, expected {} (cudnnGetRNNTempSpaceSizes)", bytes,
         problem.reserve_bytes);
  return static_cast<std::byte*>(reserve);
}

// One pass: key, compilation and execution.
struct RnnCall {
  cudnnHandle_t handle;
  const RnnProblem& problem;
  Pass pass;
  RnnStates states;
  bool adds = false;

  Call keyed() const {
    static constexpr const char* kNames[] = {"rnn_inference", "rnn_training", "rnn_backward_data",
                                             "rnn_backward_weights"};
    Call call(handle, kNames[static_cast<std::size_t>(pass)]);
    return call.key(problem).key(states).key(adds);
  }
  void build(Graph& graph) const {
    switch (pass) {
      case Pass::inference: return problem.forward(graph, states, false);
      case Pass::training: return problem.forward(graph, states, true);
      case Pass::backward_data: return problem.backward_data(graph, states);
      case Pass::backward_weights: return problem.backward_weights(graph, states, adds);
    }
  }
  CompileOptions options() const {
    CompileOptions options;
    options.allow_tf32 = problem.allows_tf32;
    return options;
  }
  std::int64_t workspace() const {
    return preferred_workspace_bytes(
        keyed(), [this](Graph& graph) { build(graph); }, options());
  }

  using Pointers = std::initializer_list<std::pair<const char*, BoundPointer>>;
  // Null pointers mark absent tensors. `lengths` and `random` are device pointers.
  void run(Pointers pointers, const void* lengths, const std::byte* random,
           const Workspace& work) const {
    const auto bind = [&](Call& call) {
      for (const auto& [name, pointer] : pointers)
        if (pointer) call.bind(name, pointer);
      if (problem.has_lengths) call.bind("lengths", lengths);
      if (problem.has_dropout())
        call.bind("seed", random).bind("offset", random + sizeof(std::int64_t));
    };
    run_in(
        keyed(), [this](Graph& graph) { build(graph); }, options(), bind, work);
  }
};

// All optional tensors present: the case that size queries assume.
RnnStates all_states(const RnnProblem& problem) {
  const bool has_cell = problem.op.mode == RnnMode::lstm;
  return {problem.h, problem.c, true, has_cell, true, has_cell, true, has_cell};
}

std::int64_t workspace_of(cudnnHandle_t handle, const RnnProblem& problem, bool training) {
  const RnnStates all = all_states(problem);
  const auto forward = [&](Pass pass) {
    RnnStates states = all;
    states.dhx = states.dcx = false;
    return RnnCall{handle, problem, pass, states}.workspace();
  };
  if (!training) return aligned_bytes(problem.lengths_bytes()) + forward(Pass::inference);
  RnnStates of_weights{problem.h, problem.c};
  of_weights.hx = true;
  return std::max({forward(Pass::training),
                   RnnCall{handle, problem, Pass::backward_data, all}.workspace(),
                   RnnCall{handle, problem, Pass::backward_weights, of_weights, true}.workspace()});
}

}  // namespace
}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;
using ashlar::RnnMode;

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t phase, cudnnRNNDataDescriptor_t x_desc,
                                        size_t* workspace_bytes, size_t* reserve_bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const bool training = is_training(phase);
    const RnnProblem problem = problem_of(rnn, x_desc, training);
    if (workspace_bytes != nullptr)
      *workspace_bytes = padded_workspace_bytes(workspace_of(handle, problem, training));
    if (reserve_bytes != nullptr)
      *reserve_bytes = training ? static_cast<size_t>(problem.reserve_bytes) : 0;
  });
}

// Sequence lengths come from the descriptor. devSeqLengths must be a copy of them and may be null.
cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                              cudnnForwardMode_t phase, const int32_t*,
                              cudnnRNNDataDescriptor_t x_desc, const void* x,
                              cudnnRNNDataDescriptor_t y_desc, void* y,
                              cudnnTensorDescriptor_t h_desc, const void* hx, void* hy,
                              cudnnTensorDescriptor_t c_desc, const void* cx, void* cy,
                              size_t weights_bytes, const void* weights, size_t workspace_bytes,
                              void* workspace, size_t reserve_bytes, void* reserve) {
  return guarded_legacy(__func__, [&] {
    const cudnnContext& context = object(handle, "handle");
    const bool training = is_training(phase);
    RnnProblem problem = problem_of(rnn, x_desc, training);
    problem.op.padding_value = padding_of(problem, x_desc, y_desc);
    const bool has_cell = problem.op.mode == RnnMode::lstm;
    if (!has_cell) cx = cy = nullptr;
    RnnStates states{problem.h,     problem.c,     hx != nullptr,
                     cx != nullptr, hy != nullptr, cy != nullptr};
    if (states.hx || states.h_last) states.h = state_spec(h_desc, "hDesc", problem.h);
    if (states.cx || states.c_last) states.c = state_spec(c_desc, "cDesc", problem.c);
    check_weights(problem, weights, weights_bytes, "weightSpace");
    required(x, "x");
    required(y, "y");
    std::byte* reserve_space = training ? check_reserve(problem, reserve, reserve_bytes) : nullptr;

    Workspace work(workspace, workspace_bytes);
    void* lengths = nullptr;
    if (problem.has_lengths) {
      const std::vector<int>& host_lengths = sequences_of(x_desc, "xDesc").lengths;
      lengths = training ? reserve_space + problem.lengths_at : work.take(problem.lengths_bytes());
      context.device.enqueue_upload(lengths, host_lengths, context.stream);
    }
    std::byte* random = training ? reserve_space + problem.random_at : nullptr;
    if (problem.has_dropout())
      record_draws(handle, network_of(rnn).dropout, "rnnDesc.dropoutDesc", problem.draws(), random);
    RnnCall{handle, problem, training ? Pass::training : Pass::inference, states}.run(
        {{"x", x},
         {"weights", weights},
         {"hx", hx},
         {"cx", cx},
         {"y", y},
         {"hy", hy},
         {"cy", cy},
         {"records", reserve_space}},
        lengths, random, work);
  });
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      const int32_t*, cudnnRNNDataDescriptor_t y_desc, const void*,
                                      const void* dy, cudnnRNNDataDescriptor_t x_desc, void* dx,
                                      cudnnTensorDescriptor_t h_desc, const void* hx,
                                      const void* dhy, void* dhx, cudnnTensorDescriptor_t c_desc,
                                      const void* cx, const void* dcy, void* dcx,
                                      size_t weights_bytes, const void* weights,
                                      size_t workspace_bytes, void* workspace, size_t reserve_bytes,
                                      void* reserve) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const RnnProblem problem = problem_of(rnn, x_desc, true);
    padding_of(problem, x_desc, y_desc);
    if (problem.op.mode != RnnMode::lstm) cx = dcy = dcx = nullptr;
    RnnStates states{problem.h,      problem.c,      hx != nullptr,  cx != nullptr,
                     dhy != nullptr, dcy != nullptr, dhx != nullptr, dcx != nullptr};
    if (states.hx || states.h_last || states.dhx) states.h = state_spec(h_desc, "hDesc", problem.h);
    if (states.cx || states.c_last || states.dcx) states.c = state_spec(c_desc, "cDesc", problem.c);
    check_weights(problem, weights, weights_bytes, "weightSpace");
    required(dy, "dy");
    required(dx, "dx");
    std::byte* reserve_space = check_reserve(problem, reserve, reserve_bytes);
    // The gate gradients are stored in the reserve space: the caller may pass another workspace to
    // the backward-weights pass, which reads them.
    RnnCall{handle, problem, Pass::backward_data, states}.run(
        {{"dy", dy},
         {"weights", weights},
         {"records", reserve_space},
         {"hx", hx},
         {"cx", cx},
         {"dhy", dhy},
         {"dcy", dcy},
         {"dx", dx},
         {"dhx", dhx},
         {"dcx", dcx},
         {"dgates", reserve_space + problem.dgates_at}},
        reserve_space + problem.lengths_at, reserve_space + problem.random_at,
        Workspace(workspace, workspace_bytes));
  });
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t accumulation, const int32_t*,
    cudnnRNNDataDescriptor_t x_desc, const void* x, cudnnTensorDescriptor_t h_desc, const void* hx,
    cudnnRNNDataDescriptor_t y_desc, const void*, size_t weights_bytes, void* dweights,
    size_t workspace_bytes, void* workspace, size_t reserve_bytes, void* reserve) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    if (accumulation != CUDNN_WGRAD_MODE_ADD && accumulation != CUDNN_WGRAD_MODE_SET)
      fail(CUDNN_STATUS_BAD_PARAM, "addGrad: got {}, expected 0 or 1",
           static_cast<int>(accumulation));
    const bool adds = accumulation == CUDNN_WGRAD_MODE_ADD;
    const RnnProblem problem = problem_of(rnn, x_desc, true);
    padding_of(problem, x_desc, y_desc);
    RnnStates states{problem.h, problem.c, hx != nullptr};
    if (states.hx) states.h = state_spec(h_desc, "hDesc", problem.h);
    check_weights(problem, dweights, weights_bytes, "dweightSpace");
    required(x, "x");
    std::byte* reserve_space = check_reserve(problem, reserve, reserve_bytes);
    RnnCall{handle, problem, Pass::backward_weights, states, adds}.run(
        {{"x", x},
         {"records", reserve_space},
         {"dgates", reserve_space + problem.dgates_at},
         {"hx", hx},
         {"previous", adds ? dweights : nullptr},
         {"dweights", dweights}},
        reserve_space + problem.lengths_at, reserve_space + problem.random_at,
        Workspace(workspace, workspace_bytes));
  });
}

// cudnnCTCLoss*(): connectionist temporal classification. Label 0 is the blank. With softmax
// normalization the gradient is with respect to the logits. Without it, the gradient is with
// respect to the probabilities, and equals the probability itself where no path passes. A sequence
// that is too short for its labels has cost 0; its gradient is 0 or not written.
#include <ashlar/device.hpp>
#include <bit>
#include <limits>
#include <vector>

#include "core/data_type.hpp"
#include "legacy/call.hpp"
#include "legacy/ctc_descriptor.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

// Rounds a label capacity up to one of few extents, because each extent needs a plan.
std::int64_t rounded_up(std::int64_t count) {
  constexpr std::uint64_t kLeast = 16, kStepsPerOctave = 8;
  const auto wanted = static_cast<std::uint64_t>(count);
  const std::uint64_t step = std::max(kLeast, std::bit_ceil(wanted) / kStepsPerOctave);
  return static_cast<std::int64_t>(std::max<std::uint64_t>(wanted + step - 1, step) / step * step);
}

// The concatenated labels of all sequences and the sequence lengths, in host memory.
struct HostLabels {
  const int *labels, *label_lengths, *input_lengths;
  std::int64_t sequences = 0, count = 0;

  HostLabels(const int* all, const int* lengths, const int* times, const TensorSpec& probs)
      : labels(all),
        label_lengths(required(lengths, "labelLengths")),
        input_lengths(required(times, "inputLengths")),
        sequences(probs.dims[1]) {
    for (std::int64_t n = 0; n < sequences; ++n) {
      if (label_lengths[n] < 0)
        fail(CUDNN_STATUS_BAD_PARAM, "labelLengths[{}]: got {}, expected at least 0", n,
             label_lengths[n]);
      if (input_lengths[n] < 0 || input_lengths[n] > probs.dims[0])
        fail(CUDNN_STATUS_BAD_PARAM, "inputLengths[{}]: got {}, expected 0 to {}, the time steps",
             n, input_lengths[n], probs.dims[0]);
      count += label_lengths[n];
    }
    if (count > 0) required(labels, "labels");
  }
  std::int64_t room() const { return rounded_up(count); }
  // Bytes of the device copy, which is padded to the label capacity.
  std::int64_t bytes() const { return (2 * sequences + room()) * kIntBytes; }
  // Label lengths, sequence lengths, labels.
  std::vector<int> concatenated() const {
    std::vector<int> all(label_lengths, label_lengths + sequences);
    all.insert(all.end(), input_lengths, input_lengths + sequences);
    if (count > 0) all.insert(all.end(), labels, labels + count);
    return all;
  }

  static constexpr std::int64_t kIntBytes = sizeof(int);
};

struct Problem {
  const cudnnCTCLossStruct& setting;
  TensorSpec probs;
  std::optional<TensorSpec> gradients;
  cudnnCTCLossAlgo_t algo;

  Problem(cudnnCTCLossDescriptor_t ctc, cudnnTensorDescriptor_t probs_desc,
          cudnnTensorDescriptor_t gradients_desc, cudnnCTCLossAlgo_t algorithm)
      : setting(set_object(ctc, "ctcLossDesc")),
        probs(spec_of(probs_desc, "probsDesc")),
        gradients(optional_spec_of(gradients_desc, "gradientsDesc")),
        algo(algorithm) {
    if (probs.dims.rank() != 3)
      fail(CUDNN_STATUS_BAD_PARAM, "probsDesc.dims: got {}, expected [time, batch, classes]",
           to_string(probs.dims));
    if (gradients) require_same_dims(probs, "probsDesc", *gradients, "gradientsDesc");
    if (algo != CUDNN_CTC_LOSS_ALGO_DETERMINISTIC && algo != CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC)
      fail(CUDNN_STATUS_BAD_PARAM, "algo: got {}, expected a cudnnCTCLossAlgo_t",
           static_cast<int>(algo));
  }

  // The label capacity when labels are in device memory.
  std::int64_t max_labels() const {
    const std::int64_t longest =
        setting.max_label_length > 0 ? setting.max_label_length : probs.dims[0];
    return rounded_up(longest * probs.dims[1]);
  }
};

class CtcCall {
 public:
  CtcCall(cudnnHandle_t handle, const Problem& problem, std::int64_t labels)
      : call_(handle, "ctc_loss") {
    const cudnnCTCLossStruct& setting = problem.setting;
    call_.key(setting.compute).key(setting.normalization).key(setting.too_short);
    call_.key(problem.algo).key(labels).key(problem.probs).key(problem.gradients.has_value());
    if (problem.gradients) call_.key(*problem.gradients);
    CompileOptions options;
    options.deterministic = problem.algo == CUDNN_CTC_LOSS_ALGO_DETERMINISTIC;
    call_.compile([&](Graph& graph) { build(graph, problem, labels); }, options);
  }

  // Rounded up to 64 bytes, so that the labels behind it in the workspace are aligned.
  std::int64_t workspace_size() const { return (call_.workspace_size() + 63) / 64 * 64; }
  Call& call() { return call_; }

 private:
  static void build(Graph& graph, const Problem& problem, std::int64_t label_room) {
    using Op = CtcLoss;
    const std::int64_t sequences = problem.probs.dims[1];
    const DType compute = require_dtype(problem.setting.compute, "compType");
    const bool keeps_old = problem.setting.too_short == CUDNN_CTC_SKIP_OOB_GRADIENTS;
    const bool is_normalized = problem.setting.normalization == CUDNN_LOSS_NORMALIZATION_NONE;

    const Value x = add_input(graph, "probs", problem.probs);
    const Value input_lengths = graph.input("input_lengths", {sequences}, i32);
    Op op;
    op.input = is_normalized ? CtcInput::probabilities : CtcInput::logits;
    op.zero_infinity = !keeps_old && !is_normalized;
    std::vector<Wanted<Op>> wanted = {{Op::loss, compute}};
    if (problem.gradients) wanted.push_back({Op::gradient, compute});
    const auto out =
        graph.apply(op,
                    {{Op::x, x},
                     {Op::labels, graph.input("labels", {label_room}, i32)},
                     {Op::label_lengths, graph.input("label_lengths", {sequences}, i32)},
                     {Op::input_lengths, input_lengths}},
                    wanted);
    if (op.zero_infinity) {
      graph.output("costs", out[Op::loss]);
      if (problem.gradients) add_output(graph, "gradients", out[Op::gradient], *problem.gradients);
      return;
    }
    const auto is_too_short = [&](Value loss) {
      const double largest = compute == f64
                                 ? std::numeric_limits<double>::max()
                                 : static_cast<double>(std::numeric_limits<float>::max());
      return pointwise(PointwiseMode::cmp_gt, loss,
                       graph.constant(largest, compute, loss.dims().rank()));
    };
    const Value loss = out[Op::loss];
    graph.output("costs", select(is_too_short(loss), graph.constant(0.0, compute, 1), loss));
    if (!problem.gradients) return;
    const Value instead = keeps_old ? add_input(graph, "old_gradients", *problem.gradients)
                                    : graph.constant(0.0, compute, 3);
    const Value by_sequence = graph.reshape(loss, {1, sequences, 1});
    Value gradient = out[Op::gradient];
    if (is_normalized)
      gradient =
          with_probabilities(graph, gradient, x, graph.reshape(input_lengths, {1, sequences, 1}));
    add_output(graph, "gradients", select(is_too_short(by_sequence), instead, gradient),
               *problem.gradients);
  }

  // Replaces zero gradients of existing steps by the probability.
  static Value with_probabilities(Graph& graph, Value gradient, Value probabilities,
                                  Value lengths) {
    Pointwise along_time;
    along_time.axis = 0;
    const Value time =
        graph.pointwise(PointwiseMode::gen_index, std::array{gradient}, along_time, {});
    const Value is_step = pointwise(PointwiseMode::cmp_lt, time, lengths);
    const Value is_unreached =
        pointwise(PointwiseMode::cmp_eq, gradient, graph.constant(0.0, gradient.dtype(), 3));
    return select(pointwise(PointwiseMode::logical_and, is_step, is_unreached), probabilities,
                  gradient);
  }

  Call call_;
};

// Labels and lengths are device pointers.
void run(CtcCall& ctc, const Problem& problem, const void* probs, const int* labels,
         const int* label_lengths, const int* input_lengths, void* costs, void* gradients,
         void* workspace, std::size_t bytes) {
  Call& call = ctc.call();
  call.bind("probs", probs).bind("labels", labels).bind("label_lengths", label_lengths);
  call.bind("input_lengths", input_lengths).bind("costs", costs);
  if (problem.gradients) {
    call.bind("gradients", gradients);
    if (problem.setting.too_short == CUDNN_CTC_SKIP_OOB_GRADIENTS)
      call.bind("old_gradients", gradients);
  }
  call.run(workspace, bytes);
}

void require_bytes(std::size_t provided, std::int64_t needed) {
  if (provided < static_cast<std::size_t>(needed))
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "workSpaceSizeInBytes: got {}, expected {}",
         provided, needed);
}

// Copies the labels to the workspace, behind the plan's scratch.
void run_with_host_labels(cudnnHandle_t handle, const Problem& problem, const HostLabels& host,
                          const void* probs, void* costs, void* gradients, void* workspace,
                          std::size_t bytes) {
  CtcCall ctc(handle, problem, host.room());
  require_bytes(bytes, ctc.workspace_size() + host.bytes());
  required(workspace, "workspace");
  const std::vector<int> numbers = host.concatenated();
  int* device = reinterpret_cast<int*>(static_cast<std::byte*>(workspace) + ctc.workspace_size());
  ctc.call().device().enqueue_upload(device, numbers, ctc.call().stream());
  const int *label_lengths = device, *input_lengths = device + host.sequences;
  const int* labels = input_lengths + host.sequences;
  run(ctc, problem, probs, labels, label_lengths, input_lengths, costs, gradients, workspace,
      static_cast<std::size_t>(ctc.workspace_size()));
}

// With null gradients only the costs are computed.
cudnnTensorDescriptor_t wanted(cudnnTensorDescriptor_t descriptor, const void* gradients) {
  return gradients != nullptr ? (required(descriptor, "gradientsDesc"), descriptor) : nullptr;
}

}  // namespace

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t probs_desc,
                                           cudnnTensorDescriptor_t gradients_desc,
                                           const int* labels, const int* label_lengths,
                                           const int* input_lengths, cudnnCTCLossAlgo_t algo,
                                           cudnnCTCLossDescriptor_t ctc, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    required(bytes, "sizeInBytes");
    const Problem problem(ctc, probs_desc, gradients_desc, algo);
    const HostLabels host(labels, label_lengths, input_lengths, problem.probs);
    const CtcCall call(handle, problem, host.room());
    *bytes = static_cast<std::size_t>(call.workspace_size() + host.bytes());
  });
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
                                              cudnnCTCLossDescriptor_t ctc,
                                              cudnnTensorDescriptor_t probs_desc,
                                              cudnnTensorDescriptor_t gradients_desc,
                                              size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    required(bytes, "sizeInBytes");
    const Problem problem(ctc, probs_desc, gradients_desc, algo);
    const CtcCall call(handle, problem, problem.max_labels());
    *bytes = static_cast<std::size_t>(call.workspace_size());
  });
}

cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle, cudnnTensorDescriptor_t probs_desc,
                           const void* probs, const int labels[], const int label_lengths[],
                           const int input_lengths[], void* costs,
                           cudnnTensorDescriptor_t gradients_desc, void* gradients,
                           cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctc, void* workspace,
                           size_t workspace_bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const Problem problem(ctc, probs_desc, wanted(gradients_desc, gradients), algo);
    const HostLabels host(labels, label_lengths, input_lengths, problem.probs);
    run_with_host_labels(handle, problem, host, required(probs, "probs"), required(costs, "costs"),
                         gradients, workspace, workspace_bytes);
  });
}

cudnnStatus_t cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
                              cudnnCTCLossDescriptor_t ctc, cudnnTensorDescriptor_t probs_desc,
                              const void* probs, const int labels[], const int label_lengths[],
                              const int input_lengths[], void* costs,
                              cudnnTensorDescriptor_t gradients_desc, void* gradients,
                              size_t workspace_bytes, void* workspace) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const Problem problem(ctc, probs_desc, wanted(gradients_desc, gradients), algo);
    required(probs, "probs"), required(costs, "costs"), required(labels, "labels");
    required(label_lengths, "labelLengths"), required(input_lengths, "inputLengths");
    CtcCall call(handle, problem, problem.max_labels());
    require_bytes(workspace_bytes, call.workspace_size());
    if (call.workspace_size() > 0) required(workspace, "workspace");
    run(call, problem, probs, labels, label_lengths, input_lengths, costs, gradients, workspace,
        workspace_bytes);
  });
}

// cudnnMultiHeadAttn*: the three passes of multi-head attention. Windows and lengths come from host
// memory (lengths from the descriptors; the device arrays must be copies of them). Training stores
// them in the reserve space, because cudnnMultiHeadAttnBackwardWeights() does not get them.
#include <algorithm>
#include <ashlar/device.hpp>

#include "legacy/descriptor_helpers.hpp"
#include "legacy/dropout_record.hpp"
#include "legacy/host_scalar.hpp"
#include "legacy/multi_head_attention/attn_problem.hpp"
#include "legacy/workspace.hpp"

namespace ashlar::cudnn {

namespace {

enum class Pass : std::uint8_t { forward, backward_data, backward_weights };

// The reserve space: the generator states of both dropouts, then the indices.
constexpr std::int64_t kPostRandomAt = kWorkspaceGranularity,
                       kIndicesAt = 2 * kWorkspaceGranularity;

std::int64_t index_bytes(const cudnnAttnStruct& attention) {
  const std::int64_t sequences = std::int64_t{attention.max_batch} * attention.max_beam;
  return aligned_bytes(AttnIndices(attention.max_q_length, sequences, sequences).end);
}

std::int64_t reserve_bytes_of(const cudnnAttnStruct& attention) {
  return kIndicesAt + index_bytes(attention);
}

struct AttnData {
  const cudnnSeqDataStruct &q, &k, &v, &o;
};

AttnProblem problem_of(const cudnnAttnStruct& attention, const AttnData& data, bool training) {
  const double attention_dropout =
      training ? probability_of(attention.attention_dropout, "attnDesc.attnDropoutDesc") : 0.0;
  const double output_dropout =
      training ? probability_of(attention.output_dropout, "attnDesc.postDropoutDesc") : 0.0;
  return AttnProblem(attention, data.q, data.k, data.v, data.o, attention_dropout, output_dropout);
}

void check_weights(const cudnnAttnStruct& attention, const void* weights, std::size_t bytes,
                   const char* parameter) {
  const std::int64_t expected = weight_bytes(attention);
  if (expected == 0) return;
  required(weights, parameter);
  if (bytes < static_cast<std::size_t>(expected))
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "weightSizeInBytes: got {}, expected {}", bytes,
         expected);
}

std::byte* check_reserve(const cudnnAttnStruct& attention, void* reserve, std::size_t bytes) {
  required(reserve, "reserveSpace");
  if (bytes < static_cast<std::size_t>(reserve_bytes_of(attention)))
    fail(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
         "reserveSpaceSizeInBytes: got {}, expected {} (cudnnGetMultiHeadAttnBuffers)", bytes,
         reserve_bytes_of(attention));
  return static_cast<std::byte*>(reserve);
}

// One pass: key, compilation and execution.
struct AttnCall {
  cudnnHandle_t handle;
  const AttnProblem& problem;
  Pass pass;
  bool adds = false;

  Call keyed() const {
    static constexpr const char* kNames[] = {"attn_forward", "attn_backward_data",
                                             "attn_backward_weights"};
    Call call(handle, kNames[static_cast<std::size_t>(pass)]);
    return call.key(problem).key(adds);
  }
  void build(Graph& graph) const {
    switch (pass) {
      case Pass::forward: return problem.forward(graph);
      case Pass::backward_data: return problem.backward_data(graph);
      case Pass::backward_weights: return problem.backward_weights(graph, adds);
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
  // Null pointers mark absent tensors. `indices` and `random` are device pointers.
  void run(Pointers pointers, const std::byte* indices, const std::byte* random,
           const Workspace& work) const {
    const AttnIndices at = problem.indices();
    const auto bind = [&](Call& call) {
      for (const auto& [name, pointer] : pointers)
        if (pointer) call.bind(name, pointer);
      if (problem.has_windows)
        call.bind("window_low", indices + at.window_low)
            .bind("window_high", indices + at.window_high);
      if (problem.has_q_lengths) call.bind("q_lengths", indices + at.q_lengths);
      if (problem.has_kv_lengths) call.bind("kv_lengths", indices + at.kv_lengths);
      constexpr std::int64_t kOffsetAt = sizeof(std::int64_t);
      if (problem.op.attention_dropout > 0.0)
        call.bind("seed", random).bind("offset", random + kOffsetAt);
      if (problem.op.post_dropout > 0.0)
        call.bind("post_seed", random + kPostRandomAt)
            .bind("post_offset", random + kPostRandomAt + kOffsetAt);
    };
    run_in(
        keyed(), [this](Graph& graph) { build(graph); }, options(), bind, work);
  }
};

// Sequence data of the maximum sizes that the descriptor allows.
struct LargestData {
  cudnnSeqDataStruct q, k, v, o;
  explicit LargestData(const cudnnAttnStruct& attention) {
    const int key_beams = has_key_beams(attention) ? attention.max_beam : 1;
    q = make(attention, attention.max_q_length, attention.max_beam, attention.q_size);
    k = make(attention, attention.max_kv_length, key_beams, attention.k_size);
    v = make(attention, attention.max_kv_length, key_beams, attention.v_size);
    o = make(attention, attention.max_q_length, attention.max_beam,
             static_cast<int>(output_size(attention)));
  }
  AttnData data() const { return {q, k, v, o}; }

 private:
  static cudnnSeqDataStruct make(const cudnnAttnStruct& attention, int steps, int beams, int size) {
    cudnnSeqDataStruct data;
    data.type = attention.dtype;
    data.axes = {CUDNN_SEQDATA_BATCH_DIM, CUDNN_SEQDATA_BEAM_DIM, CUDNN_SEQDATA_TIME_DIM,
                 CUDNN_SEQDATA_VECT_DIM};
    data.dims[CUDNN_SEQDATA_BATCH_DIM] = attention.max_batch;
    data.dims[CUDNN_SEQDATA_BEAM_DIM] = beams;
    data.dims[CUDNN_SEQDATA_TIME_DIM] = steps;
    data.dims[CUDNN_SEQDATA_VECT_DIM] = size;
    data.lengths = {0};  // one sequence is shorter: plans that mask need the largest workspace
    return data;
  }
};

std::int64_t workspace_of(cudnnHandle_t handle, const cudnnAttnStruct& attention, bool training) {
  const LargestData largest(attention);
  AttnProblem problem = problem_of(attention, largest.data(), training);
  const auto needed = [&](Pass pass, bool adds = false) {
    return AttnCall{handle, problem, pass, adds}.workspace();
  };
  problem.has_residual = attention.q_size == output_size(attention);
  const std::int64_t forward = needed(Pass::forward);
  problem.has_residual = false;
  if (!training) return index_bytes(attention) + forward;
  std::int64_t maximum = std::max(forward, needed(Pass::backward_data));
  if (problem.has_weights())
    maximum = std::max(
        maximum, aligned_bytes(weight_bytes(attention)) + needed(Pass::backward_weights, true));
  return maximum;
}

// The windows and lengths in the device layout. `step` is the only query step, or negative for all.
std::vector<std::int32_t> index_array_of(const AttnData& data, int step, const int window_begin[],
                                         const int window_end[]) {
  const int first = std::max(step, 0), end = step < 0 ? data.q.steps() : step + 1;
  std::vector<std::int32_t> numbers;
  numbers.insert(numbers.end(), window_begin + first, window_begin + end);
  numbers.insert(numbers.end(), window_end + first, window_end + end);
  for (int length : data.q.lengths) numbers.push_back(length - first);
  numbers.insert(numbers.end(), data.k.lengths.begin(), data.k.lengths.end());
  return numbers;
}

bool are_open(const AttnData& data, int step, const int window_begin[], const int window_end[]) {
  const int first = std::max(step, 0), end = step < 0 ? data.q.steps() : step + 1;
  for (int t = first; t < end; ++t)
    if (window_begin[t] > 0 || window_end[t] < data.k.steps()) return false;
  return true;
}

// A copy of the old contents of dweights: the pass may write dweights before it has read all of
// them.
const void* saved(cudnnHandle_t handle, const AttnProblem& problem, const void* dweights,
                  Workspace& work) {
  void* copy = work.take(bytes_of(problem.weights.dtype, element_count(problem.weights.dims)));
  Call call(handle, "attn_save_weights");
  call.key(problem.weights).compile([&](Graph& graph) {
    const Value from = add_input(graph, "from", problem.weights);
    add_output(graph, "to", graph.pointwise(PointwiseMode::identity, std::array{from}),
               problem.weights);
  });
  call.bind("from", dweights).bind("to", copy).run();
  return copy;
}

}  // namespace
}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnGetMultiHeadAttnBuffers(cudnnHandle_t handle, cudnnAttnDescriptor_t attention,
                                           size_t* weights_bytes, size_t* workspace_bytes,
                                           size_t* reserve_bytes) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const cudnnAttnStruct& fields = attention_of(attention);
    *required(weights_bytes, "weightSizeInBytes") = static_cast<size_t>(weight_bytes(fields));
    *required(workspace_bytes, "workSpaceSizeInBytes") =
        padded_workspace_bytes(workspace_of(handle, fields, reserve_bytes != nullptr));
    if (reserve_bytes != nullptr) *reserve_bytes = static_cast<size_t>(reserve_bytes_of(fields));
  });
}

cudnnStatus_t cudnnMultiHeadAttnForward(
    cudnnHandle_t handle, cudnnAttnDescriptor_t attention, int step, const int window_begin[],
    const int window_end[], const int*, const int*, cudnnSeqDataDescriptor_t q_desc,
    const void* queries, const void* residuals, cudnnSeqDataDescriptor_t k_desc, const void* keys,
    cudnnSeqDataDescriptor_t v_desc, const void* values, cudnnSeqDataDescriptor_t o_desc, void* out,
    size_t weights_bytes, const void* weights, size_t workspace_bytes, void* workspace,
    size_t reserve_bytes, void* reserve) {
  return guarded_legacy(__func__, [&] {
    const cudnnContext& context = object(handle, "handle");
    const cudnnAttnStruct& fields = attention_of(attention);
    const AttnData data{sequences_of(q_desc, "qDesc"), sequences_of(k_desc, "kDesc"),
                        sequences_of(v_desc, "vDesc"), sequences_of(o_desc, "oDesc")};
    const bool training = reserve != nullptr;
    AttnProblem problem = problem_of(fields, data, training);
    if (step >= data.q.steps() || (step >= 0 && training))
      fail(CUDNN_STATUS_BAD_PARAM, "currIdx: got {}, expected {}", step,
           training ? "a negative number in training" : "less than the steps of qDesc");
    required(window_begin, "loWinIdx");
    required(window_end, "hiWinIdx");
    check_weights(fields, weights, weights_bytes, "weights");
    std::byte* reserve_space = training ? check_reserve(fields, reserve, reserve_bytes) : nullptr;
    problem.padding_value = read_host_scalar(data.o.fill.data(), problem.o.dtype);
    problem.has_windows = training || !are_open(data, step, window_begin, window_end);
    problem.has_residual = residuals != nullptr;
    if (problem.has_residual && data.q.vector_size() != data.o.vector_size())
      fail(CUDNN_STATUS_BAD_PARAM,
           "residuals: got vectors of {} elements as qDesc says, expected {} as in oDesc",
           data.q.vector_size(), data.o.vector_size());

    // A single step is a smaller problem at an offset in memory.
    const auto bytes_to_step = [&](const TensorSpec& spec) {
      return step > 0 ? bytes_of(spec.dtype, step * spec.strides[2]) : 0;
    };
    const auto* q =
        static_cast<const std::byte*>(required(queries, "queries")) + bytes_to_step(problem.q);
    const auto* residual = residuals != nullptr
                               ? static_cast<const std::byte*>(residuals) + bytes_to_step(problem.q)
                               : nullptr;
    auto* o = static_cast<std::byte*>(required(out, "out")) + bytes_to_step(problem.o);
    if (step >= 0) problem.select_step(data.q.lengths, step);

    Workspace work(workspace, workspace_bytes);
    const std::byte* indices = nullptr;
    if (problem.has_windows || problem.has_q_lengths || problem.has_kv_lengths) {
      const std::vector<std::int32_t> numbers =
          index_array_of(data, step, window_begin, window_end);
      const auto bytes = static_cast<std::int64_t>(numbers.size() * sizeof(numbers[0]));
      void* device_indices = training ? reserve_space + kIndicesAt : work.take(bytes);
      context.device.enqueue_upload(device_indices, numbers, context.stream);
      indices = static_cast<const std::byte*>(device_indices);
    }
    if (problem.op.attention_dropout > 0.0)
      record_draws(handle, fields.attention_dropout, "attnDesc.attnDropoutDesc",
                   problem.attention_draws(), reserve_space);
    if (problem.op.post_dropout > 0.0)
      record_draws(handle, fields.output_dropout, "attnDesc.postDropoutDesc",
                   problem.output_draws(), reserve_space + kPostRandomAt);
    AttnCall{handle, problem, Pass::forward}.run(
        {{"q", q},
         {"k", required(keys, "keys")},
         {"v", required(values, "values")},
         {"weights", problem.has_weights() ? weights : nullptr},
         {"residual", residual},
         {"o", o}},
        indices, reserve_space, work);
  });
}

cudnnStatus_t cudnnMultiHeadAttnBackwardData(
    cudnnHandle_t handle, cudnnAttnDescriptor_t attention, const int window_begin[],
    const int window_end[], const int*, const int*, cudnnSeqDataDescriptor_t dout_desc,
    const void* dout, cudnnSeqDataDescriptor_t dq_desc, void* dqueries, const void* queries,
    cudnnSeqDataDescriptor_t dk_desc, void* dkeys, const void* keys,
    cudnnSeqDataDescriptor_t dv_desc, void* dvalues, const void* values, size_t weights_bytes,
    const void* weights, size_t workspace_bytes, void* workspace, size_t reserve_bytes,
    void* reserve) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const cudnnAttnStruct& fields = attention_of(attention);
    const AttnData data{sequences_of(dq_desc, "dqDesc"), sequences_of(dk_desc, "dkDesc"),
                        sequences_of(dv_desc, "dvDesc"), sequences_of(dout_desc, "doDesc")};
    const AttnProblem problem = problem_of(fields, data, true);
    required(window_begin, "loWinIdx");
    required(window_end, "hiWinIdx");
    check_weights(fields, weights, weights_bytes, "weights");
    std::byte* reserve_space = check_reserve(fields, reserve, reserve_bytes);
    AttnCall{handle, problem, Pass::backward_data}.run(
        {{"q", required(queries, "queries")},
         {"k", required(keys, "keys")},
         {"v", required(values, "values")},
         {"weights", problem.has_weights() ? weights : nullptr},
         {"d_o", required(dout, "dout")},
         {"dq", required(dqueries, "dqueries")},
         {"dk", required(dkeys, "dkeys")},
         {"dv", required(dvalues, "dvalues")}},
        reserve_space + kIndicesAt, reserve_space, Workspace(workspace, workspace_bytes));
  });
}

cudnnStatus_t cudnnMultiHeadAttnBackwardWeights(
    cudnnHandle_t handle, cudnnAttnDescriptor_t attention, cudnnWgradMode_t accumulation,
    cudnnSeqDataDescriptor_t q_desc, const void* queries, cudnnSeqDataDescriptor_t k_desc,
    const void* keys, cudnnSeqDataDescriptor_t v_desc, const void* values,
    cudnnSeqDataDescriptor_t dout_desc, const void* dout, size_t weights_bytes, const void* weights,
    void* dweights, size_t workspace_bytes, void* workspace, size_t reserve_bytes, void* reserve) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    const cudnnAttnStruct& fields = attention_of(attention);
    if (accumulation != CUDNN_WGRAD_MODE_ADD && accumulation != CUDNN_WGRAD_MODE_SET)
      fail(CUDNN_STATUS_BAD_PARAM, "addGrad: got {}, expected 0 or 1",
           static_cast<int>(accumulation));
    const bool adds = accumulation == CUDNN_WGRAD_MODE_ADD;
    const AttnData data{sequences_of(q_desc, "qDesc"), sequences_of(k_desc, "kDesc"),
                        sequences_of(v_desc, "vDesc"), sequences_of(dout_desc, "doDesc")};
    const AttnProblem problem = problem_of(fields, data, true);
    check_weights(fields, weights, weights_bytes, "weights");
    check_weights(fields, dweights, weights_bytes, "dweights");
    std::byte* reserve_space = check_reserve(fields, reserve, reserve_bytes);
    if (!problem.has_weights()) return;  // no projections
    required(queries, "queries");
    required(keys, "keys");
    required(values, "values");
    required(dout, "dout");
    Workspace work(workspace, workspace_bytes);
    const void* previous = adds ? saved(handle, problem, dweights, work) : nullptr;
    AttnCall{handle, problem, Pass::backward_weights, adds}.run({{"q", queries},
                                                                 {"k", keys},
                                                                 {"v", values},
                                                                 {"weights", weights},
                                                                 {"d_o", dout},
                                                                 {"previous", previous},
                                                                 {"dweights", dweights}},
                                                                reserve_space + kIndicesAt,
                                                                reserve_space, work);
  });
}

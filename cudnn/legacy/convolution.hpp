// Convolutions of the legacy API (forward, backward data, backward filter) and the strategies that
// run them.
#pragma once

#include <limits>

#include "legacy/call.hpp"
#include "legacy/convolution_descriptor.hpp"

namespace ashlar::cudnn {

enum class ConvKind : std::uint8_t { forward, backward_data, backward_filter };

// y = conv(x, w), with the three tensors as their descriptors define them. `kind` says which one
// the call computes.
struct Convolution {
  ConvKind kind = ConvKind::forward;
  TensorSpec x, w, y;
  ConvAttributes attributes;
  DType compute = f32;
  bool allow_tf32 = true;
  bool is_reordered = false;  // w and bias are in the order of cudnnReorderFilterAndBias
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;

  const TensorSpec& result() const {
    return kind == ConvKind::forward ? y : kind == ConvKind::backward_data ? x : w;
  }
};

// Throws Failure for inconsistent descriptors.
Convolution make_convolution(ConvKind kind, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                             cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y);

Convolution make_convolution(ConvKind kind, const TensorSpec& x, const TensorSpec& w,
                             const cudnnConvolutionStruct& conv, const TensorSpec& y);

// A strategy behind cuDNN's algorithms: the freedom that the planner gets.
struct ConvStrategy {
  std::int64_t workspace_limit;  // bytes; the plan owns scratch memory beyond it
  bool allows_winograd;
  bool operator==(const ConvStrategy&) const = default;
};
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
inline constexpr ConvStrategy kOwnMemory{0, false};
inline constexpr ConvStrategy kBest{kNoLimit, false};
inline constexpr ConvStrategy kWinogradOwnMemory{0, true};
inline constexpr ConvStrategy kWinograd{kNoLimit, true};

CompileOptions options_of(const Convolution& conv, ConvStrategy strategy);
void add_to_key(Call& call, const Convolution& conv, ConvStrategy strategy);

// The convolution in its compute type, before alpha and beta. The operands that the kind reads
// become the inputs "x", "w" or "y".
Value add_convolution(Graph& graph, const Convolution& conv);
// The same for existing operand values: x and w, y and w, or x and y.
Value convolved(Graph& graph, const Convolution& conv, Value a, Value b);

// Pointers to the three tensors.
struct ConvMemory {
  BoundPointer x, w, y;
};

// Whether the caller's workspace is large enough and aligned for the plan.
bool fits(const Call& call, const void* workspace, std::size_t bytes);
// The strategy limited to a workspace that is too small. A misaligned workspace counts as none.
ConvStrategy within(ConvStrategy strategy, const void* workspace, std::size_t bytes);

// One strategy with its compiled plan.
class ConvolutionCall {
 public:
  // result = alpha * convolution + beta * result; null alpha and beta are 1 and 0.
  ConvolutionCall(cudnnHandle_t handle, const Convolution& conv, ConvStrategy strategy,
                  const void* alpha = nullptr, const void* beta = nullptr);
  ConvolutionCall(const ConvolutionCall&) = delete;  // the bound plan points to its alpha and beta
  ConvolutionCall& operator=(const ConvolutionCall&) = delete;

  const Call& call() const { return call_; }
  void bind(const ConvMemory& memory);
  void run(void* workspace, std::size_t bytes) { call_.run(workspace, bytes); }

 private:
  Call call_;
};

// Runs the strategy, or its variant that fits into the caller's workspace when that is too small.
void run_convolution(cudnnHandle_t handle, const Convolution& conv, ConvStrategy strategy,
                     const void* alpha, const void* beta, const ConvMemory& memory, void* workspace,
                     std::size_t bytes);

}  // namespace ashlar::cudnn

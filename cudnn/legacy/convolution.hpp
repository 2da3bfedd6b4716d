// A convolution as the older calls give it, forward or one of its gradients, and the ways it runs.
#pragma once

#include <limits>

#include "legacy/call.hpp"
#include "legacy/convolution_descriptor.hpp"

namespace ashlar::cudnn {

enum class ConvKind : std::uint8_t { forward, backward_data, backward_filter };

// y = x * w with x, w and y as their descriptors say, whichever of them the call computes.
struct Convolution {
  ConvKind kind = ConvKind::forward;
  TensorSpec x, w, y;
  ConvAttributes attributes;
  DType compute = f32;
  bool allow_tf32 = true;
  bool is_reordered = false;  // w and the bias are what cudnnReorderFilterAndBias made
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;

  const TensorSpec& result() const {
    return kind == ConvKind::forward ? y : kind == ConvKind::backward_data ? x : w;
  }
};

// Throws Failure for descriptors that do not go together.
Convolution make_convolution(ConvKind kind, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                             cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y);

Convolution make_convolution(ConvKind kind, const TensorSpec& x, const TensorSpec& w,
                             const cudnnConvolutionStruct& conv, const TensorSpec& y);

// What an algorithm of cuDNN's means here: how much freedom the planner has.
struct ConvStrategy {
  std::int64_t workspace_limit;  // bytes; past it the plan owns what it needs
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

// The convolution's value in its compute type, before alpha and beta. Operands become the inputs
// "x", "w" and "y", whichever the kind reads.
Value add_convolution(Graph& graph, const Convolution& conv);
// The same of operands that are there already: x and w, y and w, or x and y.
Value convolved(Graph& graph, const Convolution& conv, Value a, Value b);

// Memory for all three, in the order of the struct above.
struct ConvMemory {
  const void *x, *w, *y;
};

// Whether a caller's workspace is enough for a plan.
bool fits(const Call& call, const void* workspace, std::size_t bytes);
// The same way within a workspace that was not enough. A misaligned one is as good as none.
ConvStrategy within(ConvStrategy strategy, const void* workspace, std::size_t bytes);

// One way with its plan.
class ConvolutionCall {
 public:
  // result = alpha * convolution + beta * result; null alpha and beta are 1 and 0.
  ConvolutionCall(cudnnHandle_t handle, const Convolution& conv, ConvStrategy strategy,
                  const void* alpha = nullptr, const void* beta = nullptr);
  ConvolutionCall(const ConvolutionCall&) = delete;  // its plan holds pointers to alpha and beta
  ConvolutionCall& operator=(const ConvolutionCall&) = delete;

  const Call& call() const { return call_; }
  void bind(const ConvMemory& memory);
  void run(void* workspace, std::size_t bytes) { call_.run(workspace, bytes); }

 private:
  Call call_;
};

// Runs the way, or what fits into the caller's workspace when that is too small for it.
void run_convolution(cudnnHandle_t handle, const Convolution& conv, ConvStrategy strategy, const void* alpha,
                     const void* beta, const ConvMemory& memory, void* workspace,
                     std::size_t bytes);

}  // namespace ashlar::cudnn

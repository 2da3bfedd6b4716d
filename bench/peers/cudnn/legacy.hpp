// Shared parts of the legacy API's pieces (calls that predate the graph API).
#pragma once

#include "piece.hpp"

namespace ashlar::bench::cudnn {

// An owned cudnnTensorDescriptor_t.
class LegacyForm {
 public:
  LegacyForm(const Library& library, DataType type, const Form& form);
  LegacyForm(const Library& library, const Tensor& tensor)
      : LegacyForm(library, data_type(tensor.dtype), form_of(tensor)) {}
  ~LegacyForm();
  LegacyForm(const LegacyForm&) = delete;
  LegacyForm& operator=(const LegacyForm&) = delete;
  LegacyTensor get() const { return form_; }

 private:
  const Library& library_;
  LegacyTensor form_ = nullptr;
};

// The scaling factors alpha and beta: float, or double for f64.
struct AlphaBeta {
  explicit AlphaBeta(DType dtype) : wide_(dtype == f64) {}
  const void* one() const { return wide_ ? static_cast<const void*>(&kOneWide) : &kOne; }
  const void* zero() const { return wide_ ? static_cast<const void*>(&kZeroWide) : &kZero; }

 private:
  static constexpr float kOne = 1, kZero = 0;
  static constexpr double kOneWide = 1, kZeroWide = 0;
  bool wide_;
};

// Arguments of the functions below.
struct LegacyProblem {
  const Library& library;
  const Subgraph& subgraph;
  Bindings& bindings;
  Fastest& fastest;

  const Tensor& tensor(TensorId id) const { return subgraph.graph.tensor(id); }
};

// --- one per family: considers its calls if they match the nodes. Throws Refused.
void consider_softmax(const LegacyProblem& problem);
void consider_pooling(const LegacyProblem& problem);
void consider_batch_norm(const LegacyProblem& problem);
void consider_movement(const LegacyProblem& problem);
void consider_dropout(const LegacyProblem& problem);

}  // namespace ashlar::bench::cudnn

// cudnnSoftmaxForward, cudnnSoftmaxBackward.
#include "legacy.hpp"

namespace ashlar::bench::cudnn {

namespace {

constexpr int kAccurate = 1, kLog = 2;  // algorithms
constexpr int kInstance = 0, kChannel = 1;

// Equivalent descriptions of a softmax along rows: over C, or over C, H and W.
struct Shape {
  int mode;
  bool along_width;  // the row is W (C = 1), otherwise it is C
};
constexpr Shape kShapes[] = {{kChannel, false}, {kInstance, false}, {kInstance, true}};

Form rows_of(const Tensor& tensor, bool along_width) {
  const std::int64_t columns = tensor.dims[tensor.dims.rank() - 1];
  const std::int64_t rows = element_count(tensor.dims) / columns;
  if (along_width) return {{rows, 1, 1, columns}, {columns, columns, columns, 1}};
  return {{rows, columns, 1, 1}, {columns, 1, 1, 1}};
}

class Softmax : public Piece {
 public:
  Softmax(const LegacyProblem& problem, const Tensor& tensor, bool log, const Shape& shape)
      : library_(problem.library),
        algorithm_(log ? kLog : kAccurate),
        shape_(shape),
        alpha_beta_(tensor.dtype),
        form_(problem.library, data_type(tensor.dtype), rows_of(tensor, shape.along_width)) {}
  std::string description() const override { return "cudnnSoftmax"; }

 protected:
  const Library& library_;
  const int algorithm_;
  const Shape shape_;
  const AlphaBeta alpha_beta_;
  const LegacyForm form_;
};

class LegacySoftmaxForward final : public Softmax {
 public:
  LegacySoftmaxForward(const LegacyProblem& problem, const Node& node, bool log, const Shape& shape)
      : Softmax(problem, problem.tensor(node.inputs[SoftmaxForward::x]), log, shape),
        x_(problem.bindings.at(node.inputs[SoftmaxForward::x])),
        y_(problem.bindings.at(node.outputs[SoftmaxForward::y])) {}
  void run() override {
    library_.check(library_.call().softmax_forward(library_.handle(), algorithm_, shape_.mode,
                                                   alpha_beta_.one(), form_.get(), x_,
                                                   alpha_beta_.zero(), form_.get(), y_),
                   "cudnnSoftmaxForward");
  }

 private:
  const void* x_;
  void* y_;
};

class LegacySoftmaxBackward final : public Softmax {
 public:
  LegacySoftmaxBackward(const LegacyProblem& problem, const Node& node, bool log,
                        const Shape& shape)
      : Softmax(problem, problem.tensor(node.inputs[SoftmaxBackward::y]), log, shape),
        y_(problem.bindings.at(node.inputs[SoftmaxBackward::y])),
        dy_(problem.bindings.at(node.inputs[SoftmaxBackward::dy])),
        dx_(problem.bindings.at(node.outputs[SoftmaxBackward::dx])) {}
  void run() override {
    library_.check(library_.call().softmax_backward(library_.handle(), algorithm_, shape_.mode,
                                                    alpha_beta_.one(), form_.get(), y_, form_.get(),
                                                    dy_, alpha_beta_.zero(), form_.get(), dx_),
                   "cudnnSoftmaxBackward");
  }

 private:
  const void *y_, *dy_;
  void* dx_;
};

bool is_row_major(const Tensor& tensor) {
  return tensor.strides == row_major.strides_for(tensor.dims);
}

}  // namespace

void consider_softmax(const LegacyProblem& problem) {
  if (problem.subgraph.size() != 1) return;
  const Node& node = problem.subgraph.node(0);
  const auto* forward = std::get_if<SoftmaxForward>(&node.op);
  const auto* backward = std::get_if<SoftmaxBackward>(&node.op);
  if (!forward && !backward) return;
  const Functions& call = problem.library.call();
  if (!call.softmax_forward || !call.softmax_backward) return;
  if (node.outputs.size() > 1 && node.outputs[SoftmaxForward::stats] != kNoTensor)
    throw Refused("cudnnSoftmaxForward has no statistics output");
  const Tensor &in = problem.tensor(node.inputs[0]), &out = problem.tensor(node.outputs[0]);
  const SoftmaxAttributes& op =
      forward ? static_cast<const SoftmaxAttributes&>(*forward) : *backward;
  const std::int64_t last = in.dims.rank() - 1;
  if ((op.axis != -1 && op.axis != last) || !is_row_major(in) || !is_row_major(out) ||
      in.dtype != out.dtype)
    throw Refused("cudnnSoftmax of strided rows or of several dtypes is not translated");
  for (const Shape& shape : kShapes) {
    if (forward)
      problem.fastest.consider(
          std::make_unique<LegacySoftmaxForward>(problem, node, op.log, shape));
    else
      problem.fastest.consider(
          std::make_unique<LegacySoftmaxBackward>(problem, node, op.log, shape));
  }
}

}  // namespace ashlar::bench::cudnn

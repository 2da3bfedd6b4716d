// cudnnPoolingForward, cudnnPoolingBackward.
#include "legacy.hpp"

namespace ashlar::bench::cudnn {

namespace {

int mode_number(ResampleMode mode) {
  switch (mode) {
    case ResampleMode::maxpool: return 0;
    case ResampleMode::avgpool_include_padding: return 1;
    case ResampleMode::avgpool_exclude_padding: return 2;
    default: throw Refused("cudnnPooling does not interpolate");
  }
}

std::vector<int> integers(const Dims& values, int axes, const Dims& otherwise) {
  std::vector<int> result;
  for (int axis = 0; axis < axes; ++axis)
    result.push_back(static_cast<int>(!values.empty()      ? values[axis]
                                      : !otherwise.empty() ? otherwise[axis]
                                                           : 0));
  return result;
}

class Pooling : public Piece {
 public:
  Pooling(const Library& library, const ResampleAttributes& op) : library_(library) {
    if (op.window.rank() < 2 || op.post_padding.value_or(op.padding) != op.padding)
      throw Refused("cudnnPooling needs symmetric padding and two or three spatial dims");
    library.check(library.call().create_pooling(&pooling_), "creating a pooling descriptor");
    const int axes = op.window.rank();
    const std::vector<int> window = integers(op.window, axes, {}),
                           padding = integers(op.padding, axes, {}),
                           stride = integers(op.stride, axes, op.window);
    library.check(library.call().set_pooling(pooling_, mode_number(op.mode), NanPropagation::no,
                                             axes, window.data(), padding.data(), stride.data()),
                  "describing pooling");
  }
  ~Pooling() override { library_.call().destroy_pooling(pooling_); }
  std::string description() const override { return "cudnnPooling"; }

 protected:
  void forward(const LegacyForm& x_form, const void* x, const LegacyForm& y_form, void* y) {
    const AlphaBeta alpha_beta(f32);
    library_.check(
        library_.call().pooling_forward(library_.handle(), pooling_, alpha_beta.one(), x_form.get(),
                                        x, alpha_beta.zero(), y_form.get(), y),
        "cudnnPoolingForward");
  }
  const Library& library_;
  LegacyPooling pooling_ = nullptr;
};

class LegacyPoolingForward final : public Pooling {
 public:
  LegacyPoolingForward(const LegacyProblem& problem, const Node& node, const ResampleForward& op)
      : Pooling(problem.library, op),
        x_form_(problem.library, problem.tensor(node.inputs[ResampleForward::x])),
        y_form_(problem.library, problem.tensor(node.outputs[ResampleForward::y])),
        x_(problem.bindings.at(node.inputs[ResampleForward::x])),
        y_(problem.bindings.at(node.outputs[ResampleForward::y])) {}
  void run() override { forward(x_form_, x_, y_form_, y_); }

 private:
  const LegacyForm x_form_, y_form_;
  const void* x_;
  void* y_;
};

// Reads x and y too. y is the forward result, computed here once. Average pooling does not depend
// on x: if the graph has no x, any memory of its size serves.
class LegacyPoolingBackward final : public Pooling {
 public:
  LegacyPoolingBackward(const LegacyProblem& problem, const Node& node, const ResampleBackward& op,
                        const Tensor& x, const Tensor& dy, const void* x_data)
      : Pooling(problem.library, op),
        x_form_(problem.library, x),
        y_form_(problem.library, dy),
        y_(problem.library.device(), byte_size(dy)),
        x_(x_data),
        dy_(problem.bindings.at(node.inputs[ResampleBackward::dy])),
        dx_(problem.bindings.at(node.outputs[ResampleBackward::dx])) {
    forward(x_form_, x_, y_form_, y_.data());
  }
  void run() override {
    const AlphaBeta alpha_beta(f32);
    library_.check(
        library_.call().pooling_backward(library_.handle(), pooling_, alpha_beta.one(),
                                         y_form_.get(), y_.data(), y_form_.get(), dy_,
                                         x_form_.get(), x_, alpha_beta.zero(), x_form_.get(), dx_),
        "cudnnPoolingBackward");
  }

 private:
  const LegacyForm x_form_, y_form_;
  const ashlar::Memory y_;
  const void *x_, *dy_;
  void* dx_;
};

}  // namespace

void consider_pooling(const LegacyProblem& problem) {
  if (problem.subgraph.size() != 1) return;
  const Node& node = problem.subgraph.node(0);
  const Functions& call = problem.library.call();
  if (!call.create_pooling || !call.pooling_forward || !call.pooling_backward) return;
  if (const auto* op = std::get_if<ResampleForward>(&node.op)) {
    if (node.outputs.size() > 1 && node.outputs[ResampleForward::index] != kNoTensor)
      throw Refused("cudnnPoolingForward has no index output");
    problem.fastest.consider(std::make_unique<LegacyPoolingForward>(problem, node, *op));
  }
  if (const auto* op = std::get_if<ResampleBackward>(&node.op)) {
    const TensorId x =
        node.inputs.size() > ResampleBackward::x ? node.inputs[ResampleBackward::x] : kNoTensor;
    if (x == kNoTensor && op->mode == ResampleMode::maxpool)
      throw Refused("cudnnPoolingBackward needs x, the graph has an index");
    const TensorId dx = node.outputs[ResampleBackward::dx];
    problem.fastest.consider(std::make_unique<LegacyPoolingBackward>(
        problem, node, *op, problem.tensor(dx), problem.tensor(node.inputs[ResampleBackward::dy]),
        problem.bindings.at(x == kNoTensor ? dx : x)));
  }
}

}  // namespace ashlar::bench::cudnn

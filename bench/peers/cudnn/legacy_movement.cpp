// cudnnTransformTensor, for copies, transposes, slices and concatenations.
#include "legacy.hpp"

namespace ashlar::bench::cudnn {

namespace {

// One strided copy.
struct Copy {
  Tensor from, to;                      // dims and strides of both sides
  std::int64_t from_offset, to_offset;  // elements
  TensorId source, target;
};

std::vector<Copy> copies_of(const LegacyProblem& problem) {
  const Node& node = problem.subgraph.node(0);
  if (node.inputs.empty() || node.inputs[0] == kNoTensor) return {};
  const Tensor &x = problem.tensor(node.inputs[0]), &y = problem.tensor(node.outputs[0]);
  Copy copy{x, y, 0, 0, node.inputs[0], node.outputs[0]};
  if (const auto* op = std::get_if<Pointwise>(&node.op)) {
    if (op->mode != PointwiseMode::identity || op->alpha1 != 1 || x.dims != y.dims) return {};
    return {copy};
  }
  if (const auto* op = std::get_if<Transpose>(&node.op)) {
    for (int axis = 0; axis < y.dims.rank(); ++axis) {
      copy.from.dims[axis] = y.dims[axis];
      copy.from.strides[axis] = x.strides[static_cast<int>(op->permutation[axis])];
    }
    return {copy};
  }
  if (const auto* op = std::get_if<Slice>(&node.op)) {
    for (int axis = 0; axis < y.dims.rank(); ++axis) {
      copy.from_offset += op->start[axis] * x.strides[axis];
      copy.from.strides[axis] *= op->step.empty() ? 1 : op->step[axis];
    }
    copy.from.dims = y.dims;
    return {copy};
  }
  if (const auto* op = std::get_if<Concat>(&node.op)) {
    const int axis = static_cast<int>(op->axis);
    std::vector<Copy> copies;
    std::int64_t at = 0;
    for (const TensorId input : node.inputs) {
      const Tensor& part = problem.tensor(input);
      Copy& one =
          copies.emplace_back(Copy{part, y, 0, at * y.strides[axis], input, node.outputs[0]});
      one.to.dims = part.dims;
      at += part.dims[axis];
    }
    return copies;
  }
  return {};
}

// At least four axes.
Form widened(const Tensor& tensor) {
  Form form{{tensor.dims.begin(), tensor.dims.end()},
            {tensor.strides.begin(), tensor.strides.end()}};
  while (form.dims.size() < 4) {
    form.dims.insert(form.dims.begin(), 1);
    form.strides.insert(form.strides.begin(), form.dims[1] * form.strides[0]);
  }
  return form;
}

class Transform final : public Piece {
 public:
  Transform(const LegacyProblem& problem, const std::vector<Copy>& copies)
      : library_(problem.library), alpha_beta_(copies[0].from.dtype) {
    for (const Copy& copy : copies) {
      const std::int64_t width = bit_width(copy.from.dtype) / 8;
      moves_.push_back(
          {std::make_unique<LegacyForm>(library_, data_type(copy.from.dtype), widened(copy.from)),
           std::make_unique<LegacyForm>(library_, data_type(copy.to.dtype), widened(copy.to)),
           at(problem, copy.source, copy.from_offset * width),
           at(problem, copy.target, copy.to_offset * width)});
    }
  }
  void run() override {
    for (const Move& move : moves_)
      library_.check(
          library_.call().transform(library_.handle(), alpha_beta_.one(), move.from->get(),
                                    move.source, alpha_beta_.zero(), move.to->get(), move.target),
          "cudnnTransformTensor");
  }
  std::string description() const override { return "cudnnTransformTensor"; }

 private:
  struct Move {
    std::unique_ptr<LegacyForm> from, to;
    const void* source;
    void* target;
  };
  static std::byte* at(const LegacyProblem& problem, TensorId tensor, std::int64_t bytes) {
    return static_cast<std::byte*>(problem.bindings.at(tensor)) + bytes;
  }
  const Library& library_;
  const AlphaBeta alpha_beta_;
  std::vector<Move> moves_;
};

}  // namespace

void consider_movement(const LegacyProblem& problem) {
  if (problem.subgraph.size() != 1 || !problem.library.call().transform) return;
  const std::vector<Copy> copies = copies_of(problem);
  if (copies.empty()) return;
  for (const Copy& copy : copies)
    if (copy.from.dtype != copy.to.dtype || bit_width(copy.from.dtype) < 8)
      throw Refused("cudnnTransformTensor needs x and y of one dtype");
  problem.fastest.consider(std::make_unique<Transform>(problem, copies));
}

}  // namespace ashlar::bench::cudnn

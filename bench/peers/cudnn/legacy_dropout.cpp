// cudnnDropoutForward. Its random numbers differ from ours.
#include "legacy.hpp"

namespace ashlar::bench::cudnn {

namespace {

class Dropout final : public Piece {
 public:
  Dropout(const LegacyProblem& problem, const Node& node, const DropoutForward& op)
      : library_(problem.library),
        form_(library_, problem.tensor(node.inputs[DropoutForward::x])),
        x_(problem.bindings.at(node.inputs[DropoutForward::x])),
        y_(problem.bindings.at(node.outputs[DropoutForward::y])) {
    const Functions& call = library_.call();
    std::size_t states = 0, reserve = 0;
    library_.check(call.dropout_state_bytes(library_.handle(), &states),
                   "asking for the states of dropout");
    library_.check(call.dropout_reserve_bytes(form_.get(), &reserve),
                   "asking for the reserve of dropout");
    states_ =
        std::make_unique<ashlar::Memory>(library_.device(), static_cast<std::int64_t>(states));
    reserve_ =
        std::make_unique<ashlar::Memory>(library_.device(), static_cast<std::int64_t>(reserve));
    library_.check(call.create_dropout(&dropout_), "creating a dropout descriptor");
    library_.check(call.set_dropout(dropout_, library_.handle(), static_cast<float>(op.probability),
                                    states_->data(), states, static_cast<unsigned>(op.seed)),
                   "describing dropout");
  }
  ~Dropout() override {
    if (dropout_) library_.call().destroy_dropout(dropout_);
  }
  void run() override {
    library_.check(library_.call().dropout_forward(library_.handle(), dropout_, form_.get(), x_,
                                                   form_.get(), y_, reserve_->data(),
                                                   static_cast<std::size_t>(reserve_->bytes())),
                   "cudnnDropoutForward");
  }
  std::string description() const override { return "cudnnDropoutForward"; }

 private:
  const Library& library_;
  const LegacyForm form_;
  const void* x_;
  void* y_;
  std::unique_ptr<ashlar::Memory> states_, reserve_;
  LegacyDropout dropout_ = nullptr;
};

}  // namespace

void consider_dropout(const LegacyProblem& problem) {
  const Functions& call = problem.library.call();
  if (problem.subgraph.size() != 1 || !call.create_dropout || !call.dropout_forward) return;
  const Node& node = problem.subgraph.node(0);
  const auto* op = std::get_if<DropoutForward>(&node.op);
  if (!op) return;
  for (std::size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kNoTensor) throw Refused("cudnnDropoutForward has no mask output");
  if (problem.tensor(node.inputs[0]).dtype != problem.tensor(node.outputs[0]).dtype)
    throw Refused("cudnnDropoutForward needs x and y of one dtype");
  problem.fastest.consider(std::make_unique<Dropout>(problem, node, *op));
}

}  // namespace ashlar::bench::cudnn

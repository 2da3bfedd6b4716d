// cudnnBatchNormalizationForwardTrainingEx with its fused add and ReLU, and
// cudnnBatchNormalizationBackwardEx.
#include "legacy.hpp"

namespace ashlar::bench::cudnn {

namespace {

constexpr int kSpatial = 1, kSpatialPersistent = 2;  // modes
constexpr int kPlain = 0, kActivation = 1, kAddActivation = 2;
constexpr int kRelu = 1;  // of activations

class Activation {
 public:
  explicit Activation(const Library& library) : library_(library) {
    library.check(library.call().create_activation(&activation_), "creating an activation");
    library.check(library.call().set_activation(activation_, kRelu, NanPropagation::no, 0),
                  "describing an activation");
  }
  ~Activation() { library_.call().destroy_activation(activation_); }
  Activation(const Activation&) = delete;
  Activation& operator=(const Activation&) = delete;
  LegacyActivation get() const { return activation_; }

 private:
  const Library& library_;
  LegacyActivation activation_ = nullptr;
};

// Batch norm, optionally + z, optionally ReLU.
struct Pattern {
  const Node* norm = nullptr;
  TensorId z = kNoTensor;
  TensorId y = kNoTensor;
  int operations = kPlain;
};

// Empty if the nodes do not match.
Pattern pattern_of(const Subgraph& subgraph) {
  Pattern pattern;
  const auto* norm = std::get_if<NormForward>(&subgraph.node(0).op);
  if (!norm || norm->mode != NormMode::batch || norm->phase != NormPhase::training) return {};
  pattern.norm = &subgraph.node(0);
  pattern.y = pattern.norm->outputs[NormForward::y];
  for (std::size_t i = 1; i < subgraph.size(); ++i) {
    const Node& node = subgraph.node(i);
    const auto* op = std::get_if<Pointwise>(&node.op);
    if (!op || !subgraph.is_internal(pattern.y)) return {};
    const bool add = op->mode == PointwiseMode::add && op->alpha1 == 1 && op->alpha2 == 1;
    if (add && i == 1 && subgraph.size() == 3)
      pattern.z = node.inputs[node.inputs[0] == pattern.y ? 1 : 0];
    else if (op->mode == PointwiseMode::relu_fwd && op->relu_lower_clip == 0 &&
             op->relu_lower_slope == 0 && i + 1 == subgraph.size())
      pattern.operations = pattern.z == kNoTensor ? kActivation : kAddActivation;
    else
      return {};
    pattern.y = node.outputs[Pointwise::y];
  }
  return pattern;
}

Form channels_of(const Tensor& x) {
  Form form{std::vector<std::int64_t>(static_cast<std::size_t>(x.dims.rank()), 1), {}};
  form.dims[1] = x.dims[1];
  form.strides = std::vector<std::int64_t>(form.dims.size(), 1);
  form.strides[0] = x.dims[1];
  return form;
}

void require_f32_parameters(const LegacyProblem& problem, const std::vector<TensorId>& ids) {
  for (const TensorId id : ids)
    if (id != kNoTensor && problem.tensor(id).dtype != f32)
      throw Refused("cudnnBatchNormalization needs scale, bias and statistics in f32");
}

TensorId slot(const std::vector<TensorId>& ids, int at) {
  return static_cast<std::size_t>(at) < ids.size() ? ids[static_cast<std::size_t>(at)] : kNoTensor;
}

class LegacyBatchNormForward final : public Piece {
 public:
  LegacyBatchNormForward(const LegacyProblem& problem, const Pattern& pattern, int mode)
      : library_(problem.library),
        mode_(mode),
        operations_(pattern.operations),
        op_(std::get<NormForward>(pattern.norm->op)),
        form_(library_, problem.tensor(pattern.norm->inputs[NormForward::x])),
        channels_(library_, DataType::f32,
                  channels_of(problem.tensor(pattern.norm->inputs[NormForward::x]))),
        activation_(library_) {
    const auto in = [&](int at) { return pointer(problem, slot(pattern.norm->inputs, at)); };
    const auto out = [&](int at) { return pointer(problem, slot(pattern.norm->outputs, at)); };
    x_ = in(NormForward::x);
    scale_ = in(NormForward::scale);
    bias_ = in(NormForward::bias);
    z_ = pointer(problem, pattern.z);
    y_ = pointer(problem, pattern.y);
    mean_ = out(NormForward::out_mean);
    inv_variance_ = out(NormForward::out_inv_variance);
    next_mean_ = out(NormForward::next_running_mean);
    next_variance_ = out(NormForward::next_running_var);
    const Functions& call = library_.call();
    std::size_t workspace = 0, reserve = 0;
    library_.check(call.batch_norm_forward_workspace(library_.handle(), mode_, operations_,
                                                     form_.get(), z_form(), form_.get(),
                                                     channels_.get(), activation(), &workspace),
                   "asking for the workspace of batch norm");
    library_.check(call.batch_norm_reserve(library_.handle(), mode_, operations_, activation(),
                                           form_.get(), &reserve),
                   "asking for the reserve of batch norm");
    workspace_ =
        std::make_unique<ashlar::Memory>(library_.device(), static_cast<std::int64_t>(workspace));
    reserve_ =
        std::make_unique<ashlar::Memory>(library_.device(), static_cast<std::int64_t>(reserve));
  }

  void run() override {
    const AlphaBeta alpha_beta(f32);
    library_.check(
        library_.call().batch_norm_forward(
            library_.handle(), mode_, operations_, alpha_beta.one(), alpha_beta.zero(), form_.get(),
            x_, z_form(), z_, form_.get(), y_, channels_.get(), scale_, bias_, op_.momentum,
            next_mean_, next_variance_, op_.epsilon, mean_, inv_variance_, activation(),
            workspace_->data(), static_cast<std::size_t>(workspace_->bytes()), reserve_->data(),
            static_cast<std::size_t>(reserve_->bytes())),
        "cudnnBatchNormalizationForwardTrainingEx");
  }
  std::string description() const override {
    return mode_ == kSpatialPersistent ? "cudnnBatchNormalization, persistent"
                                       : "cudnnBatchNormalization";
  }

 private:
  static void* pointer(const LegacyProblem& problem, TensorId id) {
    return id == kNoTensor ? nullptr : problem.bindings.at(id);
  }
  LegacyTensor z_form() const { return operations_ == kAddActivation ? form_.get() : nullptr; }
  LegacyActivation activation() const {
    return operations_ == kPlain ? nullptr : activation_.get();
  }

  const Library& library_;
  const int mode_, operations_;
  const NormForward op_;
  const LegacyForm form_, channels_;
  const Activation activation_;
  void *x_, *scale_, *bias_, *z_, *y_, *mean_, *inv_variance_, *next_mean_, *next_variance_;
  std::unique_ptr<ashlar::Memory> workspace_, reserve_;
};

class LegacyBatchNormBackward final : public Piece {
 public:
  LegacyBatchNormBackward(const LegacyProblem& problem, const Node& node, int mode)
      : library_(problem.library),
        mode_(mode),
        op_(std::get<NormBackward>(node.op)),
        form_(library_, problem.tensor(node.inputs[NormBackward::x])),
        channels_(library_, DataType::f32,
                  channels_of(problem.tensor(node.inputs[NormBackward::x]))) {
    const auto in = [&](int at) { return problem.bindings.at(slot(node.inputs, at)); };
    const auto out = [&](int at) { return problem.bindings.at(slot(node.outputs, at)); };
    x_ = in(NormBackward::x);
    dy_ = in(NormBackward::dy);
    scale_ = in(NormBackward::scale);
    mean_ = in(NormBackward::mean);
    inv_variance_ = in(NormBackward::inv_variance);
    dx_ = out(NormBackward::dx);
    dscale_ = out(NormBackward::dscale);
    dbias_ = out(NormBackward::dbias);
    std::size_t workspace = 0, reserve = 0;
    const Functions& call = library_.call();
    library_.check(call.batch_norm_backward_workspace(library_.handle(), mode_, kPlain, form_.get(),
                                                      nullptr, form_.get(), nullptr, form_.get(),
                                                      channels_.get(), nullptr, &workspace),
                   "asking for the workspace of batch norm");
    library_.check(
        call.batch_norm_reserve(library_.handle(), mode_, kPlain, nullptr, form_.get(), &reserve),
        "asking for the reserve of batch norm");
    workspace_ =
        std::make_unique<ashlar::Memory>(library_.device(), static_cast<std::int64_t>(workspace));
    reserve_ =
        std::make_unique<ashlar::Memory>(library_.device(), static_cast<std::int64_t>(reserve));
  }

  void run() override {
    const AlphaBeta alpha_beta(f32);
    library_.check(library_.call().batch_norm_backward(
                       library_.handle(), mode_, kPlain, alpha_beta.one(), alpha_beta.zero(),
                       alpha_beta.one(), alpha_beta.zero(), form_.get(), x_, nullptr, nullptr,
                       form_.get(), dy_, nullptr, nullptr, form_.get(), dx_, channels_.get(),
                       scale_, nullptr, dscale_, dbias_, op_.epsilon, mean_, inv_variance_, nullptr,
                       workspace_->data(), static_cast<std::size_t>(workspace_->bytes()),
                       reserve_->data(), static_cast<std::size_t>(reserve_->bytes())),
                   "cudnnBatchNormalizationBackwardEx");
  }
  std::string description() const override {
    return mode_ == kSpatialPersistent ? "cudnnBatchNormalization, persistent"
                                       : "cudnnBatchNormalization";
  }

 private:
  const Library& library_;
  const int mode_;
  const NormBackward op_;
  const LegacyForm form_, channels_;
  void *x_, *dy_, *scale_, *mean_, *inv_variance_, *dx_, *dscale_, *dbias_;
  std::unique_ptr<ashlar::Memory> workspace_, reserve_;
};

// Both modes; a refusal of one does not affect the other.
template <class Make>
void consider_modes(const LegacyProblem& problem, const Make& make) {
  for (const int mode : {kSpatialPersistent, kSpatial}) {
    try {
      problem.fastest.consider(make(mode));
    } catch (const Refused& refusal) {
      problem.fastest.refused(refusal.what());
    }
  }
}

}  // namespace

void consider_batch_norm(const LegacyProblem& problem) {
  const Functions& call = problem.library.call();
  if (!call.batch_norm_forward || !call.batch_norm_backward || !call.create_activation) return;
  const Node& node = problem.subgraph.node(0);
  if (const Pattern pattern = pattern_of(problem.subgraph); pattern.norm) {
    const std::vector<TensorId>& in = pattern.norm->inputs;
    require_f32_parameters(problem, {slot(in, NormForward::scale), slot(in, NormForward::bias)});
    if (slot(in, NormForward::running_mean) != kNoTensor)
      throw Refused("cudnnBatchNormalization updates running statistics in place");
    if (slot(in, NormForward::scale) == kNoTensor || slot(in, NormForward::bias) == kNoTensor)
      throw Refused("cudnnBatchNormalization needs scale and bias");
    consider_modes(problem, [&](int mode) {
      return std::make_unique<LegacyBatchNormForward>(problem, pattern, mode);
    });
  }
  const auto* backward = std::get_if<NormBackward>(&node.op);
  if (problem.subgraph.size() == 1 && backward && backward->mode == NormMode::batch) {
    for (const int at : {NormBackward::scale, NormBackward::mean, NormBackward::inv_variance})
      if (slot(node.inputs, at) == kNoTensor)
        throw Refused(
            "cudnnBatchNormalizationBackwardEx without scale or statistics is not translated");
    for (const int at : {NormBackward::dscale, NormBackward::dbias})
      if (slot(node.outputs, at) == kNoTensor)
        throw Refused(
            "cudnnBatchNormalizationBackwardEx computes all gradients, the graph has fewer");
    require_f32_parameters(problem,
                           {node.inputs[NormBackward::scale], node.outputs[NormBackward::dscale],
                            node.outputs[NormBackward::dbias]});
    consider_modes(problem, [&](int mode) {
      return std::make_unique<LegacyBatchNormBackward>(problem, node, mode);
    });
  }
}

}  // namespace ashlar::bench::cudnn

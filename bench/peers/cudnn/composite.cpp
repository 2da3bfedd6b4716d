// Softmax and dropout as compositions of backend operations; random numbers.
#include "operation_graph.hpp"

namespace ashlar::bench::cudnn {

namespace {

// The tensor reduced along an axis (extent 1), packed with the same order of dims.
Form reduced(const Tensor& tensor, std::int64_t axis) {
  Tensor one = tensor;
  const int at = static_cast<int>(axis < 0 ? axis + tensor.dims.rank() : axis);
  one.dims[at] = 1;
  one.strides = packed_strides_like(one.dims, tensor.strides);
  return form_of(one);
}

const Descriptor& random_numbers(OperationGraph& graph, const Rng& op, const Descriptor& y) {
  Descriptor& form = graph.make(DescriptorType::rng);
  form.set(Attribute::rng_distribution, ValueType::rng_distribution,
           static_cast<int>(op.distribution));
  switch (op.distribution) {
    case RngDistribution::bernoulli:
      form.set(Attribute::rng_bernoulli_probability, op.probability);
      break;
    case RngDistribution::uniform:
      form.set(Attribute::rng_uniform_minimum, op.minimum);
      form.set(Attribute::rng_uniform_maximum, op.maximum);
      break;
    case RngDistribution::normal:
      form.set(Attribute::rng_normal_mean, op.mean);
      form.set(Attribute::rng_normal_deviation, op.standard_deviation);
      break;
  }
  form.finalize();
  Descriptor& operation = graph.operation(DescriptorType::operation_rng);
  operation.set(Attribute::operation_rng_rng, form);
  operation.set(Attribute::operation_rng_y, y);
  operation.set(Attribute::operation_rng_seed, op.seed);
  return y;
}

}  // namespace

void translate(const SoftmaxForward& op, const Node& node, OperationGraph& graph) {
  const TensorId stats = node.outputs.size() > 1 ? node.outputs[SoftmaxForward::stats] : kNoTensor;
  if (stats != kNoTensor || op.log)
    throw Refused("log-softmax and softmax with statistics are not composed");
  const Tensor& form = graph.subgraph().graph.tensor(node.inputs[SoftmaxForward::x]);
  const Descriptor& x = graph.tensor(node.inputs[SoftmaxForward::x]);
  const Form row = reduced(form, op.axis), whole = form_of(form);
  const Descriptor& most = graph.temporary(row);
  add_reduction(graph, ReductionNumber::max, x, most);
  const Descriptor& shifted = graph.temporary(whole);
  add_pointwise(graph, PointwiseNumber::sub, x, &most, shifted);
  const Descriptor& powers = graph.temporary(whole);
  add_pointwise(graph, PointwiseNumber::exp, shifted, nullptr, powers);
  const Descriptor& sum = graph.temporary(row);
  add_reduction(graph, ReductionNumber::add, powers, sum);
  add_pointwise(graph, PointwiseNumber::div, powers, &sum,
                graph.tensor(node.outputs[SoftmaxForward::y]));
}

// dx = y * (dy - sum(y * dy))
void translate(const SoftmaxBackward& op, const Node& node, OperationGraph& graph) {
  if (op.log) throw Refused("the gradient of log-softmax is not composed");
  const Tensor& form = graph.subgraph().graph.tensor(node.inputs[SoftmaxBackward::y]);
  const Descriptor &y = graph.tensor(node.inputs[SoftmaxBackward::y]),
                   &dy = graph.tensor(node.inputs[SoftmaxBackward::dy]);
  const Form whole = form_of(form);
  const Descriptor& products = graph.temporary(whole);
  add_pointwise(graph, PointwiseNumber::mul, y, &dy, products);
  const Descriptor& sum = graph.temporary(reduced(form, op.axis));
  add_reduction(graph, ReductionNumber::add, products, sum);
  const Descriptor& difference = graph.temporary(whole);
  add_pointwise(graph, PointwiseNumber::sub, dy, &sum, difference);
  add_pointwise(graph, PointwiseNumber::mul, difference, &y,
                graph.tensor(node.outputs[SoftmaxBackward::dx]));
}

void translate(const Rng& op, const Node& node, OperationGraph& graph) {
  for (const TensorId input : node.inputs)
    if (input != kNoTensor) throw Refused("a seed in memory is not translated");
  random_numbers(graph, op, graph.tensor(node.outputs[Rng::y]));
}

// The mask, x * mask, and that times 1 / (1 - p).
void translate(const DropoutForward& op, const Node& node, OperationGraph& graph) {
  for (std::size_t i = 1; i < node.inputs.size(); ++i)
    if (node.inputs[i] != kNoTensor) throw Refused("a seed in memory is not translated");
  for (std::size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kNoTensor) throw Refused("dropout with a mask output is not composed");
  const Form whole = form_of(graph.subgraph().graph.tensor(node.inputs[DropoutForward::x]));
  Rng keep;
  keep.probability = 1 - op.probability;
  keep.seed = op.seed;
  const Descriptor& mask = random_numbers(graph, keep, graph.temporary(whole));
  const Descriptor& kept = graph.temporary(whole);
  add_pointwise(graph, PointwiseNumber::mul, graph.tensor(node.inputs[DropoutForward::x]), &mask,
                kept);
  const Descriptor& scale =
      graph.number(1 / (1 - op.probability), DataType::f32, whole.dims.size());
  add_pointwise(graph, PointwiseNumber::mul, kept, &scale,
                graph.tensor(node.outputs[DropoutForward::y]));
}

void translate(const Concat& op, const Node& node, OperationGraph& graph) {
  std::vector<const Descriptor*> inputs;
  for (const TensorId input : node.inputs) inputs.push_back(&graph.tensor(input));
  const Descriptor& output = graph.tensor(node.outputs[Concat::y]);
  Descriptor& operation = graph.operation(DescriptorType::operation_concat);
  operation.set(Attribute::concat_axis, op.axis);
  operation.set(Attribute::concat_inputs, std::span<const Descriptor* const>(inputs));
  operation.set(Attribute::concat_output, output);
}

void translate(const Reshape&, const Node& node, OperationGraph& graph) {
  Descriptor& operation = graph.operation(DescriptorType::operation_reshape);
  operation.set(Attribute::reshape_x, graph.tensor(node.inputs[Reshape::x]));
  operation.set(Attribute::reshape_y, graph.tensor(node.outputs[Reshape::y]));
}

}  // namespace ashlar::bench::cudnn

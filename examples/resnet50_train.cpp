// One ResNet-50 training step as one graph: convolutions with batch norm, cross-entropy, the
// gradients of all parameters and SGD with momentum, channels last. Without arguments it takes 20
// steps on four small images; `full` takes one step on 8 images of 224 x 224.
#include <ashlar/ashlar.hpp>
#include <chrono>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "training_memory.hpp"

namespace al = ashlar;

namespace {

struct Shape {
  std::int64_t images, extent, classes;
};
constexpr Shape kSmall = {4, 64, 10};
constexpr Shape kFull = {8, 224, 1000};

class TrainingStep {
 public:
  explicit TrainingStep(const Shape& shape) {
    al::Value x =
        g_.input("x", {shape.images, 3, shape.extent, shape.extent}, al::f32, al::channels_last);
    x = relu(norm(conv(x, "stem", 64, 7, 2), "stem"));
    x = g_.resample(x, {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    constexpr int kBlocks[] = {3, 4, 6, 3};
    for (int stage = 0; stage < 4; ++stage)
      for (int block = 0; block < kBlocks[stage]; ++block) {
        const std::string name = "s" + std::to_string(stage) + "b" + std::to_string(block);
        x = bottleneck(x, name, std::int64_t{64} << stage, stage > 0 && block == 0 ? 2 : 1);
      }
    const al::Value pooled = g_.reduce(x, al::ReductionMode::avg, {2, 3});
    const al::Value rows = g_.reshape(pooled, {shape.images, 2048});
    const al::Value w = parameter("classifier.w", {2048, shape.classes});
    const al::Value logits = g_.matmul(rows, w) + parameter("classifier.b", {shape.classes});
    using al::CrossEntropyForward;
    CrossEntropyForward op;
    op.label_smoothing = 0.1;
    op.mean = true;
    const al::Value loss = g_.apply(
        op, {{CrossEntropyForward::x, logits},
             {CrossEntropyForward::target, g_.input("target", {shape.images, 1}, al::i32)}});
    g_.output("loss", loss);
    add_sgd(al::gradients(g_, std::array{loss}, parameters_));
  }
  const al::Graph& graph() const { return g_; }
  const std::vector<al::Value>& parameters() const { return parameters_; }

 private:
  al::Value parameter(const std::string& name, const al::Dims& dims,
                      const al::Layout& layout = al::row_major) {
    parameters_.push_back(g_.input(name, dims, al::f32, layout));
    return parameters_.back();
  }

  al::Value conv(al::Value x, const std::string& name, std::int64_t filters, std::int64_t window,
                 std::int64_t stride) {
    const al::Value w =
        parameter(name + ".w", {filters, x.dims()[1], window, window}, al::channels_last);
    const std::int64_t padding = window / 2;
    return g_.conv(x, w, {.padding = {padding, padding}, .stride = {stride, stride}});
  }

  // Batch norm in training; updates the running statistics.
  al::Value norm(al::Value x, const std::string& name) {
    const al::Dims dims = {1, x.dims()[1], 1, 1};
    al::NormForward op;
    op.mode = al::NormMode::batch;
    const al::NormResults results =
        g_.norm(x, op,
                {.scale = parameter(name + ".scale", dims),
                 .bias = parameter(name + ".bias", dims),
                 .running_mean = g_.input(name + ".mean", dims, al::f32),
                 .running_var = g_.input(name + ".var", dims, al::f32)});
    g_.output(name + ".mean.next", results.next_running_mean);
    g_.output(name + ".var.next", results.next_running_var);
    return results.y;
  }

  // 1x1, 3x3, 1x1 with four times the channels, and a shortcut.
  al::Value bottleneck(al::Value x, const std::string& name, std::int64_t width,
                       std::int64_t stride) {
    al::Value y = relu(norm(conv(x, name + ".1", width, 1, 1), name + ".1"));
    y = relu(norm(conv(y, name + ".2", width, 3, stride), name + ".2"));
    y = norm(conv(y, name + ".3", 4 * width, 1, 1), name + ".3");
    if (x.dims() != y.dims())
      x = norm(conv(x, name + ".short", 4 * width, 1, stride), name + ".short");
    return relu(y + x);
  }

  // p, velocity -> p.next, velocity.next
  void add_sgd(const std::vector<al::Value>& gradients) {
    constexpr double kMomentum = 0.9, kDecay = 1e-4;
    const al::Value rate = g_.scalar("rate");
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const al::Value p = parameters_[i];
      const std::string name = p.tensor().name;
      const al::Value velocity =
          g_.input(name + ".velocity", p.dims(), al::f32, p.tensor().strides);
      const al::Value next = velocity * kMomentum + gradients[i] + p * kDecay;
      g_.output(name + ".velocity.next", next);
      g_.output(name + ".next", p - rate * next);
    }
  }

  al::Graph g_{"resnet50_training_step"};
  std::vector<al::Value> parameters_;
};

}  // namespace

int main(int argc, char** argv) {
  auto [full, options] = read_arguments(argc, argv);
  const Shape shape = full ? kFull : kSmall;
  const TrainingStep step(shape);
  const al::Graph& g = step.graph();
  print_planning(g);
  options.in_place = updates_in_place(g);
  const al::Plan plan = al::compile(g, al::Device::cpu(), options);
  std::cout << "workspace " << plan.workspace_size() / 1000000 << " MB\n";

  TrainingMemory memory(g, plan);
  std::uint64_t seed = 0;
  for (const al::TensorId id : g.bound_tensors()) {
    const al::Tensor& tensor = g.tensor(id);
    if (tensor.kind != al::TensorKind::input || tensor.dtype != al::f32) continue;
    double centre = 0, spread = 0;  // biases, running means, velocities
    if (tensor.name.ends_with(".scale") || tensor.name.ends_with(".var")) centre = 1;
    if (tensor.name == "x") spread = 1;
    if (tensor.name == "classifier.w")
      spread = 0.02;
    else if (tensor.name.ends_with(".w"))  // of the inputs of one result
      spread = std::sqrt(6.0 * static_cast<double>(tensor.dims[0]) /
                         static_cast<double>(al::element_count(tensor.dims)));
    al::fill_random(tensor, memory.data(tensor.name), ++seed, centre - spread, centre + spread);
  }
  for (std::int64_t i = 0; i < shape.images; ++i)
    memory.as<std::int32_t>("target")[i] = static_cast<std::int32_t>(3 * i % shape.classes);

  float first = 0, loss = 0;
  const int steps = full ? 1 : 20;
  memory.set("rate", 0.001F);
  for (int n = 1; n <= steps; ++n) {
    const auto start = std::chrono::steady_clock::now();
    memory.step();
    loss = *memory.as<float>("loss");
    if (n == 1) first = loss;
    if (n == 1 || n == steps)
      std::cout << "step " << n << ": loss " << loss << ", " << 1e3 * seconds_since(start)
                << " ms\n";
  }
  return std::isfinite(loss) && (full || loss < first / 2) ? 0 : 1;
}

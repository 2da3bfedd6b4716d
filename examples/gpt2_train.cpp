// One GPT-2 training step as one graph: embedding, blocks, cross-entropy, the gradients of all
// parameters and AdamW. Without arguments a small model learns a repeating text for 60 steps;
// `full` takes one step of GPT-2 124M on 256 tokens.
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
  std::int64_t layers, width, heads, vocabulary, batch, sequence;
};
constexpr Shape kSmall = {2, 64, 4, 96, 2, 32};
constexpr Shape kFull = {12, 768, 12, 50257, 1, 256};

class TrainingStep {
 public:
  explicit TrainingStep(const Shape& shape) : s_(shape) {
    const al::Value tokens = g_.input("tokens", {s_.batch, s_.sequence}, al::i32);
    const al::Value targets = g_.input("targets", {1, s_.batch * s_.sequence, 1}, al::i32);
    const al::Value loss = loss_of(hidden_states(tokens), targets);
    g_.output("loss", loss);
    add_adamw(al::gradients(g_, std::array{loss}, parameters_));
  }
  const al::Graph& graph() const { return g_; }
  const std::vector<al::Value>& parameters() const { return parameters_; }

 private:
  al::Value parameter(const std::string& name, const al::Dims& dims) {
    parameters_.push_back(g_.input(name, dims, al::f32));
    return parameters_.back();
  }
  al::Value linear(al::Value x, const std::string& name, std::int64_t from, std::int64_t to) {
    return g_.matmul(x, parameter(name + ".w", {1, from, to})) + parameter(name + ".b", {to});
  }
  al::Value norm(al::Value x, const std::string& name) {
    return g_
        .norm(x, {},
              {.scale = parameter(name + ".scale", {1, 1, s_.width}),
               .bias = parameter(name + ".bias", {1, 1, s_.width})})
        .y;
  }

  al::Value hidden_states(al::Value tokens) {
    using al::Gather;
    embedding_ = parameter("embedding", {s_.vocabulary, s_.width});
    const al::Value positions = parameter("positions", {s_.sequence, s_.width});
    al::Value x =
        al::Value(g_.apply(Gather{}, {{Gather::x, embedding_}, {Gather::index, tokens}})) +
        positions;
    for (std::int64_t layer = 0; layer < s_.layers; ++layer) {
      const std::string name = "block" + std::to_string(layer);
      x = x + attention(norm(x, name + ".norm1"), name);
      const al::Value up = linear(norm(x, name + ".norm2"), name + ".up", s_.width, 4 * s_.width);
      x = x + linear(gelu_tanh(up), name + ".down", 4 * s_.width, s_.width);
    }
    return norm(x, "norm");
  }

  al::Value attention(al::Value x, const std::string& name) {
    const std::int64_t b = s_.batch, t = s_.sequence, h = s_.heads, d = s_.width / h;
    const al::Value qkv = linear(x, name + ".qkv", s_.width, 3 * s_.width);
    const al::Value all = g_.transpose(g_.reshape(qkv, {b, t, 3 * h, d}), {0, 2, 1, 3});
    const auto part = [&](std::int64_t i) {
      return g_.slice(all, {0, i * h, 0, 0}, {b, (i + 1) * h, t, d});
    };
    const al::Value o = g_.attention(part(0), part(1), part(2), {.right_bound = 0}).first;
    const al::Value joined = g_.reshape(g_.transpose(o, {0, 2, 1, 3}), {b, t, s_.width});
    return linear(joined, name + ".projection", s_.width, s_.width);
  }

  // The logits use the embedding as weights ("tied").
  al::Value loss_of(al::Value x, al::Value targets) {
    using al::CrossEntropyForward;
    const al::Value rows = g_.reshape(x, {1, s_.batch * s_.sequence, s_.width});
    const al::Value weights =
        g_.reshape(g_.transpose(embedding_, {1, 0}), {1, s_.width, s_.vocabulary});
    CrossEntropyForward op;
    op.mean = true;
    return g_.apply(op, {{CrossEntropyForward::x, g_.matmul(rows, weights)},
                         {CrossEntropyForward::target, targets}});
  }

  // p, m, v -> p.next, m.next, v.next; `rate` is the learning rate with the bias corrections of the
  // step, `epsilon` is scaled accordingly.
  void add_adamw(const std::vector<al::Value>& gradients) {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.95, kDecay = 1e-4;
    const al::Value rate = g_.scalar("rate"), epsilon = g_.scalar("epsilon");
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const al::Value p = parameters_[i], gradient = gradients[i];
      const std::string name = p.tensor().name;
      const al::Value m = g_.input(name + ".m", p.dims(), al::f32);
      const al::Value v = g_.input(name + ".v", p.dims(), al::f32);
      const al::Value next_m = m * kBeta1 + gradient * (1 - kBeta1);
      const al::Value next_v = v * kBeta2 + gradient * gradient * (1 - kBeta2);
      const al::Value decayed = p.dims().rank() > 1 ? p * (1 - kDecay) : p;
      g_.output(name + ".next", decayed - rate * next_m / (sqrt(next_v) + epsilon));
      g_.output(name + ".m.next", next_m);
      g_.output(name + ".v.next", next_v);
    }
  }

  Shape s_;
  al::Graph g_{"gpt2_training_step"};
  al::Value embedding_;
  std::vector<al::Value> parameters_;
};

}  // namespace

int main(int argc, char** argv) {
  auto [full, options] = read_arguments(argc, argv);
  const Shape shape = full ? kFull : kSmall;
  const int steps = full ? 1 : 60;
  const TrainingStep step(shape);
  const al::Graph& g = step.graph();
  print_planning(g);
  options.in_place = updates_in_place(g);
  const al::Plan plan = al::compile(g, al::Device::cpu(), options);
  std::cout << "workspace " << plan.workspace_size() / 1000000 << " MB\n";

  TrainingMemory memory(g, plan);
  std::uint64_t seed = 0;
  for (const al::Value parameter : step.parameters()) {
    const al::Tensor& tensor = parameter.tensor();
    const bool is_scale = tensor.name.ends_with(".scale"), is_bias = tensor.name.ends_with("b");
    const double centre = is_scale ? 1.0 : 0.0, spread = is_scale || is_bias ? 0.0 : 0.04;
    al::fill_random(tensor, memory.data(tensor.name), ++seed, centre - spread, centre + spread);
  }
  for (std::int32_t i = 0; i < shape.batch * shape.sequence; ++i) {
    memory.as<std::int32_t>("tokens")[i] = i * i % 23;
    memory.as<std::int32_t>("targets")[i] = (i + 1) * (i + 1) % 23;
  }

  float first = 0, loss = 0;
  for (int n = 1; n <= steps; ++n) {
    const double correction = std::sqrt(1 - std::pow(0.95, n));
    memory.set("rate", static_cast<float>(3e-3 * correction / (1 - std::pow(0.9, n))));
    memory.set("epsilon", static_cast<float>(1e-8 * correction));
    const auto start = std::chrono::steady_clock::now();
    memory.step();
    loss = *memory.as<float>("loss");
    if (n == 1) first = loss;
    if (n % 20 == 1 || n == steps)
      std::cout << "step " << n << ": loss " << loss << ", " << 1e3 * seconds_since(start)
                << " ms\n";
  }
  return std::isfinite(loss) && (full || loss < first / 4) ? 0 : 1;
}

// The first program of the README: convolution, bias and ReLU as one graph.
#include <ashlar/ashlar.hpp>
#include <cstddef>
#include <iostream>
#include <vector>

namespace al = ashlar;

int main() {
  al::Graph g;
  auto x = g.input("x", {16, 64, 56, 56}, al::f16, al::channels_last);
  auto w = g.input("w", {64, 64, 3, 3}, al::f16, al::channels_last);
  auto b = g.input("b", {1, 64, 1, 1}, al::f32);
  g.output("y", relu(g.conv(x, w, {.padding = {1, 1}}) + b));
  al::Plan plan = al::compile(g, al::Device::cpu());
  std::cout << plan.explain();

  // The caller owns all memory: one allocation per tensor and one for the workspace.
  const auto allocate = [&](const char* name) {
    const al::Tensor& tensor = g.tensor(g.find_tensor(name));
    std::vector<std::byte> memory(static_cast<std::size_t>(al::byte_size(tensor)));
    al::fill_random(tensor, memory.data(), 1);
    return memory;
  };
  std::vector<std::byte> mx = allocate("x"), mw = allocate("w"), mb = allocate("b"),
                         my = allocate("y");
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> scratch(static_cast<std::size_t>(plan.workspace_size() / 64 + 1));
  void *px = mx.data(), *pw = mw.data(), *pb = mb.data(), *py = my.data();
  void *workspace = scratch.data(), *stream = nullptr;

  plan.run({{"x", px}, {"w", pw}, {"b", pb}, {"y", py}}, workspace, stream);

  const al::Tensor& y = g.tensor(g.find_tensor("y"));
  double largest = 0;
  for (std::int64_t i = 0; i < al::element_count(y.dims); i += 997) {
    const double value = al::read_element(y, py, i);
    if (!(value >= 0)) {
      std::cout << "y[" << i << "] is " << value << ", expected a value of at least 0\n";
      return 1;
    }
    largest = std::max(largest, value);
  }
  std::cout << "y " << al::to_string(y.dims) << " computed, largest value seen " << largest << "\n";
  return largest > 0 ? 0 : 1;
}

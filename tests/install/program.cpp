// A C++ program of another project: runs y = relu(x + b), and catches what the library throws.
#include <ashlar/ashlar.hpp>
#include <cstdio>
#include <vector>

namespace {

bool catches_errors() {
  try {
    ashlar::Graph::from_json("{");
  } catch (const ashlar::Error& error) {
    return error.code() == ashlar::ErrorCode::parse;
  }
  return false;
}

}  // namespace

int main() {
  ashlar::Graph graph;
  const ashlar::Value x = graph.input("x", {2, 3}, ashlar::f32);
  const ashlar::Value b = graph.input("b", {1, 3}, ashlar::f32);
  graph.output("y", relu(x + b));
  const ashlar::Plan plan = ashlar::compile(graph);
  std::vector<float> xs = {1, -2, 3, -4, 5, -6}, bs = {1, 1, -4}, ys(6);
  plan.run({{"x", xs.data()}, {"b", bs.data()}, {"y", ys.data()}});
  if (ys != std::vector<float>{2, 0, 0, 0, 6, 0}) return std::puts("wrong values"), 1;
  if (!catches_errors()) return std::puts("no error was caught"), 1;
  if (ashlar_version_number() != ASHLAR_VERSION_NUMBER) return std::puts("wrong version"), 1;
  std::printf("ashlar %s: ok\n", ashlar_version());
}

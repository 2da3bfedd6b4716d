// Sample graphs with options: scan, top_k, pad.
#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

void add_lines_samples(Samples& samples) {
  sample(samples, "scan", [](Graph& g) {
    const Scan op{.mode = ScanMode::logsumexp, .axis = 0, .exclusive = true, .reverse = true};
    return g.apply(op, {{Scan::x, g.input("x", {5, 3}, bf16)}}, {Scan::y});
  });
  sample(samples, "top_k", [](Graph& g) {
    return g.apply(TopK{.axis = 1, .largest = false}, {{TopK::x, g.input("x", {2, 9, 3}, f16)}},
                   {TopK::values, {TopK::index, i64}});
  });
  sample(samples, "pad", [](Graph& g) {
    const Pad op{.before = {-1, 2}, .after = {3, -4}, .value = 0.5};
    return g.apply(op, {{Pad::x, g.input("x", {4, 7}, f32)}}, {Pad::y});
  });
  sample(samples, "pad_backward", [](Graph& g) {
    const PadBackward op{.mode = PadMode::circular, .before = {1, 2}, .after = {3, 0}};
    return g.apply(op, {{PadBackward::dy, g.input("dy", {8, 7}, f32)}}, {PadBackward::dx});
  });
}

}  // namespace ashlar::tests

// Sample graphs with options: gather and scatter.
#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

void add_indexing_samples(Samples& samples) {
  sample(samples, "gather", [](Graph& g) {
    return g.apply(Gather{.axis = -2, .out_of_range = OutOfRange::clamp},
                   {{Gather::x, g.input("x", {3, 5, 4}, f16)},
                    {Gather::index, g.input("index", {2, 3}, i64, Layout(Dims{1, 2}))}},
                   {Gather::y});
  });
  sample(samples, "gather", [](Graph& g) {
    return g.apply(
        Gather{.axis = 1, .mode = IndexMode::elements},
        {{Gather::x, g.input("x", {3, 5}, i4)}, {Gather::index, g.input("index", {3, 2}, i32)}},
        {Gather::y});
  });
  sample(samples, "scatter", [](Graph& g) {
    return g.apply(Scatter{.axis = 2, .combine = ScatterMode::set},
                   {{Scatter::source, g.input("source", {2, 3, 2, 4}, bf16)},
                    {Scatter::index, g.input("index", {2}, i64)},
                    {Scatter::base, g.input("base", {2, 3, 6, 4}, bf16)}},
                   {Scatter::y});
  });
  for (const auto combine : {ScatterMode::mul, ScatterMode::min, ScatterMode::max})
    sample(samples, "scatter", [=](Graph& g) {
      return g.apply(Scatter{.mode = IndexMode::elements, .combine = combine},
                     {{Scatter::source, g.input("source", {4, 3}, f32)},
                      {Scatter::index, g.input("index", {4, 3}, i32)}},
                     {Scatter::y}, {.dims = {6, 3}});
    });
}

}  // namespace ashlar::tests

// For tests of operands that TMA cannot load in place.
#pragma once

#include <ashlar/ashlar.hpp>
#include <string>
#include <vector>

#include "api/backends.hpp"

namespace ashlar::cuda {

// An input of these extents, or a slice of one that has more channels on both sides.
inline Value input_channels(Graph& graph, Dims dims, std::int64_t left_out, DType dtype,
                            const Layout& layout) {
  Dims start, whole = dims;
  whole[1] += 2 * left_out;
  const Value image = graph.input("x", whole, dtype, layout);
  if (left_out == 0) return image;
  for (int axis = 0; axis < dims.rank(); ++axis) start.push_back(axis == 1 ? left_out : 0);
  dims[1] += left_out;
  return graph.slice(image, start, dims);
}

// The engines of a graph's regions on an H200.
inline std::vector<std::string> engines_on_h200(const Graph& graph) {
  const auto plan = build_plan(graph, Device::named("h200").props(), {}, nullptr, false);
  std::vector<std::string> result;
  for (const PlanData::Step& step : plan->steps) result.emplace_back(step.choice.engine->id());
  return result;
}

}  // namespace ashlar::cuda

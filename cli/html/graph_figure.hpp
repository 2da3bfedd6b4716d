// Graphs as SVG: operations in boxes, tensors in memory as pills, fusion regions around the
// operations that one kernel computes.
#pragma once

#include <ashlar/inspect.hpp>
#include <string>
#include <vector>

namespace ashlar::cli::html {

struct RegionCaption {
  std::string title, subtitle;  // two lines
  std::string link;             // "#id" of what describes the region; empty: none
};

struct Figure {
  std::string svg;
  double width = 0, height = 0;  // in pixels
};

// `captions` by region.
Figure region_figure(const Inspection& inspection, const std::vector<RegionCaption>& captions);
// The graph by itself.
Figure plain_figure(const Graph& graph);

// "simd": the class of what is coloured by how it computes.
std::string css_class(ComputeMethod method);

}  // namespace ashlar::cli::html

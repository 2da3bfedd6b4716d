// A layered drawing of a directed acyclic graph, by Sugiyama's method: ranks by longest paths,
// crossings reduced by barycentre sweeps, coordinates by least squares. Deterministic.
#pragma once

#include <vector>

namespace ashlar::cli::html {

struct Point {
  double x = 0, y = 0;
};

struct Drawing {
  enum class Rank { any, first, last };  // first and last: the outermost ranks, for ports
  struct Box {
    double width = 0, height = 0;
    Rank rank = Rank::any;
    double x = 0, y = 0;  // result: the top left corner
  };
  // From the bottom of one box to the top of another. Offsets are from the centres of the boxes.
  struct Line {
    int from = 0, to = 0;
    double from_offset = 0, to_offset = 0;
    double weight = 1;  // how much it wants to be straight
    // Result: vertical pieces where x repeats, else the two ends of a curve between ranks.
    std::vector<Point> points = {};
  };
  std::vector<Box> boxes;
  std::vector<Line> lines;
  double width = 0, height = 0;  // result
};

struct Spacing {
  double between_boxes = 16, between_lines = 10, between_ranks = 30;
};

// Sets all results. No box overlaps another, and no line passes through a box.
void lay_out(Drawing& drawing, const Spacing& spacing = {});

}  // namespace ashlar::cli::html

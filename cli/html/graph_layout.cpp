#include "graph_layout.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "ordering.hpp"

namespace ashlar::cli::html {

namespace {

using Box = Drawing::Box;
using Line = Drawing::Line;

constexpr int kCoordinateSweeps = 40;

// Longest path from the sources; sources then move down next to what reads them.
std::vector<int> ranks_of(const Drawing& drawing) {
  const std::size_t count = drawing.boxes.size();
  std::vector<std::vector<std::size_t>> successors(count);
  std::vector<int> waiting(count, 0), rank(count, 0);
  for (const Line& line : drawing.lines) {
    successors[static_cast<std::size_t>(line.from)].push_back(static_cast<std::size_t>(line.to));
    ++waiting[static_cast<std::size_t>(line.to)];
  }
  std::vector<bool> is_source(count);
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < count; ++i) {
    is_source[i] = waiting[i] == 0;
    if (is_source[i]) ready.push_back(i);
    // Below the ports.
    rank[i] = drawing.boxes[i].rank == Drawing::Rank::first ? 0 : 1;
  }
  for (std::size_t next = 0; next < ready.size(); ++next)
    for (const std::size_t to : successors[ready[next]]) {
      rank[to] = std::max(rank[to], rank[ready[next]] + 1);
      if (--waiting[to] == 0) ready.push_back(to);
    }
  int last = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (drawing.boxes[i].rank != Drawing::Rank::last) last = std::max(last, rank[i] + 1);
  for (std::size_t i = 0; i < count; ++i) {
    if (drawing.boxes[i].rank == Drawing::Rank::last) rank[i] = std::max(last, rank[i]);
    if (!is_source[i] || drawing.boxes[i].rank != Drawing::Rank::any || successors[i].empty())
      continue;
    int nearest = std::numeric_limits<int>::max();
    for (const std::size_t to : successors[i]) nearest = std::min(nearest, rank[to]);
    rank[i] = nearest - 1;
  }
  const int least = rank.empty() ? 0 : *std::min_element(rank.begin(), rank.end());
  for (int& one : rank) one -= least;
  return rank;
}

// The positions nearest to `wanted`, by least squares, that keep the order and leave `apart[i]`
// between i and i + 1: an isotonic regression, by pooling neighbours that violate the order.
std::vector<double> nearest_positions(const std::vector<double>& wanted,
                                      const std::vector<double>& weights,
                                      const std::vector<double>& apart) {
  struct Pool {
    double mean, weight;
    std::size_t count;
  };
  std::vector<double> offset(wanted.size(), 0);
  for (std::size_t i = 1; i < wanted.size(); ++i) offset[i] = offset[i - 1] + apart[i - 1];
  std::vector<Pool> pools;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    pools.push_back({wanted[i] - offset[i], weights[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean > pools.back().mean) {
      const Pool right = pools.back();
      pools.pop_back();
      Pool& left = pools.back();
      const double weight = left.weight + right.weight;
      left.mean = (left.mean * left.weight + right.mean * right.weight) / weight;
      left.weight = weight;
      left.count += right.count;
    }
  }
  std::vector<double> positions;
  for (const Pool& pool : pools)
    for (std::size_t i = 0; i < pool.count; ++i)
      positions.push_back(pool.mean + offset[positions.size()]);
  return positions;
}

class Layout {
 public:
  Layout(Drawing& drawing, const Spacing& spacing) : drawing_(drawing), spacing_(spacing) {}

  void run() {
    add_vertices();
    reduce_crossings(ranks_, links_);
    pack();
    for (int sweep = 0; sweep < kCoordinateSweeps; ++sweep) {
      const bool both = sweep >= kCoordinateSweeps / 2;
      for (std::size_t r = 1; r < ranks_.size(); ++r) place(r, true, both);
      for (std::size_t r = ranks_.size(); r-- > 0;) place(r, both, true);
    }
    place_boxes();
    route();
  }

 private:
  struct Vertex {
    double width = 0;
    bool is_line = false;                   // a line that passes through this rank
    double x = 0;                           // of the centre
    std::vector<std::size_t> above, below;  // links
  };

  std::size_t add_vertex(Vertex vertex, int rank) {
    ranks_[static_cast<std::size_t>(rank)].push_back(vertices_.size());
    vertices_.push_back(std::move(vertex));
    return vertices_.size() - 1;
  }
  void add_link(const OrderLink& link) {
    vertices_[link.upper].below.push_back(links_.size());
    vertices_[link.lower].above.push_back(links_.size());
    links_.push_back(link);
  }

  void add_vertices() {
    rank_of_ = ranks_of(drawing_);
    const int most = rank_of_.empty() ? -1 : *std::max_element(rank_of_.begin(), rank_of_.end());
    ranks_.resize(static_cast<std::size_t>(most + 1));
    for (std::size_t i = 0; i < drawing_.boxes.size(); ++i)
      add_vertex({drawing_.boxes[i].width, false, 0, {}, {}}, rank_of_[i]);
    // Lines that begin at the same point share a trunk, from which they leave at their ranks.
    std::map<std::pair<int, double>, std::vector<std::size_t>> trunks;
    for (const Line& line : drawing_.lines) {
      std::vector<std::size_t>& trunk = trunks[{line.from, line.from_offset}];
      if (trunk.empty()) trunk.push_back(static_cast<std::size_t>(line.from));
      const int first = rank_of_[trunk.front()];
      const int last = rank_of_[static_cast<std::size_t>(line.to)];
      for (int r = first + static_cast<int>(trunk.size()); r < last; ++r) {
        trunk.push_back(add_vertex({0, true, 0, {}, {}}, r));
        const std::size_t count = trunk.size();
        add_link({trunk[count - 2], trunk[count - 1], count == 2 ? line.from_offset : 0, 0,
                  line.weight});
      }
      std::vector<std::size_t>& path =
          paths_.emplace_back(trunk.begin(), trunk.begin() + std::max(last - first, 1));
      add_link({path.back(), static_cast<std::size_t>(line.to),
                path.size() == 1 ? line.from_offset : 0, line.to_offset, line.weight});
      path.push_back(static_cast<std::size_t>(line.to));
    }
  }

  double gap(const Vertex& left, const Vertex& right) const {
    const double space =
        left.is_line && right.is_line ? spacing_.between_lines : spacing_.between_boxes;
    return (left.width + right.width) / 2 + space;
  }

  void pack() {
    for (const auto& rank : ranks_)
      for (std::size_t i = 1; i < rank.size(); ++i)
        vertices_[rank[i]].x =
            vertices_[rank[i - 1]].x + gap(vertices_[rank[i - 1]], vertices_[rank[i]]);
  }

  // Long lines are kept straight first.
  double weight_of(const OrderLink& link) const {
    const bool from_line = vertices_[link.upper].is_line, to_line = vertices_[link.lower].is_line;
    return link.weight * (from_line && to_line ? 8 : from_line || to_line ? 2 : 1);
  }

  void place(std::size_t r, bool by_above, bool by_below) {
    const std::vector<std::size_t>& rank = ranks_[r];
    std::vector<double> wanted, weights, apart;
    for (std::size_t i = 0; i < rank.size(); ++i) {
      const Vertex& vertex = vertices_[rank[i]];
      double sum = 0, weight = 0;
      if (by_above)
        for (const std::size_t l : vertex.above) {
          const OrderLink& link = links_[l];
          const double w = weight_of(link);
          sum += w * (vertices_[link.upper].x + link.upper_offset - link.lower_offset);
          weight += w;
        }
      if (by_below)
        for (const std::size_t l : vertex.below) {
          const OrderLink& link = links_[l];
          const double w = weight_of(link);
          sum += w * (vertices_[link.lower].x + link.lower_offset - link.upper_offset);
          weight += w;
        }
      constexpr double kInertia = 0.01;
      wanted.push_back((sum + kInertia * vertex.x) / (weight + kInertia));
      weights.push_back(weight + kInertia);
      if (i > 0) apart.push_back(gap(vertices_[rank[i - 1]], vertex));
    }
    const std::vector<double> positions = nearest_positions(wanted, weights, apart);
    for (std::size_t i = 0; i < rank.size(); ++i) vertices_[rank[i]].x = positions[i];
  }

  // Sources stand at the bottom of their rank, next to what reads them; others at the top.
  void place_boxes() {
    double least = std::numeric_limits<double>::max(), most = std::numeric_limits<double>::lowest();
    for (const Vertex& vertex : vertices_) {
      least = std::min(least, vertex.x - vertex.width / 2);
      most = std::max(most, vertex.x + vertex.width / 2);
    }
    if (vertices_.empty()) least = most = 0;
    for (Vertex& vertex : vertices_) vertex.x -= least;
    drawing_.width = most - least;
    for (const auto& rank : ranks_) {
      double height = 0;
      for (const std::size_t v : rank)
        if (!vertices_[v].is_line) height = std::max(height, drawing_.boxes[v].height);
      tops_.push_back(tops_.empty() ? 0 : bottoms_.back() + spacing_.between_ranks);
      bottoms_.push_back(tops_.back() + height);
      for (const std::size_t v : rank) {
        if (vertices_[v].is_line) continue;
        Box& box = drawing_.boxes[v];
        box.x = vertices_[v].x - box.width / 2;
        box.y = vertices_[v].above.empty() ? bottoms_.back() - box.height : tops_.back();
      }
    }
    drawing_.height = bottoms_.empty() ? 0 : bottoms_.back();
  }

  void route() {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      Line& line = drawing_.lines[i];
      const std::vector<std::size_t>& path = paths_[i];
      const auto first = static_cast<std::size_t>(rank_of_[path.front()]);
      const auto last = static_cast<std::size_t>(rank_of_[path.back()]);
      const Box &from = drawing_.boxes[path.front()], &to = drawing_.boxes[path.back()];
      const double start = vertices_[path.front()].x + line.from_offset;
      const double end = vertices_[path.back()].x + line.to_offset;
      line.points = {{start, from.y + from.height}, {start, bottoms_[first]}};
      for (std::size_t r = first + 1; r < last; ++r) {
        const double x = vertices_[path[r - first]].x;
        line.points.push_back({x, tops_[r]});
        line.points.push_back({x, bottoms_[r]});
      }
      line.points.push_back({end, tops_[last]});
      line.points.push_back({end, to.y});
    }
  }

  Drawing& drawing_;
  const Spacing& spacing_;
  std::vector<int> rank_of_;                     // by box
  std::vector<Vertex> vertices_;                 // boxes first
  std::vector<std::vector<std::size_t>> ranks_;  // vertices from left to right
  std::vector<OrderLink> links_;
  std::vector<std::vector<std::size_t>> paths_;  // by line
  std::vector<double> tops_, bottoms_;           // by rank
};

}  // namespace

void lay_out(Drawing& drawing, const Spacing& spacing) { Layout(drawing, spacing).run(); }

}  // namespace ashlar::cli::html

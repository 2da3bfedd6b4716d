#include "ordering.hpp"

#include <algorithm>
#include <utility>

namespace ashlar::cli::html {

namespace {

using Ranks = std::vector<std::vector<std::size_t>>;
using Place = std::pair<std::size_t, double>;  // position in the rank, offset in the vertex

constexpr int kSweeps = 16;

std::size_t vertex_count(const Ranks& ranks) {
  std::size_t count = 0;
  for (const auto& rank : ranks)
    for (const std::size_t vertex : rank) count = std::max(count, vertex + 1);
  return count;
}

std::vector<std::size_t> positions_of(const Ranks& ranks) {
  std::vector<std::size_t> positions(vertex_count(ranks));
  for (const auto& rank : ranks)
    for (std::size_t i = 0; i < rank.size(); ++i) positions[rank[i]] = i;
  return positions;
}

// Pairs out of order; sorts.
std::size_t inversions(std::vector<Place>& values) {
  if (values.size() < 2) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::vector<Place> left(values.begin(), middle), right(middle, values.end());
  std::size_t count = inversions(left) + inversions(right);
  std::size_t l = 0, r = 0;
  for (Place& value : values) {
    const bool from_right = l == left.size() || (r < right.size() && right[r] < left[l]);
    if (from_right) count += left.size() - l;
    value = from_right ? right[r++] : left[l++];
  }
  return count;
}

// Links by the rank of their upper vertices.
std::vector<std::vector<const OrderLink*>> by_rank(const Ranks& ranks,
                                                   const std::vector<OrderLink>& links) {
  std::vector<std::size_t> rank_of(vertex_count(ranks));
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (const std::size_t vertex : ranks[r]) rank_of[vertex] = r;
  std::vector<std::vector<const OrderLink*>> sorted(ranks.size());
  for (const OrderLink& link : links) sorted[rank_of[link.upper]].push_back(&link);
  return sorted;
}

// Sorts a rank by the mean position of its neighbours in the fixed rank; vertices without any stay
// where they are.
void sort_rank(Ranks& ranks, std::size_t r, const std::vector<const OrderLink*>& links,
               bool fixed_above) {
  const std::vector<std::size_t> positions = positions_of(ranks);
  std::vector<double> sum(positions.size(), 0), count(positions.size(), 0);
  constexpr double kOffsetWeight = 1e-3;  // of a pixel in a vertex, in positions of a rank
  for (const OrderLink* link : links) {
    const std::size_t moved = fixed_above ? link->lower : link->upper;
    const std::size_t fixed = fixed_above ? link->upper : link->lower;
    const double offset = fixed_above ? link->upper_offset - link->lower_offset
                                      : link->lower_offset - link->upper_offset;
    sum[moved] += static_cast<double>(positions[fixed]) + kOffsetWeight * offset;
    ++count[moved];
  }
  std::vector<std::size_t> moved;
  for (const std::size_t vertex : ranks[r])
    if (count[vertex] > 0) moved.push_back(vertex);
  std::stable_sort(moved.begin(), moved.end(), [&](std::size_t a, std::size_t b) {
    return sum[a] / count[a] < sum[b] / count[b];
  });
  auto next = moved.begin();
  for (std::size_t& vertex : ranks[r])
    if (count[vertex] > 0) vertex = *next++;
}

}  // namespace

std::size_t count_crossings(const Ranks& ranks, const std::vector<OrderLink>& links) {
  const std::vector<std::size_t> positions = positions_of(ranks);
  std::size_t crossings = 0;
  for (const auto& rank_links : by_rank(ranks, links)) {
    std::vector<std::pair<Place, Place>> ends;
    for (const OrderLink* link : rank_links)
      ends.push_back({{positions[link->upper], link->upper_offset},
                      {positions[link->lower], link->lower_offset}});
    std::sort(ends.begin(), ends.end());
    std::vector<Place> lower;
    for (const auto& end : ends) lower.push_back(end.second);
    crossings += inversions(lower);
  }
  return crossings;
}

void reduce_crossings(Ranks& ranks, const std::vector<OrderLink>& links) {
  const auto sorted = by_rank(ranks, links);
  Ranks best = ranks;
  std::size_t least = count_crossings(ranks, links);
  for (int sweep = 0; sweep < kSweeps && least > 0; ++sweep) {
    if (sweep % 2 == 0)
      for (std::size_t r = ranks.size(); r-- > 1;) sort_rank(ranks, r - 1, sorted[r - 1], false);
    else
      for (std::size_t r = 1; r < ranks.size(); ++r) sort_rank(ranks, r, sorted[r - 1], true);
    const std::size_t crossings = count_crossings(ranks, links);
    if (crossings >= least) continue;
    least = crossings;
    best = ranks;
  }
  ranks = std::move(best);
}

}  // namespace ashlar::cli::html

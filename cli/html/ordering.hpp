// The order of vertices within the ranks of a layered drawing.
#pragma once

#include <cstddef>
#include <vector>

namespace ashlar::cli::html {

// Between vertices of neighbouring ranks; offsets are where it meets them, from their centres.
struct OrderLink {
  std::size_t upper = 0, lower = 0;
  double upper_offset = 0, lower_offset = 0;
  double weight = 1;  // for coordinates; the order does not use it
};

// Reorders each rank so that few links cross: barycentre sweeps, of which the best order is kept.
void reduce_crossings(std::vector<std::vector<std::size_t>>& ranks,
                      const std::vector<OrderLink>& links);

// Pairs of links that cross.
std::size_t count_crossings(const std::vector<std::vector<std::size_t>>& ranks,
                            const std::vector<OrderLink>& links);

}  // namespace ashlar::cli::html

#include "cuda/engines/memory_bound.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/ceil_div.hpp"

namespace ashlar::cuda {

double bandwidth_fraction(double share, double bytes, double lost_seconds,
                          const DeviceProps& device) {
  return 1 / (1 / share + lost_seconds * device.bytes_per_second / std::max(bytes, 1.0));
}

std::int64_t balanced_slices(std::int64_t blocks_of_slice, std::int64_t most, std::int64_t wanted,
                             std::int64_t at_once) {
  std::int64_t best = 1;
  double best_share = 0;
  for (std::int64_t count = 1;
       count <= most && (count == 1 || count * blocks_of_slice <= wanted + wanted / 2); ++count) {
    const std::int64_t used = count * blocks_of_slice;
    const double share =
        static_cast<double>(used) / static_cast<double>(ceil_div(used, at_once) * at_once) -
        0.02 * static_cast<double>(std::abs(wanted - used)) / static_cast<double>(wanted);
    if (share > best_share) {
      best = count;
      best_share = share;
    }
  }
  return best;
}

}  // namespace ashlar::cuda

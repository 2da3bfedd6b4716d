#include "plan/execution_order.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace ashlar {

namespace {

class Scheduler {
 public:
  Scheduler(const LoweredGraph& lowered, const std::vector<Region>& regions,
            const std::vector<NodeId>& positions,
            const std::vector<std::pair<int, int>>& constraints)
      : regions_(regions),
        positions_(positions),
        bytes_(lowered.graph.tensors().size(), 0),
        readers_(bytes_.size(), 0),
        waiting_(regions.size(), 0),
        followers_(regions.size()) {
    std::vector<int> writers(bytes_.size(), -1);
    for (std::size_t r = 0; r < regions.size(); ++r)
      for (const TensorId id : regions[r].writes) {
        writers[index(id)] = static_cast<int>(r);
        const Tensor& tensor = lowered.graph.tensor(id);
        if (tensor.kind == TensorKind::intermediate) bytes_[index(id)] = byte_size(tensor);
      }
    for (std::size_t r = 0; r < regions.size(); ++r)
      for (const TensorId id : regions[r].reads) {
        ++readers_[index(id)];
        if (const int writer = writers[index(id)]; writer >= 0 && std::cmp_not_equal(writer, r))
          add_follower(writer, static_cast<int>(r));
      }
    for (const auto& [before, after] : constraints) add_follower(before, after);
  }

  std::vector<int> order() {
    for (std::size_t r = 0; r < regions_.size(); ++r)
      if (waiting_[r] == 0) make_ready(static_cast<int>(r));
    std::vector<int> order;
    while (!ready_.empty()) {
      const int next = pick();
      order.push_back(next);
      for (const TensorId id : regions_[static_cast<std::size_t>(next)].reads)
        --readers_[index(id)];
      for (const int follower : followers_[static_cast<std::size_t>(next)])
        if (--waiting_[static_cast<std::size_t>(follower)] == 0) make_ready(follower);
    }
    return order;
  }

 private:
  using Place = std::pair<NodeId, int>;  // position, region

  static std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }
  Place place(int region) const { return {positions_[static_cast<std::size_t>(region)], region}; }

  void add_follower(int from, int to) {
    auto& followers = followers_[static_cast<std::size_t>(from)];
    if (!followers.empty() && followers.back() == to) return;
    followers.push_back(to);
    ++waiting_[static_cast<std::size_t>(to)];
  }

  std::int64_t written_bytes(int region) const {
    std::int64_t bytes = 0;
    for (const TensorId id : regions_[static_cast<std::size_t>(region)].writes)
      bytes += bytes_[index(id)];
    return bytes;
  }
  // Of the intermediates that have at most so many readers left.
  std::int64_t read_bytes(int region, int readers) const {
    std::int64_t bytes = 0;
    for (const TensorId id : regions_[static_cast<std::size_t>(region)].reads)
      if (readers_[index(id)] <= readers) bytes += bytes_[index(id)];
    return bytes;
  }

  void make_ready(int region) {
    ready_.insert(place(region));
    constexpr int kAny = 1 << 30;
    if (read_bytes(region, kAny) > written_bytes(region)) may_free_.insert(place(region));
  }

  int pick() {
    const auto frees = std::ranges::find_if(may_free_, [&](const Place& one) {
      return read_bytes(one.second, 1) > written_bytes(one.second);
    });
    const Place picked = frees != may_free_.end() ? *frees : *ready_.begin();
    ready_.erase(picked);
    may_free_.erase(picked);
    return picked.second;
  }

  const std::vector<Region>& regions_;
  const std::vector<NodeId>& positions_;
  std::vector<std::int64_t> bytes_;  // by tensor; 0 unless it is an intermediate in memory
  std::vector<int> readers_;         // by tensor: regions that have not run yet
  std::vector<int> waiting_;         // by region: those it waits for
  std::vector<std::vector<int>> followers_;
  std::set<Place> ready_;
  std::set<Place> may_free_;  // those of ready_ that read more intermediates than they write
};

}  // namespace

std::vector<Region> in_execution_order(const LoweredGraph& lowered, std::vector<Region> regions,
                                       const std::vector<NodeId>& positions,
                                       const std::vector<std::pair<int, int>>& constraints) {
  std::vector<Region> ordered;
  ordered.reserve(regions.size());
  for (const int region : Scheduler(lowered, regions, positions, constraints).order())
    ordered.push_back(std::move(regions[static_cast<std::size_t>(region)]));
  return ordered;
}

}  // namespace ashlar

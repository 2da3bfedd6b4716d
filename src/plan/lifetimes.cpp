#include "plan/lifetimes.hpp"

namespace ashlar {

void Lifetimes::add(const Region& region) {
  for (const TensorId id : region.writes) {
    if (graph_.tensor(id).kind != TensorKind::intermediate) continue;
    int& position = position_[static_cast<std::size_t>(id)];
    if (position < 0) {
      position = static_cast<int>(all_.size());
      all_.push_back({id, {}});
    }
    add_step(all_[static_cast<std::size_t>(position)]);
  }
  for (const TensorId id : region.reads)
    if (const int position = position_[static_cast<std::size_t>(id)]; position >= 0)
      add_step(all_[static_cast<std::size_t>(position)]);
  ++step_;
}

}  // namespace ashlar

#include "core/plan_cache.hpp"

#include <future>
#include <list>
#include <mutex>
#include <unordered_map>

namespace ashlar::cudnn {

PlanKey::PlanKey(std::string_view call, const Device& device) {
  bytes_.reserve(256);
  add(call).add(std::string_view(device.props().name)).add(device.props().compute_units);
}

PlanKey& PlanKey::add(std::string_view text) {
  add(text.size());
  bytes_.append(text);
  return *this;
}

PlanKey& PlanKey::add(const Dims& dims) {
  add(dims.rank());
  for (std::int64_t extent : dims) add(extent);
  return *this;
}

namespace {

using PlanFuture = std::shared_future<std::shared_ptr<const Plan>>;

struct Cache {
  struct Entry {
    std::string key;
    PlanFuture plan;
  };
  std::mutex mutex;
  std::list<Entry> by_use;                                                 // most recent first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index;  // views of Entry::key

  void forget(std::string_view key) {
    const auto found = index.find(key);
    if (found == index.end()) return;
    const auto entry = found->second;
    index.erase(found);
    by_use.erase(entry);
  }
};

Cache& shared_cache() {
  // Never destroyed: programs execute plans from their own static destructors.
  static Cache& cache = *new Cache;
  return cache;
}

}  // namespace

std::shared_ptr<const Plan> cached_plan(const PlanKey& key, const std::function<Plan()>& compile) {
  Cache& cache = shared_cache();
  std::promise<std::shared_ptr<const Plan>> promise;
  {
    std::unique_lock lock(cache.mutex);
    if (const auto found = cache.index.find(key.bytes()); found != cache.index.end()) {
      cache.by_use.splice(cache.by_use.begin(), cache.by_use, found->second);
      const PlanFuture plan = found->second->plan;
      lock.unlock();
      return plan.get();
    }
    cache.by_use.push_front({key.bytes(), promise.get_future().share()});
    cache.index.emplace(cache.by_use.front().key, cache.by_use.begin());
    if (cache.by_use.size() > kMaxPlans) cache.forget(cache.by_use.back().key);
  }
  try {
    auto plan = std::make_shared<const Plan>(compile());
    promise.set_value(plan);
    return plan;
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::scoped_lock lock(cache.mutex);
    cache.forget(key.bytes());
    throw;
  }
}

}  // namespace ashlar::cudnn

// The process-wide LRU cache of compiled plans, shared by all handles and threads.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/plan.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace ashlar::cudnn {

// A byte string of everything that determines the plan of a call: no pointers, no tensor names. The
// name of the call comes first, so that different calls never share a key.
class PlanKey {
 public:
  PlanKey(std::string_view call, const Device& device);
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> PlanKey& add(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  PlanKey& add(std::string_view text);
  PlanKey& add(const Dims& dims);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Returns the cached plan of `key`, or compiles it with `compile`. Concurrent requests for one key
// compile once. Beyond kMaxPlans the least recently used plan is evicted; the shared_ptr keeps a
// plan in use alive.
inline constexpr std::size_t kMaxPlans = 4096;
std::shared_ptr<const Plan> cached_plan(const PlanKey& key, const std::function<Plan()>& compile);

}  // namespace ashlar::cudnn

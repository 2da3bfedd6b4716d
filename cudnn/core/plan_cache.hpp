// Compiled plans, shared by all handles and threads of the process.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/plan.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace ashlar::cudnn {

// Everything that decides which plan a call needs: never pointers, never names. The call's name
// comes first, so that no two kinds of calls share a key.
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

// The plan of a key, compiled by `compile` when there is none yet: once, also when threads ask at
// the same time. The least recently used are forgotten past kMaxPlans; a plan in use lives on.
inline constexpr std::size_t kMaxPlans = 4096;
std::shared_ptr<const Plan> cached_plan(const PlanKey& key, const std::function<Plan()>& compile);

}  // namespace ashlar::cudnn

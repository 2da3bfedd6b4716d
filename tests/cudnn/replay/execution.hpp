// Buffers for one execution of a plan, and the comparison of its results with the oracle.
#pragma once

#include <ashlar/memory.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include "graph/json.hpp"

#include "backend/execution_plan.hpp"
#include "support/bound_memory.hpp"

namespace ashlar::replay {

class Execution {
 public:
  // `by_value`: the host scalars of the run, by uid.
  Execution(const cudnn::BoundPlan& plan, const Device& device, const nlohmann::json& by_value,
            const std::vector<const cudnn::Record*>& tensors, std::uint64_t seed);

  // The device pointer of a tensor; null for a uid that is not in the plan.
  void* pointer(std::int64_t uid) const;
  void* workspace() const;

  // Empty when every output is within its bound, else a description of the error.
  std::string compare(double& worst);

 private:
  struct Block {
    std::vector<std::byte> before;  // on the host
    std::optional<Memory> memory;   // on the device; scalars have none
  };
  void fill(const nlohmann::json& by_value, const std::vector<const cudnn::Record*>& tensors,
            std::uint64_t seed);
  const cudnn::BoundPlan& plan_;
  std::map<std::int64_t, Block> blocks_;
  std::vector<std::int64_t> uids_;  // per bound tensor
  std::optional<Memory> workspace_;
};

}  // namespace ashlar::replay

// What differs from one execution of a plan to the next.
#pragma once

#include <vector>

#include "backend/record.hpp"

namespace ashlar::cudnn {

struct VariantPack : Finished {
  std::vector<std::int64_t> uids;
  std::vector<void*> pointers;  // one for each uid
  void* workspace = nullptr;
  // Shapes of this execution alone, one for each of `override_uids`.
  std::vector<std::int64_t> override_uids;
  std::vector<std::vector<std::int64_t>> override_shapes;
  std::vector<std::vector<std::int64_t>> override_strides;
};

}  // namespace ashlar::cudnn

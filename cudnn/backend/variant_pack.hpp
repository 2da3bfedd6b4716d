// VARIANT_PACK descriptors: the pointers, workspace and shape overrides of one execution.
#pragma once

#include <vector>

#include "backend/record.hpp"

namespace ashlar::cudnn {

struct VariantPack : Finished {
  std::vector<std::int64_t> uids;
  std::vector<void*> pointers;  // one per uid
  void* workspace = nullptr;
  // Shape overrides of this execution, one per entry of `override_uids`.
  std::vector<std::int64_t> override_uids;
  std::vector<std::vector<std::int64_t>> override_shapes;
  std::vector<std::vector<std::int64_t>> override_strides;
};

}  // namespace ashlar::cudnn

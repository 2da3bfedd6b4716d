// Events: moments on the host's steady clock.
#pragma once

#include "cuda_runtime_api.h"

namespace ashlar::hostrt {

bool is_event(cudaEvent_t event);

}  // namespace ashlar::hostrt

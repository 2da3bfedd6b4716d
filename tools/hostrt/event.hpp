// Events: time stamps of the host's steady clock.
#pragma once

#include <memory>

#include "cuda_runtime_api.h"
#include "stream.hpp"

namespace ashlar::hostrt {

bool is_event(cudaEvent_t event);
// The capture that the event was recorded in; null outside captures.
std::shared_ptr<Capture> capture_of_event(cudaEvent_t event);

}  // namespace ashlar::hostrt

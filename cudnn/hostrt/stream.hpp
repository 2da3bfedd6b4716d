// Streams: names for an order that is kept anyway.
#pragma once

#include "cuda_runtime_api.h"

namespace ashlar::hostrt {

// cudaSuccess for a stream that exists.
cudaError_t check(cudaStream_t stream);

void destroy_streams();
void destroy_events();

}  // namespace ashlar::hostrt

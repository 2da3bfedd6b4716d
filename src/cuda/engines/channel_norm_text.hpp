// The programs of a batch, instance or group norm as device functions.
#pragma once

#include <string>

#include "cuda/engines/channel_norm_shape.hpp"

namespace ashlar::cuda {

// x_of, epilogue, and per [outer, channel] what the direction reads and writes: scale_of,
// given_statistics, store_statistics, store_parameter_gradients; dy_of stores what dy is a result
// for, read_dy does not.
std::string print_channel_norm(const Graph& graph, const Region& region,
                               const ChannelNormShape& shape, Arguments& arguments);
// x_ahead, dy_ahead: puts what x_of and dy_of will load on its way to L2.
std::string print_prefetches(const Graph& graph, const ChannelNormShape& shape,
                             Arguments& arguments);
// x_address, dy_address: where an element lies of programs that only load it; else null.
std::string print_addresses(const ChannelNormShape& shape, Arguments& arguments);

}  // namespace ashlar::cuda

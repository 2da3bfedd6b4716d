// Prints the programs of a batch, instance or group norm as device functions.
#pragma once

#include <string>

#include "cuda/engines/channel_norm_shape.hpp"

namespace ashlar::cuda {

// x_of, epilogue, and per [outer, channel] the reads and writes of the direction: scale_of,
// given_statistics, store_statistics, store_parameter_gradients. dy_of also executes the stores of
// dy's prologue, read_dy does not.
std::string print_channel_norm(const Graph& graph, const Region& region,
                               const ChannelNormShape& shape, Arguments& arguments);
// x_ahead, dy_ahead: prefetch the loads of x_of and dy_of to L2.
std::string print_prefetches(const Graph& graph, const ChannelNormShape& shape,
                             Arguments& arguments);
// x_address, dy_address: address of an element where the program is a plain load; else null.
std::string print_addresses(const ChannelNormShape& shape, Arguments& arguments);

}  // namespace ashlar::cuda

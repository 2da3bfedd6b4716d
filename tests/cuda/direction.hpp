// A convolution and its two gradients.
#pragma once

#include <cstdint>

namespace ashlar::cuda {

enum class Direction : std::uint8_t { forward, data, filter };
inline constexpr Direction kDirections[] = {Direction::forward, Direction::data, Direction::filter};

}  // namespace ashlar::cuda

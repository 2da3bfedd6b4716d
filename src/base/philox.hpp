// Philox4x32-10, the counter-based generator of Salmon et al. (SC'11): the same values on every
// device.
#pragma once

#include <array>
#include <cstdint>

namespace ashlar {

inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53u, kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9u, kPhiloxWeyl1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;

// 128 random bits for a 64-bit counter under a 64-bit key.
constexpr std::array<std::uint32_t, 4> philox4x32(std::uint64_t counter, std::uint64_t key) {
  std::array<std::uint32_t, 4> state = {static_cast<std::uint32_t>(counter),
                                        static_cast<std::uint32_t>(counter >> 32), 0, 0};
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * state[0];
    const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * state[2];
    state = {static_cast<std::uint32_t>(product1 >> 32) ^ state[1] ^ key0,
             static_cast<std::uint32_t>(product1),
             static_cast<std::uint32_t>(product0 >> 32) ^ state[3] ^ key1,
             static_cast<std::uint32_t>(product0)};
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return state;
}

// 32 random bits for element `index` of a stream.
constexpr std::uint32_t philox_element(std::uint64_t seed, std::uint64_t offset,
                                       std::uint64_t index) {
  return philox4x32(offset + index / 4, seed)[index % 4];
}

// Uniform in (0, 1): never 0, so its logarithm is finite. 24 bits, hence exact in f32.
constexpr float uniform_open(std::uint32_t bits) {
  return (static_cast<float>(bits >> 9) + 0.5f) * 0x1p-23f;
}

}  // namespace ashlar

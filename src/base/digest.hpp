// A 64-bit digest of a sequence of words. Stable across machines and versions of the standard
// library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ashlar {

class Digest {
 public:
  void add(std::uint64_t word) {
    // The finaliser of SplitMix64: every bit of the word affects every bit of the state.
    state_ = mix(state_ ^ mix(word + 0x9E3779B97F4A7C15u));
  }
  void add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    for (unsigned char c : text) add(static_cast<std::uint64_t>(c));
  }
  // Eight bytes at a time, for long texts. The digest differs from that of add().
  void add_bytes(std::string_view bytes) {
    add(static_cast<std::uint64_t>(bytes.size()));
    while (!bytes.empty()) {
      std::uint64_t word = 0;
      const std::size_t count = bytes.size() < sizeof word ? bytes.size() : sizeof word;
      std::memcpy(&word, bytes.data(), count);
      add(word);
      bytes.remove_prefix(count);
    }
  }
  std::uint64_t value() const { return state_; }

 private:
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_ = 0x243F6A8885A308D3u;
};

}  // namespace ashlar

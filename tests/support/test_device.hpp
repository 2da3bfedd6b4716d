// The device that tests of engines, operations and random graphs run on, and its memory.
#pragma once

#include <ashlar/memory.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/bound_memory.hpp"

namespace ashlar::support {

// ASHLAR_TEST_DEVICE: "cpu" when it is not set, "cuda:0".
const Device& test_device();
// ASHLAR_TEST_SHORT: a small part of the walk and of the random graphs, for runs under a checker of
// every access.
bool short_tests();
// ASHLAR_TEST_SHORT=first: of that, the first case of every operation.
bool shortest_tests();
// ASHLAR_TEST_PART=INDEX/COUNT: of the walk's cases every COUNT-th, so that several processes share
// an operation.
struct TestPart {
  std::size_t index = 0, count = 1;
};
TestPart test_part();
// ASHLAR_TEST_ENGINE: the walk forces this engine only, and random graphs run on it where it takes
// a region; empty when it is not set.
std::string tested_engine();
bool is_tested(std::string_view engine);

// Copies of host blocks, canaries included, where a plan's device can reach them.
class DeviceCopies {
 public:
  explicit DeviceCopies(const Device& device) : device_(device) {}
  // Returns the place of the block's first byte.
  void* add(GuardedBlock& block);
  void upload();
  // Waits, and brings everything back to the host.
  void download();

 private:
  const Device& device_;
  struct Copy {
    GuardedBlock* block;
    Memory memory;
  };
  std::vector<Copy> copies_;
};

}  // namespace ashlar::support

// The device that tests of engines, operations and random graphs run on, and its memory.
#pragma once

#include <ashlar/memory.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/bound_memory.hpp"

namespace ashlar::support {

// ASHLAR_TEST_DEVICE: "cuda:0" or the like; "cpu" if it is not set.
const Device& test_device();
// ASHLAR_TEST_SHORT: a small part of the engine sweep and of the random graphs, for runs under a
// memory checker.
bool short_tests();
// ASHLAR_TEST_SHORT=first: only the first case of every operation.
bool shortest_tests();
// ASHLAR_TEST_PART=INDEX/COUNT: every COUNT-th case of the engine sweep, so that several processes
// share an operation.
struct TestPart {
  std::size_t index = 0, count = 1;
};
TestPart test_part();
// ASHLAR_TEST_ENGINE: the engine sweep tests only this engine, and random graphs use it for every
// region it supports; empty if it is not set.
std::string tested_engine();
bool is_tested(std::string_view engine);

// Copies of host blocks, canaries included, in memory of the plan's device.
class DeviceCopies {
 public:
  explicit DeviceCopies(const Device& device) : device_(device) {}
  // Returns the device address of the block.
  void* add(GuardedBlock& block);
  void upload();
  // Synchronises and copies all blocks back to the host.
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

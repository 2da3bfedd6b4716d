// The device under test and its memory.
#include "support/test_device.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace ashlar::support {

const Device& test_device() {
  static const Device device = [] {
    const char* name = std::getenv("ASHLAR_TEST_DEVICE");
    return Device::named(name == nullptr ? "cpu" : name);
  }();
  return device;
}

bool short_tests() { return std::getenv("ASHLAR_TEST_SHORT") != nullptr; }

bool shortest_tests() {
  return short_tests() && std::getenv("ASHLAR_TEST_SHORT") == std::string_view("first");
}

TestPart test_part() {
  TestPart part;
  const char* text = std::getenv("ASHLAR_TEST_PART");
  if (text == nullptr) return part;
  if (std::sscanf(text, "%zu/%zu", &part.index, &part.count) != 2 || part.index >= part.count)
    throw std::invalid_argument(std::string("ASHLAR_TEST_PART: not INDEX/COUNT: ") + text);
  return part;
}

std::string tested_engine() {
  const char* engine = std::getenv("ASHLAR_TEST_ENGINE");
  return engine == nullptr ? "" : engine;
}

bool is_tested(std::string_view engine) {
  const std::string only = tested_engine();
  return only.empty() || engine == only;
}

void* DeviceCopies::add(GuardedBlock& block) {
  const std::span<std::byte> all = block.with_canaries();
  copies_.push_back({&block, Memory(device_, static_cast<std::int64_t>(all.size()))});
  return static_cast<std::byte*>(copies_.back().memory.data()) + (block.data() - all.data());
}

void DeviceCopies::upload() {
  for (Copy& copy : copies_)
    copy.memory.upload(copy.block->with_canaries().data(), copy.memory.bytes());
}

void DeviceCopies::download() {
  for (Copy& copy : copies_)
    copy.memory.download(copy.block->with_canaries().data(), copy.memory.bytes());
}

}  // namespace ashlar::support

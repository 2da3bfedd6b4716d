// Memory of the emulated GPUs: poisoned, between guard zones, with bounds checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace emulated {

// 0: out of memory.
std::uint64_t allocate(std::size_t bytes);
// Pinned host memory, which kernels may access.
void* allocate_host(std::size_t bytes);
// False for an address that was not allocated. Aborts where a guard zone was overwritten.
bool release(std::uint64_t address);
std::size_t free_bytes();

// Whether the range is inside one allocation.
bool is_inside(std::uint64_t address, std::size_t bytes);
// Empty, or a message about an allocation whose guard zone was overwritten.
std::string overrun_allocation();

}  // namespace emulated

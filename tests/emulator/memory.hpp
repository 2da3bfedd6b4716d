// The memory of the emulated GPUs: poisoned, fenced, and known byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace emulated {

// 0 when the device has not that much left.
std::uint64_t allocate(std::size_t bytes);
// Memory of the host that kernels may read as well.
void* allocate_host(std::size_t bytes);
// False for an address that was not allocated. Ends the process when something was written outside.
bool release(std::uint64_t address);
std::size_t free_bytes();

// Whether all these bytes are of one allocation.
bool is_inside(std::uint64_t address, std::size_t bytes);
// Empty, or which allocation was written outside of its bytes.
std::string overrun_allocation();

}  // namespace emulated

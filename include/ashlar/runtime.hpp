// For libraries inside another program: whose GPU it works on, and copies in the order of its
// streams. `stream` is a CUstream, null is the default stream; processors ignore it.
#pragma once

#include <ashlar/device.hpp>
#include <cstddef>
#include <cstdint>

namespace ashlar {

// The GPU whose context is current in the calling thread, else Device::best(). Makes no context.
Device current_device();

// Between memory of the host and of the device (both the host's for a processor), after the
// stream's earlier work, and done on return. Throw Error(device) for what the driver refuses.
void upload(const Device& device, void* to, const void* from_host, std::int64_t bytes,
            void* stream = nullptr);
void download(const Device& device, void* to_host, const void* from, std::int64_t bytes,
              void* stream = nullptr);
// In the stream's order; may still be under way on return.
void fill(const Device& device, void* to, std::byte value, std::int64_t bytes,
          void* stream = nullptr);

}  // namespace ashlar

// For libraries embedded in another program: the GPU that the program uses, and stream-ordered
// copies. `stream` is a CUstream, null for the default stream; the CPU ignores it.
#pragma once

#include <ashlar/device.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ashlar {

// The GPU whose context is current in the calling thread, else Device::best(). Creates no context.
Device current_device();

// Copies between host and device memory (both host memory for the CPU), ordered after earlier work
// of the stream and complete on return. Throw Error(device) for driver errors.
void upload(const Device& device, void* to, const void* from_host, std::int64_t bytes,
            void* stream = nullptr);
void download(const Device& device, void* to_host, const void* from, std::int64_t bytes,
              void* stream = nullptr);
// Stream-ordered and asynchronous: may not have completed on return. `words` (lengths, offsets,
// labels) may be reused on return. Both may be captured into a CUDA graph, which keeps the values.
void enqueue_upload(const Device& device, void* to, std::span<const std::int32_t> words,
                    void* stream = nullptr);
void fill(const Device& device, void* to, std::byte value, std::int64_t bytes,
          void* stream = nullptr);

}  // namespace ashlar

// Streams that are being captured where there is no GPU. With one, the driver sees to it. Without
// one, libcudart is the stand-in of cudnn/hostrt, which writes the work down; libcudnn does not
// depend on it, and asks only where the process has loaded it.
#pragma once

#include <cudnn_graph.h>

#include <ashlar/device.hpp>
#include <functional>

namespace ashlar::cudnn {

// Whether work for this stream, on this device, is to be written down instead of done.
bool is_captured(const Device& device, cudaStream_t stream);
// Writes it down, with all it needs: it is done later, maybe often, maybe never.
void write_down(cudaStream_t stream, std::function<void()> work);

}  // namespace ashlar::cudnn

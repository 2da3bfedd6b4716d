// Stream capture without a GPU. With a GPU, the driver captures launches. Without one, libcudart is
// the host runtime of tools/hostrt, which records the work into its graph. libcudnn does not link
// against it; it looks the function up in the library that the process has loaded.
#pragma once

#include <cudnn_graph.h>

#include <ashlar/device.hpp>
#include <functional>

namespace ashlar::cudnn {

// Whether this stream is being captured, so that work is recorded instead of executed. Always false
// on a GPU.
bool is_captured(const Device& device, cudaStream_t stream);
// Adds `work` to the graph that is being captured. A launch of that graph runs it: any number of
// times, or never. `work` therefore owns everything it reads.
void record_work(cudaStream_t stream, std::function<void()> work);

}  // namespace ashlar::cudnn

// A handle: the device and the stream of a program's calls.
#pragma once

#include <cudnn_graph.h>

#include <ashlar/device.hpp>

struct cudnnContext {
  static constexpr const char* kTypeName = "cudnnHandle_t";
  ashlar::Device device;
  cudaStream_t stream = nullptr;
};

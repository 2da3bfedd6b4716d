// cudnnHandle_t: the device and the stream that a program's calls use.
#pragma once

#include <cudnn_graph.h>

#include <ashlar/device.hpp>

struct cudnnContext {
  static constexpr const char* kTypeName = "cudnnHandle_t";
  ashlar::Device device;
  cudaStream_t stream = nullptr;
};

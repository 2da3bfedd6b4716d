// Environment variables of libcudnn, read once.
#pragma once

#include <string>

namespace ashlar::cudnn {

struct Settings {
  // CUDNN_LOGLEVEL_DBG: 0 off, 1 errors, 2 and warnings, 3 and every call.
  int log_level = 0;
  // CUDNN_LOGDEST_DBG: stdout, stderr, or a file that lines are appended to. Empty: no log.
  std::string log_destination = {};
  // ASHLAR_CUDNN_DEVICE: the device of every handle (cpu, cuda:1) instead of the current one.
  std::string device = {};
  // NVIDIA_TF32_OVERRIDE=0: f32 matmuls and convolutions never use TF32, whatever the call allows.
  bool forbids_tf32 = false;
};

const Settings& settings();

}  // namespace ashlar::cudnn

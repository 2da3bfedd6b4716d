// What the environment asks of libcudnn, read once.
#pragma once

#include <string>

namespace ashlar::cudnn {

struct Settings {
  // CUDNN_LOGLEVEL_DBG: 0 nothing, 1 errors, 2 warnings too, 3 every call too.
  int log_level = 0;
  // CUDNN_LOGDEST_DBG: stdout, stderr, or a file that lines are appended to. Empty: nowhere.
  std::string log_destination = {};
  // ASHLAR_CUDNN_DEVICE: the device of every handle (cpu, cuda:1) instead of the current one.
  std::string device = {};
  // NVIDIA_TF32_OVERRIDE=0: no product of f32 numbers is rounded to TF32, whatever calls allow.
  bool forbids_tf32 = false;
};

const Settings& settings();

}  // namespace ashlar::cudnn

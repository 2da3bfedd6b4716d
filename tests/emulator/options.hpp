// Options of the emulator from the environment: EMULATED_CUDA is a list like
// "devices=0,memory=1000".
#pragma once

#include <string>

namespace emulated {

struct Options {
  int devices = 1;
  int version = 13000;  // driver version
  int start_error = 0;  // result of cuInit
  int capability = 90;
  int sm_count = 132;
  long long memory = 1ll << 34;  // bytes per device
  bool reverse = false;          // schedules threads and CTAs in reverse, and delays asynchronous
                                 // copies
  bool aligned = false;          // compiles kernels with alignment checks
  std::string compiles = {};     // log file: every compilation appends its kernel's name
  std::string keep = {};         // folder for the compiled kernel texts
};
// Read on first use. Aborts on an unknown option.
const Options& options();

}  // namespace emulated
